//! The records of a transfer, one after another → what they say: the whole zone, or what changed in it (RFC 5936, RFC 1995). Pure.

use crate::{
    message::{DomainName, ResourceRecord, TypeCode},
    values::{Serial, Soa},
};

/// What a transfer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferEvent {
    /// The zone is as new as was asked for, or older: there is nothing to tell.
    UpToDate(Soa),
    /// All of the zone follows, as additions to nothing.
    Whole(Soa),
    /// What changed follows, from one version to the next, up to this one.
    Changes(Soa),
    /// What goes follows, then what comes; the zone then has this version.
    Step {
        /// The version before.
        from: Serial,
        /// The version after.
        to: Serial,
    },
    /// A record that is there.
    Added(ResourceRecord),
    /// A record that is no longer there.
    Removed(ResourceRecord),
    /// That was all.
    Complete,
}

/// Why what came is no transfer of the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferFault {
    /// It does not begin with the zone's SOA record.
    #[error("it does not begin with the zone's SOA record")]
    NoSoa,
    /// A record of it lies outside of the zone.
    #[error("it has a record that lies outside of the zone")]
    NotInZone,
    /// Something follows its last record.
    #[error("something follows its last record")]
    Trailing,
    /// The versions in it do not follow one another.
    #[error("its versions do not follow one another")]
    Versions,
    /// A SOA record in it cannot be read.
    #[error("a SOA record in it cannot be read")]
    Soa,
}

/// Where a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    /// After the first SOA record of an answer to IXFR: a second one of another version makes it changes.
    Undecided,
    Whole,
    Removing,
    Adding {
        at: Serial,
    },
    End,
}

/// Reads a transfer record by record.
#[derive(Clone, Debug)]
pub(crate) struct TransferReader {
    zone: DomainName,
    /// The version that whoever asks has, if changes since it were asked for.
    since: Option<Serial>,
    newest: Option<Soa>,
    place: Place,
    from: Serial,
}

impl TransferReader {
    pub(crate) fn new(zone: DomainName, since: Option<Serial>) -> Self {
        Self { zone, since, newest: None, place: Place::Start, from: since.unwrap_or(Serial(0)) }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.place == Place::End
    }

    /// One record of an answer; `is_last` says that nothing follows it in its message, by which an answer of one SOA record is told
    /// from the beginning of a longer one.
    pub(crate) fn take(
        &mut self,
        record: ResourceRecord,
        is_last: bool,
        events: &mut Vec<TransferEvent>,
    ) -> Result<(), TransferFault> {
        if !record.name.is_in(&self.zone) {
            return Err(TransferFault::NotInZone);
        }
        let soa = self.apex_soa(&record)?;
        match (self.place, soa) {
            (Place::Start, Some(soa)) => self.begin(soa, is_last, events),
            (Place::Start, None) => return Err(TransferFault::NoSoa),
            (Place::Undecided, soa) => return self.decide(record, soa, events),
            (Place::Whole, Some(soa)) => {
                self.expect_newest(&soa)?;
                self.end(events);
            }
            (Place::Removing, Some(soa)) => {
                events.push(TransferEvent::Step { from: self.from, to: soa.serial });
                self.place = Place::Adding { at: soa.serial };
            }
            (Place::Adding { at }, Some(soa)) => return self.next_step(at, soa, events),
            (Place::Whole | Place::Adding { .. }, None) => events.push(TransferEvent::Added(record)),
            (Place::Removing, None) => events.push(TransferEvent::Removed(record)),
            (Place::End, _) => return Err(TransferFault::Trailing),
        }
        Ok(())
    }

    fn apex_soa(&self, record: &ResourceRecord) -> Result<Option<Soa>, TransferFault> {
        if record.kind != TypeCode::SOA {
            return Ok(None);
        }
        if record.name != self.zone {
            return Err(TransferFault::NotInZone);
        }
        Soa::read(&record.data).map(Some).map_err(|_| TransferFault::Soa)
    }

    fn begin(&mut self, soa: Soa, is_last: bool, events: &mut Vec<TransferEvent>) {
        let is_asked_for_changes = self.since.is_some();
        // A server that has nothing newer answers with its SOA record alone (RFC 1995 §2).
        let has_nothing_new = self.since.is_some_and(|since| !soa.serial.is_newer_than(since));
        self.newest = Some(soa.clone());
        if has_nothing_new && is_last {
            events.push(TransferEvent::UpToDate(soa));
            self.place = Place::End;
        } else if is_asked_for_changes {
            self.place = Place::Undecided;
        } else {
            events.push(TransferEvent::Whole(soa));
            self.place = Place::Whole;
        }
    }

