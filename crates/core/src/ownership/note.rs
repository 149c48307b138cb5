//! What is about to be made → a note for the status; an object that was found → whether it is what the note announced.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::normalised;
use crate::{Item, digest_hex};

/// So long does a note stand for the requests that follow it; then it is written anew before another one. What somebody else
/// makes of the same content long after a request failed is not ours.
const LIFE: SignedDuration = SignedDuration::from_mins(10);
/// Clocks that differ by more than this cost a deletion, never an object: what is not recognised is adopted, and released
/// in the end.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// What is about to be made, stored before the request that makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatingNote {
    /// Digest of its content.
    pub digest: String,
    /// When it was noted, RFC 3339.
    pub since: String,
}

impl CreatingNote {
    /// The note for a creation at `now`. One that says the same keeps its time while it is recent, so that trying again
    /// costs no write.
    pub fn of<B: Item>(body: &B, now: &str, before: Option<&Self>) -> Self {
        let note = Self { digest: digest(body), since: now.to_owned() };
        match before {
            Some(before) if before.digest == note.digest && before.is_recent(&note) => before.clone(),
            Some(_) | None => note,
        }
    }

    /// Whether an object has the content that was noted.
    pub fn describes<B: Item>(&self, there: &B) -> bool {
        digest(there) == self.digest
    }

    /// Whether an object is what the note announced: of the same content, and made while that was being made.
    pub(super) fn announces<B: Item>(&self, there: &B) -> bool {
        let (Some(made), Ok(since)) = (there.made_at(), self.since.parse::<Timestamp>()) else { return false };
        let age = made.duration_since(since);
        (-CLOCK_TOLERANCE..=LIFE + CLOCK_TOLERANCE).contains(&age) && self.describes(there)
    }

    fn is_recent(&self, later: &Self) -> bool {
        let time = |note: &Self| note.since.parse::<Timestamp>().ok();
        let age = time(later).zip(time(self)).map(|(later, before)| later.duration_since(before));
        age.is_some_and(|age| (SignedDuration::ZERO..LIFE).contains(&age))
    }
}

fn digest<B: Item>(body: &B) -> String {
    digest_hex([normalised(body.clone()).to_json().to_string().as_str()], 16)
}
