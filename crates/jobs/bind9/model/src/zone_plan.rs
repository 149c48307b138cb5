//! How a zone stands on its servers → the steps that bring it to stand as it is to. Taken again and again until there is none.
//!
//! ```text
//! absent ─ seed ─▶ seeding (answers nobody) ─ complete ─ open ─▶ open ─ differs ─ one update ─▶ open
//!                                                               └─ catalog of each follower: member added, or taken away
//! ```
//!
//! A zone is never open before it is complete: it is taken whole from the operator by a zone that answers nobody, and then opened from the
//! file that this left (tried with 9.18.49: `delzone` without `-clean`, `addzone … type primary`). A change is one update, so no
//! half of it is ever served. Each step is safe to take twice, and a pass that is cut off leaves what the next one knows how to go on from.

use std::collections::{BTreeMap, BTreeSet};

use portolan_core::ObjectKey;

use crate::serial::is_newer;

/// How a zone is on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZoneState {
    /// The server does not know it.
    Absent,
    /// It is being taken from the operator; the serial is that of what is there so far.
    Seeding(Option<u32>),
    /// It is written there, and answers with this serial.
    Open(u32),
    /// It is written there and could not be loaded: whatever is in its file is lost.
    Broken,
    /// It follows another server; the serial is that of what it has.
    Following(Option<u32>),
    /// Nobody knows: the server does not answer.
    Unknown,
}

/// How a zone stands on all of its servers.
#[derive(Clone, Debug, Default)]
pub struct ZoneView {
    /// The server that it is to be written to, and how it is there.
    pub writer: Option<(ObjectKey, ZoneState)>,
    /// The servers that are to follow, and how it is there.
    pub followers: BTreeMap<ObjectKey, ZoneState>,
    /// Servers that have it no more to have, and how it is there.
    pub leaving: BTreeMap<ObjectKey, ZoneState>,
    /// Followers whose catalog the writer has.
    pub catalogs: BTreeSet<ObjectKey>,
    /// Followers in whose catalog the zone is.
    pub members: BTreeSet<ObjectKey>,
    /// The serial of what is to be seeded.
    pub seed_serial: u32,
    /// Whether what the writer serves is what it is to serve.
    pub content_stands: bool,
    /// Followers that have been behind for so long that they are told to look.
    pub late: BTreeSet<ObjectKey>,
}

/// One thing to do about a zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZoneStep {
    /// The zone is offered to the writer, which is told to take it and to answer nobody.
    Seed,
    /// The writer is told to take what is offered, again.
    SeedAgain,
    /// The writer has it whole: it is opened.
    Open,
    /// What cannot be loaded is thrown away, so that it can be seeded.
    Discard,
    /// What differs is changed in one update.
    Update,
    /// The writer gets a catalog for a follower.
    AddCatalog(ObjectKey),
    /// A follower is to follow.
    AddMember(ObjectKey),
    /// A server is to have it no longer.
    RemoveMember(ObjectKey),
    /// A follower is told to look whether it is behind, at the zone or, where it does not know that, at its catalog.
    Refresh(ObjectKey),
    /// A follower has something newer than the writer, which nobody wrote: it is told to take all of it anew.
    Retransfer(ObjectKey),
    /// The zone is taken from a server that it was written to.
    Remove(ObjectKey),
}

/// The steps that can be taken now, in order. Those that need an earlier one's effect come in a later pass.
pub fn steps(view: &ZoneView) -> Vec<ZoneStep> {
    let mut all = Vec::new();
    if let Some((_, state)) = &view.writer {
        all.extend(writing(*state, view));
        if let ZoneState::Open(serial) = state {
            all.extend(following(*serial, view));
        }
    }
    all.extend(leaving(view));
    all
}

fn writing(state: ZoneState, view: &ZoneView) -> Option<ZoneStep> {
    match state {
        ZoneState::Absent => Some(ZoneStep::Seed),
        ZoneState::Seeding(Some(serial)) if serial == view.seed_serial => Some(ZoneStep::Open),
        ZoneState::Seeding(_) => Some(ZoneStep::SeedAgain),
        ZoneState::Open(_) => (!view.content_stands).then_some(ZoneStep::Update),
        ZoneState::Broken => Some(ZoneStep::Discard),
        // It followed until now. The catalog that it is in lets go of it first: what a server has from one cannot be taken away there.
        ZoneState::Following(_) | ZoneState::Unknown => None,
    }
}