    /// The second record tells whether an answer to IXFR is one.
    fn decide(
        &mut self,
        record: ResourceRecord,
        soa: Option<Soa>,
        events: &mut Vec<TransferEvent>,
    ) -> Result<(), TransferFault> {
        let newest = self.newest.clone().ok_or(TransferFault::NoSoa)?;
        match soa {
            Some(soa) if soa.serial != newest.serial => {
                events.push(TransferEvent::Changes(newest));
                if Some(soa.serial) != self.since {
                    return Err(TransferFault::Versions);
                }
                self.from = soa.serial;
                self.place = Place::Removing;
            }
            // A zone of nothing but its SOA record, sent as a whole.
            Some(_) => {
                events.push(TransferEvent::Whole(newest));
                self.end(events);
            }
            None => {
                events.extend([TransferEvent::Whole(newest), TransferEvent::Added(record)]);
                self.place = Place::Whole;
            }
        }
        Ok(())
    }

    fn next_step(&mut self, at: Serial, soa: Soa, events: &mut Vec<TransferEvent>) -> Result<(), TransferFault> {
        if soa.serial != at {
            return Err(TransferFault::Versions);
        }
        if self.newest.as_ref().is_some_and(|newest| newest.serial == at) {
            self.end(events);
        } else {
            self.from = at;
            self.place = Place::Removing;
        }
        Ok(())
    }

    fn expect_newest(&self, soa: &Soa) -> Result<(), TransferFault> {
        let is_newest = self.newest.as_ref().is_some_and(|newest| newest.serial == soa.serial);
        if is_newest { Ok(()) } else { Err(TransferFault::Versions) }
    }

    fn end(&mut self, events: &mut Vec<TransferEvent>) {
        events.push(TransferEvent::Complete);
        self.place = Place::End;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::RecordData;

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).unwrap()
    }

    fn soa(serial: u32) -> ResourceRecord {
        let data =
            RecordData::parse(TypeCode::SOA, &format!("ns1.example.com hostmaster.example.com {serial} 1 2 3 4"))
                .unwrap();
        ResourceRecord { name: name("example.com"), kind: TypeCode::SOA, ttl: 60, data }
    }

    fn a(owner: &str) -> ResourceRecord {
        ResourceRecord {
            name: name(owner),
            kind: TypeCode::A,
            ttl: 60,
            data: RecordData::parse(TypeCode::A, "192.0.2.1").unwrap(),
        }
    }

    /// What is said, each event as a word.
    fn read(since: Option<u32>, records: &[ResourceRecord]) -> Result<Vec<String>, TransferFault> {
        let mut reader = TransferReader::new(name("example.com"), since.map(Serial));
        let mut events = Vec::new();
        for (at, record) in records.iter().enumerate() {
            reader.take(record.clone(), at + 1 == records.len(), &mut events)?;
        }
        let word = |event: &TransferEvent| match event {
            TransferEvent::UpToDate(soa) => format!("up to date {}", soa.serial),
            TransferEvent::Whole(soa) => format!("whole {}", soa.serial),
            TransferEvent::Changes(soa) => format!("changes {}", soa.serial),
            TransferEvent::Step { from, to } => format!("{from}-{to}"),
            TransferEvent::Added(record) => format!("+{}", record.name),
            TransferEvent::Removed(record) => format!("-{}", record.name),
            TransferEvent::Complete => "complete".to_owned(),
        };
        Ok(events.iter().map(word).collect())
    }

    #[test]
    fn a_whole_zone_stands_between_two_records_of_one_version() {
        let zone = [soa(7), a("a.example.com"), a("example.com"), soa(7)];
        let said = ["whole 7", "+a.example.com.", "+example.com.", "complete"];

        assert_eq!(read(None, &zone).unwrap(), said);
        assert_eq!(read(Some(3), &zone).unwrap(), said);
        assert_eq!(read(None, &[soa(7), soa(7)]).unwrap(), ["whole 7", "complete"]);
        assert_eq!(read(Some(3), &[soa(7), soa(7)]).unwrap(), ["whole 7", "complete"]);
    }

    #[test]
    fn changes_come_version_by_version() {
        let changes = [
            soa(9),
            soa(7),
            a("x.example.com"),
            soa(8),
            a("y.example.com"),
            soa(8),
            soa(9),
            a("z.example.com"),
            soa(9),
        ];

        assert_eq!(
            read(Some(7), &changes).unwrap(),
            ["changes 9", "-x.example.com.", "7-8", "+y.example.com.", "8-9", "+z.example.com.", "complete"]
        );
        assert_eq!(read(Some(9), &[soa(9)]).unwrap(), ["up to date 9"]);
        assert_eq!(read(Some(9), &[soa(8)]).unwrap(), ["up to date 8"]);
    }

    #[test]
    fn what_is_no_transfer_is_refused() {
        assert_eq!(read(None, &[a("a.example.com")]), Err(TransferFault::NoSoa));
        assert_eq!(read(None, &[soa(7), a("a.example.org")]), Err(TransferFault::NotInZone));
        assert_eq!(read(None, &[soa(7), a("a.example.com"), soa(8)]), Err(TransferFault::Versions));
        assert_eq!(read(None, &[soa(7), soa(7), a("a.example.com")]), Err(TransferFault::Trailing));
        assert_eq!(read(Some(6), &[soa(9), soa(7)]), Err(TransferFault::Versions));
        assert_eq!(read(Some(7), &[soa(9), soa(7), soa(8), soa(9)]), Err(TransferFault::Versions));
    }
}
