//! Wanted objects and what stands at the other side → writes. Pure, the same for every kind of every job.
//!
//! What is ours is what carries our mark or what our status recorded; what carries another's mark is never touched;
//! what carries none is taken over only when it already is as wanted, or when the user says `adopt`.
//!
//! Where there is no field for a mark, the record alone says what is ours, and a note that is stored before a creation says
//! what is about to be: what a crash kept from being recorded is known by it.

mod note;

use std::collections::BTreeMap;

use crate::{Action, Change, Claim, Entry, Item, Mark, Problem, Target, digest_hex, reasons, user_text};

pub use note::CreatingNote;

/// How it is known whose a remote object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// A field of it carries a mark.
    Mark,
    /// No field can: what is recorded is ours, and a creation is noted before it is asked for.
    Intent,
}

/// What an object has recorded of its remote part.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnRecord<'a> {
    /// The ids.
    pub ids: &'a [String],
    /// The id of what existed before, and is released instead of deleted; marks say it themselves.
    pub adopted: Option<&'a str>,
    /// What was about to be made.
    pub creating: Option<&'a CreatingNote>,
    /// Digest of what was written and is never shown.
    pub unseen: Option<&'a str>,
}

/// One write to the other side.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteWrite<B> {
    /// Make a new object.
    Create {
        /// What is made.
        body: B,
    },
    /// Change an object of ours.
    Update {
        /// Its id.
        id: String,
        /// As it stands.
        before: B,
        /// As it shall stand.
        after: B,
    },
    /// Take over an object that nobody marked.
    Adopt {
        /// Its id.
        id: String,
        /// As it stands.
        before: B,
        /// As it shall stand.
        after: B,
    },
    /// Remove an object of ours.
    Delete {
        /// Its id.
        id: String,
        /// As it stands.
        before: B,
    },
    /// Leave an adopted object as it is, without our mark.
    Release {
        /// Its id.
        id: String,
        /// As it stands.
        before: B,
        /// As it shall stand.
        after: B,
    },
}

/// What is to be done, and what already is as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched<B> {
    /// Writes, in order.
    pub steps: Vec<RemoteWrite<B>>,
    /// Objects that stand as wanted.
    pub kept: Vec<Entry<B>>,
    /// Objects of others that stand beside ours, under the same natural key.
    pub beside: Vec<Entry<B>>,
}

/// What [`match_bodies`] decides from.
#[derive(Debug)]
pub struct Matching<'a, B> {
    /// How users call the remote object.
    pub noun: &'a str,
    /// What should exist, without marks.
    pub wanted: Vec<B>,
    /// What exists and might be ours: by recorded id, by mark, by natural key.
    pub candidates: Vec<Entry<B>>,
    /// What the status recorded.
    pub recorded: OwnRecord<'a>,
    /// Ids that other objects of ours recorded, and which ones: as good as their mark.
    pub elsewhere: &'a BTreeMap<String, String>,
    /// Our mark; not written for kinds without a field for it.
    pub mark: &'a Mark,
    /// Longest text of the field with the mark, where there is such a field.
    pub mark_limit: Option<usize>,
    /// Whether the user allows taking over what is not marked.
    pub adopt: bool,
    /// The annotation by which users allow it.
    pub annotation: &'a str,
}

/// An object that is ours, and whether it was adopted.
#[derive(Clone, Debug)]
struct Mine<B> {
    entry: Entry<B>,
    adopted: bool,
}

/// Finds the steps from what exists to what is wanted.
pub fn match_bodies<B: Item>(mut matching: Matching<'_, B>) -> Result<Matched<B>, Problem> {
    crate::waypoint!();
    let wanted: Vec<B> = matching.wanted.drain(..).map(normalised).collect();
    let sorted = sort_candidates(&matching, &wanted)?;
    let mut matched = Matched { steps: Vec::new(), kept: Vec::new(), beside: Vec::new() };
    let keys: Vec<String> = wanted.iter().map(B::natural_key).collect();
    let (wanted, mine) = keep_equal(&matching, wanted, sorted.mine, &mut matched);
    let (wanted, mine) = change_in_place(&matching, wanted, mine, &mut matched);
    let taken: Vec<String> = wanted.iter().map(B::natural_key).collect();
    let stays = |entry: &&Entry<B>| {
        let key = entry.item.natural_key();
        // Where nothing carries marks, a key of somebody else's object may be the same by chance.
        matching.mark_limit.is_some() && !matching.adopt && keys.contains(&key) && !taken.contains(&key)
    };
    matched.beside = sorted.unmarked.iter().filter(stays).cloned().collect();
    let creations = adopt_or_create(&matching, wanted, sorted.unmarked, &sorted.rivals)?;
    // What replaces comes before what it replaces; a batch, which is one transaction, deletes first by itself.
    matched.steps.extend(creations);
    matched.steps.extend(mine.into_iter().map(|mine| removal(&matching, mine)));
    Ok(matched)
}

