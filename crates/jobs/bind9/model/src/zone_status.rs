//! What was found of a zone on its servers → how its pass ended, and what its status shows.
//!
//! Messages are the same for the same facts: lists are sorted, and no time is in them. So a settled zone's status is written once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use portolan_core::{ObjectKey, rfc3339, text};
use serde_json::{Value, json};

use crate::discovery::ZoneServers;
use crate::kinds::reference::{InstanceClaim, InstanceReferenceWithStatus};
use crate::kinds::{ZoneOnServer, ZoneStatus};
use crate::names;
use crate::phases::ZonePhase;
use crate::serial::{lag, newest};

/// What was found of a zone on one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// The pod that was asked.
    pub pod: Option<String>,
    /// Its address.
    pub address: Option<String>,
    /// The serial that it answers with; none where it does not answer for the zone.
    pub serial: Option<u32>,
    /// Why it does not, or what else is wrong there.
    pub error: Option<String>,
}

/// What was found of a zone on all of its servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneFacts {
    /// Who is to have it.
    pub servers: ZoneServers,
    /// What was found where.
    pub found: BTreeMap<ObjectKey, ServerFacts>,
    /// Who has it and is not to, as far as known.
    pub leaving: Vec<ObjectKey>,
}

/// How many servers a message names.
const NAMED: usize = 3;

impl ZoneFacts {
    fn serves(&self, server: &ObjectKey) -> bool {
        self.found.get(server).is_some_and(|facts| facts.serial.is_some() && facts.error.is_none())
    }

