//! Ownership marks: `[managed:Kind/namespace/name#owner]` at the beginning of a comment or description.
//!
//! Marks of older operators are read too: without `#owner`, with `[managed-by:`, and not at the beginning.

use crate::{ObjectId, ObjectKey, OwnerId, owner::digest_hex, text};

/// How a mark begins; the first is written, both are read.
const OPENINGS: [&str; 2] = ["[managed:", "[managed-by:"];
/// What follows the owner where the object was not made by us.
const ADOPTED: &str = "adopted";

/// Who an object at the other side belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The kind of the Kubernetes object, as `DNSRecord`.
    pub kind: String,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// The installation that it belongs to.
    pub owner: OwnerId,
    /// Whether it existed before we took it over: then it is released, not deleted.
    pub adopted: bool,
}

/// What a text says about who owns the thing that carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nobody said that it is theirs.
    Unmarked,
    /// It is this object's.
    Ours {
        /// Whether it existed before it was taken over.
        adopted: bool,
    },
    /// It is somebody else's; the text between the brackets names them.
    Foreign(String),
}

impl Mark {
    /// The mark, then a space and as much of the user's text as fits into `cap` characters. The mark itself is never
    /// cut: where it would take more than three quarters of the cap its names are replaced by their hash, and a cap
    /// too small even for that is exceeded.
    pub fn write(&self, user: &str, cap: usize) -> String {
        crate::waypoint!();
        let mark = self.text(cap);
        let room = cap.saturating_sub(mark.chars().count() + 1);
        // Blanks at the ends are cut by some APIs: written, they would differ for ever.
        match text::truncate(user.trim(), room).trim_end() {
            "" => mark,
            user => format!("{mark} {user}"),
        }
    }

    /// Whose the thing with this text is, seen from this mark's object.
    pub fn claim(&self, text: &str) -> Claim {
        let Some(found) = FoundMark::first_in(text) else { return Claim::Unmarked };
        let same_object = found.object == self.object() || found.object == self.hashed();
        let same_owner = found.owner.is_none_or(|owner| owner == self.owner.as_str());
        if same_object && same_owner {
            Claim::Ours { adopted: found.adopted }
        } else {
            Claim::Foreign(found.inside.to_owned())
        }
    }

    /// The keys under which [`owner_key`] finds what this mark's object owns: by its name, and by its name's hash.
    pub fn owner_keys(&self) -> [String; 2] {
        [self.object(), self.hashed()]
    }

    fn text(&self, cap: usize) -> String {
        let full = self.around(&self.object());
        if full.chars().count() <= cap / 4 * 3 { full } else { self.around(&self.hashed()) }
    }

    fn around(&self, object: &str) -> String {
        let flag = if self.adopted { "+adopted" } else { "" };
        format!("{}{object}#{}{flag}]", OPENINGS[0], self.owner)
    }

    fn object(&self) -> String {
        ObjectId::new(self.kind.clone(), self.key.clone()).to_string()
    }

    fn hashed(&self) -> String {
        format!("{}/~{}", self.kind, digest_hex([self.object().as_str()], 16))
    }
}

/// The user's part of a text that may carry a mark: what follows it, or what precedes one that is not at the beginning.
pub fn user_text(text: &str) -> &str {
    match FoundMark::first_in(text) {
        None => text,
        Some(found) if found.start == 0 => text[found.end..].trim_start(),
        Some(found) => text[..found.start].trim_end(),
    }
}

/// The object that a mark in the text names, whoever's cluster it is in.
pub fn owner_key(text: &str) -> Option<&str> {
    FoundMark::first_in(text).map(|found| found.object)
}

/// A mark as it stands in a text.
struct FoundMark<'a> {
    start: usize,
    end: usize,
    inside: &'a str,
    object: &'a str,
    owner: Option<&'a str>,
    adopted: bool,
}

impl<'a> FoundMark<'a> {
    /// The first opening and the next bracket, with two or three parts between them; anything else is no mark.
    fn first_in(text: &'a str) -> Option<Self> {
        let (start, opening) =
            OPENINGS.iter().filter_map(|opening| Some((text.find(opening)?, opening))).min_by_key(|(at, _)| *at)?;
        let (inside, _) = text[start + opening.len()..].split_once(']')?;
        let (object, owner) = inside.split_once('#').map_or((inside, None), |(object, owner)| (object, Some(owner)));
        let parts = object.split('/').count();
        if !(2..=3).contains(&parts) || object.split('/').any(str::is_empty) {
            return None;
        }
        let (owner, flags) = owner.map_or((None, ""), |owner| match owner.split_once('+') {
            Some((owner, flags)) => (Some(owner), flags),
            None => (Some(owner), ""),
        });
        let adopted = flags.split('+').any(|flag| flag == ADOPTED);
        let end = start + opening.len() + inside.len() + 1;
        Some(Self { start, end, inside, object, owner, adopted })
    }
}

#[cfg(test)]
mod tests;