/// Candidates by whose they are.
struct Sorted<B> {
    mine: Vec<Mine<B>>,
    unmarked: Vec<Entry<B>>,
    /// Of others, under another natural key, and in the way of what is wanted.
    rivals: Vec<Entry<B>>,
}

fn sort_candidates<B: Item>(matching: &Matching<'_, B>, wanted: &[B]) -> Result<Sorted<B>, Problem> {
    let mut sorted = Sorted { mine: Vec::new(), unmarked: Vec::new(), rivals: Vec::new() };
    let rival_keys: Vec<String> = wanted.iter().flat_map(B::rival_keys).collect();
    let noted = noted(matching);
    for entry in &matching.candidates {
        let same_key = wanted.iter().any(|body| body.natural_key() == entry.item.natural_key());
        let rival = rival_keys.contains(&entry.item.natural_key());
        match claim(matching, entry, noted) {
            Claim::Ours { adopted } => sorted.mine.push(Mine { entry: entry.clone(), adopted }),
            Claim::Unmarked if same_key => sorted.unmarked.push(entry.clone()),
            // Removals of a recorded object that someone else marked since are no longer ours to make.
            Claim::Foreign(owner) if same_key => return Err(foreign(matching, entry, &owner)),
            Claim::Unmarked if rival => sorted.rivals.push(entry.clone()),
            Claim::Foreign(owner) if rival && !is_of_installation(&owner, matching.mark) => {
                sorted.rivals.push(entry.clone());
            }
            Claim::Unmarked | Claim::Foreign(_) => {}
        }
    }
    Ok(sorted)
}

/// Whose a candidate is: as its mark says; without one, as is recorded here or elsewhere, or was noted.
fn claim<B: Item>(matching: &Matching<'_, B>, entry: &Entry<B>, noted: Option<&str>) -> Claim {
    match matching.mark.claim(entry.item.mark_text()) {
        Claim::Unmarked if matching.recorded.ids.contains(&entry.id) => {
            Claim::Ours { adopted: matching.recorded.adopted == Some(entry.id.as_str()) }
        }
        Claim::Unmarked => match matching.elsewhere.get(&entry.id) {
            Some(owner) => Claim::Foreign(owner.clone()),
            None if noted == Some(entry.id.as_str()) => Claim::Ours { adopted: false },
            None => Claim::Unmarked,
        },
        said => said,
    }
}

/// The candidate that was made by the creation that was noted. Where several could be it, none is: one of them may be
/// somebody else's, and what is unclear is not ours to delete.
fn noted<'a, B: Item>(matching: &'a Matching<'_, B>) -> Option<&'a str> {
    let note = matching.recorded.creating?;
    let free =
        |entry: &&Entry<B>| !matching.recorded.ids.contains(&entry.id) && !matching.elsewhere.contains_key(&entry.id);
    let mut announced = matching.candidates.iter().filter(free).filter(|entry| note.announces(&entry.item));
    let only = announced.next()?;
    announced.next().is_none().then_some(only.id.as_str())
}

/// Whether another's mark is of an object of the same cluster, or of an older operator, which did not say whose it is.
fn is_of_installation(owner: &str, mark: &Mark) -> bool {
    let said = owner.split_once('#').map(|(_, owner)| owner.split('+').next().unwrap_or_default());
    said.is_none_or(|said| said == mark.owner.as_str())
}