    fn count<'a>(&self, servers: impl IntoIterator<Item = &'a ObjectKey>) -> usize {
        servers.into_iter().filter(|server| self.serves(server)).count()
    }

    /// What is wrong with those that do not serve, in a sentence.
    fn complaint<'a>(&self, servers: impl IntoIterator<Item = &'a ObjectKey>) -> Option<String> {
        let told = servers.into_iter().filter(|server| !self.serves(server)).map(|server| {
            let why = self.found.get(server).and_then(|facts| facts.error.as_deref());
            format!("{server}: {}", why.unwrap_or("it does not answer for the zone yet"))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| text::join_some(told, NAMED))
    }

    /// How a pass over the zone ended.
    pub fn phase(&self) -> ZonePhase {
        let ZoneServers { writer, primaries, secondaries, .. } = &self.servers;
        let all_primaries = || writer.iter().chain(primaries);
        let (have, follow) = (self.count(all_primaries()), self.count(secondaries));
        if !writer.as_ref().is_some_and(|writer| self.serves(writer)) {
            let error = self.complaint(writer).unwrap_or_else(|| "there is none".to_owned());
            return ZonePhase::PrimaryFailed { error };
        }
        if let Some(error) = self.complaint(all_primaries()) {
            let selected = self.servers.all().len();
            return ZonePhase::Partial { primaries: have, secondaries: follow, selected, error };
        }
        match self.complaint(secondaries) {
            Some(error) => ZonePhase::SecondaryFailed { primaries: have, error },
            None => ZonePhase::Succeeded { primaries: have, secondaries: follow },
        }
    }

    /// What the status shows besides conditions and records. Times move only where something is new.
    pub fn status(&self, before: &ZoneStatus, now: Timestamp) -> Value {
        let written = self.servers.writer.as_ref().and_then(|writer| self.found.get(writer)?.serial);
        let highest = newest(before.serial.and_then(|serial| u32::try_from(serial).ok()).into_iter().chain(written));
        let on = |server: &ObjectKey, known: &[ZoneOnServer]| self.on_server(server, written, known, now);
        let primaries = self.servers.writer.iter().chain(&self.servers.primaries);
        let addresses = self.servers.secondaries.iter().filter_map(|one| self.found.get(one)?.address.clone());
        json!({
            "bind9Instances": self.instances(before, now),
            "bind9InstancesCount": self.servers.all().len(),
            "secondaryIps": addresses.collect::<Vec<String>>(),
            "serial": highest,
            "primaries": primaries.map(|server| on(server, &before.primaries)).collect::<Vec<_>>(),
            "secondaries": self.servers.secondaries.iter().map(|server| on(server, &before.secondaries)).collect::<Vec<_>>(),
        })
    }

    fn on_server(
        &self,
        server: &ObjectKey,
        written: Option<u32>,
        known: &[ZoneOnServer],
        now: Timestamp,
    ) -> ZoneOnServer {
        let facts = self.found.get(server).cloned().unwrap_or_default();
        let name = server.to_string();
        let before = known.iter().find(|one| one.instance == name);
        let serial = facts.serial.map(i64::from);
        let is_new = serial.is_some() && before.and_then(|one| one.serial) != serial;
        ZoneOnServer {
            instance: name,
            pod: facts.pod,
            address: facts.address,
            serial,
            loaded: Some(serial.is_some()),
            lag: written.zip(facts.serial).map(|(written, theirs)| i64::from(lag(written, theirs))),
            last_transfer: if is_new { Some(rfc3339(now)) } else { before.and_then(|one| one.last_transfer.clone()) },
            error: facts.error,
        }
    }

    /// The instances, those that are to have the zone first.
    fn instances(&self, before: &ZoneStatus, now: Timestamp) -> Vec<InstanceReferenceWithStatus> {
        let staying = self.servers.all();
        let leaving = self.leaving.iter().filter(|server| !staying.contains(*server));
        let claims = staying.iter().map(|server| (server, self.claim(server)));
        let all = claims.chain(leaving.map(|server| (server, InstanceClaim::Unclaimed)));
        all.map(|(server, status)| {
            let message = self.found.get(server).and_then(|facts| facts.error.clone());
            let known = before.bind9_instances.iter().find(|one| one.key() == *server);
            let same = known.filter(|one| one.status == status && one.message == message);
            let since = same.and_then(|one| one.last_reconciled_at.clone()).unwrap_or_else(|| rfc3339(now));
            InstanceReferenceWithStatus {
                api_version: names::API_VERSION.to_owned(),
                kind: "Bind9Instance".to_owned(),
                name: server.name.clone(),
                namespace: server.namespace.clone().unwrap_or_default(),
                status,
                last_reconciled_at: Some(since),
                message,
            }
        })
        .collect()
    }

    fn claim(&self, server: &ObjectKey) -> InstanceClaim {
        match self.found.get(server) {
            _ if self.serves(server) => InstanceClaim::Configured,
            Some(facts) if facts.error.is_some() => InstanceClaim::Failed,
            Some(_) | None => InstanceClaim::Claimed,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;
    use crate::testing::key;

    fn serving(serial: u32) -> ServerFacts {
        let (pod, address) = (Some("pod".to_owned()), Some(format!("10.0.0.{serial}")));
        ServerFacts { pod, address, serial: Some(serial), error: None }
    }

    fn failing(why: &str) -> ServerFacts {
        ServerFacts { error: Some(why.to_owned()), ..ServerFacts::default() }
    }

    fn facts(writer: ServerFacts, primary: ServerFacts, secondary: ServerFacts) -> ZoneFacts {
        let servers = ZoneServers {
            writer: Some(key("w")),
            primaries: [key("p")].into(),
            secondaries: [key("s")].into(),
            ..ZoneServers::default()
        };
        ZoneFacts {
            servers,
            found: [(key("w"), writer), (key("p"), primary), (key("s"), secondary)].into(),
            leaving: Vec::new(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn how_a_pass_ended_follows_from_who_serves() {
        assert_eq!(
            facts(serving(7), serving(7), serving(7)).phase(),
            ZonePhase::Succeeded { primaries: 2, secondaries: 1 }
        );
        assert_eq!(
            facts(failing("no answer"), serving(7), serving(7)).phase(),
            ZonePhase::PrimaryFailed { error: "dns/w: no answer".to_owned() }
        );
        assert_eq!(
            facts(serving(7), failing("no answer"), serving(7)).phase(),
            ZonePhase::Partial { primaries: 1, secondaries: 1, selected: 3, error: "dns/p: no answer".to_owned() }
        );
        assert_eq!(
            facts(serving(7), serving(7), ServerFacts::default()).phase(),
            ZonePhase::SecondaryFailed { primaries: 2, error: "dns/s: it does not answer for the zone yet".to_owned() }
        );
    }

    #[test]
    fn a_status_shows_every_server_with_its_serial_and_how_far_it_is_behind() {
        let status = facts(serving(7), serving(7), serving(5)).status(&ZoneStatus::default(), at(0));

        assert_eq!((&status["serial"], &status["bind9InstancesCount"]), (&json!(7), &json!(3)));
        assert_eq!(
            (&status["secondaries"][0]["lag"], &status["secondaries"][0]["instance"]),
            (&json!(2), &json!("dns/s"))
        );
        assert_eq!(status["secondaryIps"], json!(["10.0.0.5"]));
        assert_eq!(status["primaries"][0]["instance"], "dns/w", "the one that it is written to comes first");
    }

    #[test]
    fn scenario_1_the_same_facts_give_the_same_status_and_times_do_not_move() {
        let facts = facts(serving(7), failing("no answer"), serving(7));
        let first = facts.status(&ZoneStatus::default(), at(0));
        let stored: ZoneStatus = from_value(first.clone()).unwrap();

        assert_eq!(facts.status(&stored, at(100)), first);
    }

    #[test]
    fn scenario_32_the_highest_serial_that_was_seen_is_kept() {
        let before = ZoneStatus { serial: Some(4_323), ..ZoneStatus::default() };

        assert_eq!(facts(serving(2), serving(2), serving(2)).status(&before, at(0))["serial"], 4_323);
    }

    #[test]
    fn who_is_to_lose_it_is_shown_until_it_has() {
        let mut facts = facts(serving(7), serving(7), serving(7));
        facts.leaving = vec![key("old"), key("w")];

        let status = facts.status(&ZoneStatus::default(), at(0));

        let shown: Vec<(&str, &str)> = status["bind9Instances"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["name"].as_str().unwrap(), one["status"].as_str().unwrap()))
            .collect();
        assert_eq!(shown, [("p", "Configured"), ("s", "Configured"), ("w", "Configured"), ("old", "Unclaimed")]);
    }
}