fn following(serial: u32, view: &ZoneView) -> Vec<ZoneStep> {
    let mut all = Vec::new();
    for (follower, state) in &view.followers {
        if !view.catalogs.contains(follower) {
            all.push(ZoneStep::AddCatalog(follower.clone()));
        }
        if !view.members.contains(follower) {
            all.push(ZoneStep::AddMember(follower.clone()));
            continue;
        }
        match state {
            ZoneState::Following(Some(theirs)) if is_newer(*theirs, serial) => {
                all.push(ZoneStep::Retransfer(follower.clone()));
            }
            ZoneState::Following(theirs) if *theirs != Some(serial) && view.late.contains(follower) => {
                all.push(ZoneStep::Refresh(follower.clone()));
            }
            // Its catalog has not told it: it is told to look at that.
            ZoneState::Absent if view.late.contains(follower) => all.push(ZoneStep::Refresh(follower.clone())),
            ZoneState::Following(_) | ZoneState::Absent | ZoneState::Unknown => {}
            // It was written there until now, and it cannot follow while it is.
            ZoneState::Seeding(_) | ZoneState::Open(_) | ZoneState::Broken => {
                all.push(ZoneStep::Remove(follower.clone()));
            }
        }
    }
    all
}

/// Who has it and is not to: those who follow are let go by their catalogs, those it was written to lose it, once another is open.
fn leaving(view: &ZoneView) -> Vec<ZoneStep> {
    let mut all: Vec<ZoneStep> = view
        .members
        .iter()
        .filter(|member| !view.followers.contains_key(*member))
        .map(|member| ZoneStep::RemoveMember(member.clone()))
        .collect();
    let is_served = view.writer.as_ref().is_none_or(|(_, state)| matches!(state, ZoneState::Open(_)));
    for (server, state) in &view.leaving {
        match state {
            ZoneState::Seeding(_) | ZoneState::Open(_) | ZoneState::Broken if is_served => {
                all.push(ZoneStep::Remove(server.clone()));
            }
            ZoneState::Seeding(_)
            | ZoneState::Open(_)
            | ZoneState::Broken
            | ZoneState::Absent
            | ZoneState::Following(_)
            | ZoneState::Unknown => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::key;

    const SEED: u32 = 100;

    fn view(writer: ZoneState, followers: &[(&str, ZoneState)]) -> ZoneView {
        let followers: BTreeMap<ObjectKey, ZoneState> =
            followers.iter().map(|(name, state)| (key(name), *state)).collect();
        ZoneView {
            writer: Some((key("w"), writer)),
            catalogs: followers.keys().cloned().collect(),
            members: followers.keys().cloned().collect(),
            followers,
            seed_serial: SEED,
            content_stands: true,
            ..ZoneView::default()
        }
    }

    #[test]
    fn a_zone_is_seeded_then_opened_and_followed_only_then() {
        let mut view = view(ZoneState::Absent, &[("s", ZoneState::Absent)]);
        (view.catalogs, view.members) = (BTreeSet::new(), BTreeSet::new());
        assert_eq!(steps(&view), [ZoneStep::Seed]);

        view.writer = Some((key("w"), ZoneState::Seeding(None)));
        assert_eq!(steps(&view), [ZoneStep::SeedAgain], "what is not complete is not opened");
        view.writer = Some((key("w"), ZoneState::Seeding(Some(SEED - 1))));
        assert_eq!(steps(&view), [ZoneStep::SeedAgain], "what is older is not opened");
        view.writer = Some((key("w"), ZoneState::Seeding(Some(SEED))));
        assert_eq!(steps(&view), [ZoneStep::Open]);

        view.writer = Some((key("w"), ZoneState::Open(SEED)));
        assert_eq!(steps(&view), [ZoneStep::AddCatalog(key("s")), ZoneStep::AddMember(key("s"))]);
    }

    #[test]
    fn scenario_1_a_zone_that_stands_takes_no_step() {
        assert_eq!(
            steps(&view(
                ZoneState::Open(7),
                &[("a", ZoneState::Following(Some(7))), ("b", ZoneState::Following(Some(7)))]
            )),
            []
        );
        assert_eq!(
            steps(&view(ZoneState::Open(7), &[("a", ZoneState::Following(Some(6)))])),
            [],
            "it is told by its writer, and given time"
        );
    }

    #[test]
    fn scenario_33_a_follower_that_is_ahead_takes_everything_anew_and_one_that_is_late_looks() {
        let mut view = view(
            ZoneState::Open(7),
            &[("ahead", ZoneState::Following(Some(9))), ("late", ZoneState::Following(Some(6)))],
        );
        view.late = BTreeSet::from([key("late")]);

        assert_eq!(steps(&view), [ZoneStep::Retransfer(key("ahead")), ZoneStep::Refresh(key("late"))]);
    }

    #[test]
    fn scenario_36_and_37_what_cannot_be_loaded_is_discarded_and_what_was_deleted_by_hand_is_seeded() {
        assert_eq!(steps(&view(ZoneState::Broken, &[])), [ZoneStep::Discard]);
        assert_eq!(
            steps(&view(ZoneState::Absent, &[("a", ZoneState::Following(Some(7)))])),
            [ZoneStep::Seed],
            "followers go on"
        );
    }

    #[test]
    fn a_server_that_does_not_answer_is_left_alone() {
        assert_eq!(steps(&view(ZoneState::Unknown, &[("a", ZoneState::Following(Some(7)))])), []);
        assert_eq!(steps(&view(ZoneState::Open(7), &[("a", ZoneState::Unknown)])), []);
    }

    #[test]
    fn scenario_20_who_is_to_have_it_no_longer_loses_it_by_its_catalog_or_once_another_serves_it() {
        let mut view = view(ZoneState::Open(7), &[]);
        view.members = BTreeSet::from([key("gone")]);
        view.leaving = BTreeMap::from([(key("old"), ZoneState::Open(6)), (key("gone"), ZoneState::Following(Some(7)))]);
        assert_eq!(steps(&view), [ZoneStep::RemoveMember(key("gone")), ZoneStep::Remove(key("old"))]);

        view.writer = Some((key("w"), ZoneState::Seeding(None)));
        assert_eq!(
            steps(&view),
            [ZoneStep::SeedAgain, ZoneStep::RemoveMember(key("gone"))],
            "the old one serves until the new one does"
        );
    }

    #[test]
    fn scenario_40_a_zone_that_goes_leaves_every_server_that_answers() {
        let mut view = view(ZoneState::Open(7), &[]);
        view.writer = None;
        view.members = BTreeSet::from([key("s")]);
        view.leaving = BTreeMap::from([
            (key("w"), ZoneState::Open(7)),
            (key("s"), ZoneState::Following(Some(7))),
            (key("dead"), ZoneState::Unknown),
        ]);

        assert_eq!(steps(&view), [ZoneStep::RemoveMember(key("s")), ZoneStep::Remove(key("w"))]);
    }

    fn state() -> impl Strategy<Value = ZoneState> {
        prop_oneof![
            Just(ZoneState::Absent),
            Just(ZoneState::Broken),
            Just(ZoneState::Unknown),
            proptest::option::of(98u32..103).prop_map(ZoneState::Seeding),
            (98u32..103).prop_map(ZoneState::Open),
            proptest::option::of(98u32..103).prop_map(ZoneState::Following),
        ]
    }

    /// What a step does where servers do as they are told.
    fn taken(view: &mut ZoneView, step: &ZoneStep) {
        let serial = |view: &ZoneView| match view.writer {
            Some((_, ZoneState::Open(serial))) => Some(serial),
            _ => None,
        };
        match step {
            ZoneStep::Seed | ZoneStep::SeedAgain => set_writer(view, ZoneState::Seeding(Some(SEED))),
            ZoneStep::Open => set_writer(view, ZoneState::Open(SEED)),
            ZoneStep::Discard => set_writer(view, ZoneState::Absent),
            ZoneStep::Update => view.content_stands = true,
            ZoneStep::AddCatalog(follower) => drop(view.catalogs.insert(follower.clone())),
            ZoneStep::AddMember(follower) => {
                view.members.insert(follower.clone());
                if view.followers[follower] == ZoneState::Absent {
                    view.followers.insert(follower.clone(), ZoneState::Following(serial(view)));
                }
            }
            ZoneStep::RemoveMember(member) => {
                view.members.remove(member);
                view.leaving.remove(member);
            }
            ZoneStep::Refresh(follower) | ZoneStep::Retransfer(follower) => {
                view.followers.insert(follower.clone(), ZoneState::Following(serial(view)));
            }
            ZoneStep::Remove(server) => {
                if let Some(state) = view.followers.get_mut(server) {
                    *state = ZoneState::Following(None);
                }
                view.leaving.remove(server);
            }
        }
    }

    fn set_writer(view: &mut ZoneView, state: ZoneState) {
        view.writer = Some((key("w"), state));
    }

    proptest! {
        #[test]
        fn from_wherever_it_stands_it_comes_to_rest_open_and_followed(
            writer in state().prop_filter("it answers and does not follow", |state| !matches!(state, ZoneState::Unknown | ZoneState::Following(_))),
            follower in state().prop_filter("it answers", |state| *state != ZoneState::Unknown),
            old in state().prop_filter("it answers", |state| *state != ZoneState::Unknown),
            listed in any::<(bool, bool, bool)>(),
        ) {
            let mut view = view(writer, &[("a", follower)]);
            view.catalogs.retain(|_| listed.0);
            view.members.retain(|_| listed.1);
            view.content_stands = listed.2;
            view.leaving.insert(key("old"), old);
            view.late.insert(key("a"));

            for _ in 0..12 {
                for step in steps(&view) {
                    prop_assert!(step != ZoneStep::Open || matches!(view.writer, Some((_, ZoneState::Seeding(Some(SEED))))), "opened before it was complete");
                    taken(&mut view, &step);
                }
            }

            prop_assert_eq!(steps(&view), Vec::new(), "{:?}", view);
            prop_assert!(matches!(view.writer, Some((_, ZoneState::Open(_)))));
            prop_assert!(matches!(view.followers[&key("a")], ZoneState::Following(Some(_))), "{:?}", view);
        }
    }
}