fn foreign<B: Item>(matching: &Matching<'_, B>, entry: &Entry<B>, owner: &str) -> Problem {
    Problem::invalid(
        reasons::CONFLICT_ERROR,
        format!(
            "the {} {} (id {}) is managed by {owner}; it was left untouched. Remove one of the two{}",
            matching.noun,
            entry.item.label(),
            entry.id,
            if matching.mark_limit.is_some() { ", or its mark in the comment" } else { "" }
        ),
    )
}

type Rest<B> = (Vec<B>, Vec<Mine<B>>);

/// Pairs what already is as wanted.
fn keep_equal<B: Item>(
    matching: &Matching<'_, B>,
    wanted: Vec<B>,
    mut mine: Vec<Mine<B>>,
    matched: &mut Matched<B>,
) -> Rest<B> {
    let mut rest = Vec::new();
    for body in wanted {
        let equal = mine
            .iter()
            .position(|mine| normalised(mine.entry.item.clone()) == marked(matching, body.clone(), mine.adopted))
            .filter(|_| matching.recorded.unseen == unseen(&body).as_deref());
        match equal {
            Some(index) => matched.kept.push(mine.swap_remove(index).entry),
            None => rest.push(body),
        }
    }
    (rest, mine)
}

/// Pairs what can be changed to what is wanted: same natural key first, then whatever the API lets us change.
fn change_in_place<B: Item>(
    matching: &Matching<'_, B>,
    mut wanted: Vec<B>,
    mut mine: Vec<Mine<B>>,
    matched: &mut Matched<B>,
) -> Rest<B> {
    let same_key = |body: &B, old: &B| body.natural_key() == old.natural_key();
    let changeable = |body: &B, old: &B| !body.replaces(old);
    for fits in [&same_key as &dyn Fn(&B, &B) -> bool, &changeable] {
        let mut rest = Vec::new();
        for body in wanted {
            match mine.iter().position(|mine| changeable(&body, &mine.entry.item) && fits(&body, &mine.entry.item)) {
                Some(index) => {
                    let mine = mine.swap_remove(index);
                    let after = marked(matching, body, mine.adopted);
                    matched.steps.push(RemoteWrite::Update { id: mine.entry.id, before: mine.entry.item, after });
                }
                None => rest.push(body),
            }
        }
        wanted = rest;
    }
    (wanted, mine)
}

fn adopt_or_create<B: Item>(
    matching: &Matching<'_, B>,
    wanted: Vec<B>,
    mut unmarked: Vec<Entry<B>>,
    others: &[Entry<B>],
) -> Result<Vec<RemoteWrite<B>>, Problem> {
    let mut steps = Vec::new();
    for body in wanted {
        let key = body.natural_key();
        let rivals: Vec<usize> = (0..unmarked.len()).filter(|&at| unmarked[at].item.natural_key() == key).collect();
        let equal = rivals.iter().copied().find(|&at| same_content(matching, &body, &unmarked[at].item));
        let chosen = match (equal, rivals.as_slice()) {
            (Some(at), _) => Some(at),
            (None, []) => None,
            (None, &[at]) if matching.adopt => Some(at),
            (None, [_]) => return Err(not_ours(matching, &body, &unmarked[rivals[0]].id)),
            (None, several) => return Err(ambiguous(matching, &body, several.len())),
        };
        let keys = body.rival_keys();
        let in_the_way = others.iter().find(|entry| chosen.is_none() && keys.contains(&entry.item.natural_key()));
        if let Some(entry) = in_the_way.filter(|_| !matching.adopt) {
            return Err(not_ours(matching, &entry.item, &entry.id));
        }
        steps.push(match chosen {
            None => RemoteWrite::Create { body: marked(matching, body, false) },
            Some(at) => {
                let Entry { id, item: before } = unmarked.swap_remove(at);
                RemoteWrite::Adopt { id, before, after: marked(matching, body, true) }
            }
        });
    }
    Ok(steps)
}

fn not_ours<B: Item>(matching: &Matching<'_, B>, body: &B, id: &str) -> Problem {
    Problem::invalid(
        reasons::CONFLICT_ERROR,
        format!(
            "the {} {} exists already (id {id}) and is not ours; it was left untouched. \
             Delete it, or take it over with the annotation {}: \"true\"",
            matching.noun,
            body.label(),
            matching.annotation
        ),
    )
}

