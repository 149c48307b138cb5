//! A zone's records: all writes of one name in one batch.

use portolan_cloudflare_api::objects::DnsRecord;
use portolan_cloudflare_api::{ErrorClass, Op, Written};
use portolan_publication::reasons;
use serde_json::Value;

use super::sight::AppSight;
use super::{Fault, StepEffect, StepRun};
use crate::inventory::{RecordHeld, RecordKind};
use crate::journal::Journal;
use crate::step::RecordWork;

impl<J: Journal> StepRun<'_, J> {
    pub(super) async fn write_records(
        &mut self,
        zone_id: &str,
        hostname: &str,
        work: &[RecordWork],
    ) -> Result<StepEffect, Fault> {
        portolan_core::waypoint!();
        let records = self.zone(zone_id);
        let ops: Vec<Op> = work.iter().filter_map(op).collect();
        let posts = ops.len() > 1 || ops.iter().any(|op| matches!(op, Op::Create(_)));
        drop(self.expected_records.remove(zone_id));
        // Taking a record away needs no application.
        let seen = if work.iter().any(RecordWork::publishes) { self.seen } else { AppSight::default() };
        let written = match records.within(&seen.gate()).write(self.lane(), ops).await {
            Ok(written) => written,
            Err(error) => {
                if error.class == ErrorClass::Conflict {
                    records.invalidate();
                }
                let doing = format!("writing the DNS record of {hostname}");
                let mut fault =
                    if posts { self.fault_of_post(&error, &doing).await } else { self.fault(&error, &doing) };
                if error.class == ErrorClass::Conflict {
                    fault.problem.reason = reasons::DNS_RECORD_CONFLICT;
                }
                return Err(seen.fault_of(fault, hostname));
            }
        };
        let mut written = written.into_iter();
        for work in work {
            let answer = op(work).and_then(|_| written.next());
            self.follow(zone_id, hostname, work, answer);
        }
        Ok(if work.iter().any(|work| op(work).is_some()) { StepEffect::Planned } else { StepEffect::Nothing })
    }

    fn follow(&mut self, zone_id: &str, hostname: &str, work: &RecordWork, answer: Option<Written<DnsRecord>>) {
        let (id, made) = match (work, &answer) {
            (RecordWork::Create { kind, ip, .. }, Some(Written::Stored(entry))) => {
                (entry.id.clone(), Some((*kind, ip.clone(), false)))
            }
            (RecordWork::Update { id, kind, ip, adopted, .. }, _) => (id.clone(), Some((*kind, ip.clone(), *adopted))),
            (RecordWork::Delete { id } | RecordWork::Release { id, .. }, _) => (id.clone(), None),
            (RecordWork::Create { .. }, _) => return,
        };
        self.held.records.retain(|held| held.zone_id != zone_id || held.id != id);
        if let Some((kind, ip, adopted)) = made {
            self.hold_record(zone_id, hostname, id, kind, ip, adopted);
        }
    }

    fn hold_record(
        &mut self,
        zone_id: &str,
        hostname: &str,
        id: String,
        kind: RecordKind,
        ip: Option<String>,
        adopted: bool,
    ) {
        let held = RecordHeld { zone_id: zone_id.to_owned(), hostname: hostname.to_owned(), id, kind, ip, adopted };
        self.held.records.insert(0, held);
    }
}

fn op(work: &RecordWork) -> Option<Op> {
    let update = |id: &String, body: &Value| Op::Update { id: id.clone(), body: body.clone() };
    match work {
        RecordWork::Create { body, .. } => Some(Op::Create(body.clone())),
        RecordWork::Update { id, body, .. } => Some(update(id, body)),
        RecordWork::Delete { id } => Some(Op::delete(id.clone())),
        RecordWork::Release { id, body } => body.as_ref().map(|body| update(id, body)),
    }
}
