//! Groups of changes → updates, each filled as far as bytes and a count of changes allow; a group is never split.

use super::{ZoneChange, ZoneUpdate, started};
use crate::{
    message::{DomainName, LONGEST_MESSAGE, MessageBuilder, Section},
    tsig::{HmacKey, signature_width},
};

/// A group that does not fit a message even alone; its changes come back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} changes that belong together have more bytes than a message can have (65,535 with its signature)", .0.len())]
pub struct OversizedGroup(pub Vec<ZoneChange>);

/// Fills updates with groups in their order. `most` is how many changes go into one message where a group does not have more.
///
/// Lazy: one message's groups are in memory at a time. A group that fits no message is handed back in its place, and the others
/// go on.
pub fn batches<I>(zone: DomainName, key: &HmacKey, most: usize, groups: I) -> Batches<I::IntoIter>
where
    I: IntoIterator<Item = Vec<ZoneChange>>,
{
    Batches { zone, longest: LONGEST_MESSAGE - signature_width(key), most, groups: groups.into_iter(), left: None }
}

/// The updates that groups of changes become.
pub struct Batches<I> {
    zone: DomainName,
    longest: usize,
    most: usize,
    groups: I,
    left: Option<Vec<ZoneChange>>,
}

impl<I: Iterator<Item = Vec<ZoneChange>>> Iterator for Batches<I> {
    type Item = Result<ZoneUpdate, OversizedGroup>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut builder = started(&self.zone, 0);
        let mut changes: Vec<ZoneChange> = Vec::new();
        while let Some(group) = self.left.take().or_else(|| self.groups.next()) {
            let has_room = changes.is_empty() || changes.len() + group.len() <= self.most;
            if has_room && fits(&mut builder, &group, self.longest) {
                changes.extend(group);
                continue;
            }
            if changes.is_empty() {
                return Some(Err(OversizedGroup(group)));
            }
            self.left = Some(group);
            break;
        }
        (!changes.is_empty()).then(|| Ok(ZoneUpdate::new(self.zone.clone(), changes)))
    }
}

/// A group that does not fit leaves its beginning in the builder, which is not used any more then.
fn fits(builder: &mut MessageBuilder, group: &[ZoneChange], longest: usize) -> bool {
    group.iter().all(|change| builder.push_within(Section::Authority, &change.entry(), longest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{HmacAlgorithm, RecordData, ResourceRecord, TypeCode};

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).unwrap()
    }

    fn key() -> HmacKey {
        HmacKey::new("k", HmacAlgorithm::Sha256, "c2VjcmV0").unwrap()
    }

    fn add(owner: &str, bytes: usize) -> ZoneChange {
        let data = RecordData::txt([&vec![b'x'; bytes][..]]).unwrap();
        ZoneChange::Add(ResourceRecord { name: name(owner), kind: TypeCode::TXT, ttl: 60, data })
    }

    #[test]
    fn five_thousand_addresses_go_in_two_messages() {
        let address = RecordData::parse(TypeCode::A, "192.0.2.1").unwrap();
        let groups = (0..5_000).map(|number| {
            let name = name(&format!("host-{number}.example.com"));
            vec![ZoneChange::Add(ResourceRecord { name, kind: TypeCode::A, ttl: 300, data: address.clone() })]
        });

        let updates: Vec<_> = batches(name("example.com"), &key(), usize::MAX, groups).map(Result::unwrap).collect();

        assert_eq!(updates.len(), 2);
        assert_eq!(updates.iter().map(|update| update.changes.len()).sum::<usize>(), 5_000);
        assert!(updates.iter().all(|update| update.message(1, &key()).is_ok()));
    }

    #[test]
    fn a_group_that_fits_no_message_comes_back_and_the_others_go_on() {
        let huge = vec![add("huge.example.com", 40_000), add("huge.example.com", 40_001)];
        let groups = [vec![add("a.example.com", 10)], huge.clone(), vec![add("b.example.com", 10)]];

        let got: Vec<_> = batches(name("example.com"), &key(), 100, groups).collect();

        assert_eq!(got.len(), 3);
        assert_eq!(got[1], Err(OversizedGroup(huge)));
        assert!(got[0].is_ok() && got[2].is_ok());
    }

    #[test]
    fn no_message_has_more_changes_than_asked_but_a_group_that_is_larger() {
        let groups = [1, 2, 1, 5, 1].map(|count| vec![add("a.example.com", 10); count]);

        let counts: Vec<_> =
            batches(name("example.com"), &key(), 3, groups).map(|update| update.unwrap().changes.len()).collect();

        assert_eq!(counts, [3, 1, 5, 1]);
    }

    proptest! {
        #[test]
        fn every_change_goes_out_once_in_its_order_and_every_message_fits(
            widths in prop::collection::vec(prop::collection::vec(1_usize..9_000, 1..4), 0..40), most in 1_usize..20,
        ) {
            let groups: Vec<Vec<_>> = widths.iter().enumerate().map(|(number, widths)| {
                widths.iter().map(|width| add(&format!("n{number}.example.com"), *width)).collect()
            }).collect();

            let updates: Vec<_> = batches(name("example.com"), &key(), most, groups.clone()).map(Result::unwrap).collect();

            let sent: Vec<_> = updates.iter().flat_map(|update| update.changes.clone()).collect();
            prop_assert_eq!(sent, groups.concat());
            for update in updates {
                prop_assert!(update.message(1, &key()).is_ok());
            }
        }
    }
}