fn ambiguous<B: Item>(matching: &Matching<'_, B>, body: &B, count: usize) -> Problem {
    Problem::invalid(
        reasons::CONFLICT_ERROR,
        format!(
            "{count} objects {} {} exist already and none is ours; none was touched. \
             Delete all but one, then take that one over with the annotation {}: \"true\"",
            matching.noun,
            body.label(),
            matching.annotation
        ),
    )
}

fn removal<B: Item>(matching: &Matching<'_, B>, mine: Mine<B>) -> RemoteWrite<B> {
    let Entry { id, item: before } = mine.entry;
    if !mine.adopted {
        return RemoteWrite::Delete { id, before };
    }
    let mut after = before.clone();
    if matching.mark_limit.is_some() {
        after.set_mark_text(user_text(before.mark_text()).to_owned());
    }
    RemoteWrite::Release { id, before, after }
}

/// Whether an unmarked object differs from the wanted one in nothing but the text that carries the mark.
fn same_content<B: Item>(matching: &Matching<'_, B>, body: &B, there: &B) -> bool {
    let mut there = normalised(there.clone());
    if matching.mark_limit.is_some() {
        there.set_mark_text(body.mark_text().to_owned());
    }
    there == *body
}

fn marked<B: Item>(matching: &Matching<'_, B>, mut body: B, adopted: bool) -> B {
    if let Some(limit) = matching.mark_limit {
        let mark = Mark { adopted, ..matching.mark.clone() };
        let text = mark.write(body.mark_text(), limit);
        body.set_mark_text(text);
    }
    body
}

/// Digest of what of an object is written and never shown; to be recorded, so that a change of it is known.
pub fn unseen<B: Item>(body: &B) -> Option<String> {
    Some(digest_hex([serde_json::to_string(&body.unseen()?).expect("members are plain JSON").as_str()], 16))
}

fn normalised<B: Item>(mut body: B) -> B {
    body.normalise();
    body
}

impl<B: Item> RemoteWrite<B> {
    /// Whether the step removes an object at Cloudflare.
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Delete { .. })
    }

    /// What the step deletes.
    pub fn deleted(&self) -> Option<&B> {
        match self {
            Self::Delete { before, .. } => Some(before),
            Self::Create { .. } | Self::Update { .. } | Self::Adopt { .. } | Self::Release { .. } => None,
        }
    }

    /// Whether the step leaves nothing of ours.
    pub fn removes(&self) -> bool {
        self.deletes() || self.releases()
    }

    /// Whether nothing is sent for the step: where nothing carries a mark, what is as wanted is taken over without a word,
    /// and given back without one.
    pub fn is_silent(&self) -> bool {
        match self {
            Self::Adopt { before, after, .. } | Self::Release { before, after, .. } => {
                B::MARK_LIMIT.is_none()
                    && after.unseen().is_none()
                    && normalised(before.clone()) == normalised(after.clone())
            }
            Self::Create { .. } | Self::Update { .. } | Self::Delete { .. } => false,
        }
    }

    /// Whether the step gives an object back to whoever had it before.
    pub fn releases(&self) -> bool {
        matches!(self, Self::Release { .. })
    }

    /// How users call what the step is about.
    pub fn label(&self) -> String {
        match self {
            Self::Create { body } => body.label(),
            Self::Update { after, .. } | Self::Adopt { after, .. } => after.label(),
            Self::Delete { before, .. } | Self::Release { before, .. } => before.label(),
        }
    }

    /// The step as users read it in a plan.
    pub fn change(&self, noun: &str, scope: &str, why: &str) -> Change {
        let (action, id, before, after) = match self {
            Self::Create { body } => (Action::Create, None, None, Some(body)),
            Self::Update { id, before, after } => (Action::Update, Some(id), Some(before), Some(after)),
            Self::Adopt { id, before, after } => (Action::Adopt, Some(id), Some(before), Some(after)),
            Self::Delete { id, before } => (Action::Delete, Some(id), Some(before), None),
            Self::Release { id, before, after } => (Action::Release, Some(id), Some(before), Some(after)),
        };
        Change {
            target: Target { kind: noun.to_owned(), scope: scope.to_owned(), name: self.label(), id: id.cloned() },
            action,
            before: before.map(|before| after.map_or_else(|| before.to_json(), |after| before.shown_beside(after))),
            after: after.map(B::to_json),
            why: why.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
