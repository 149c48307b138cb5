//! What a job tells of a hostname: who asks for it, how that stands, and everything that led there. Values, for people and for
//! programs.

use serde_json::Value;

use crate::object_health::ObjectHealth;

/// An object that asks for a name, with all that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct NameStory {
    /// Its kind and key, as `HTTPRoute apps/web`.
    pub asker: String,
    /// How it is.
    pub health: ObjectHealth,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// The rest for people, in order.
    pub lines: Vec<StoryLine>,
    /// All of it for programs.
    pub facts: Value,
}

/// One line of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryLine {
    /// What it is about, in a word; nothing where it goes on with the line before.
    pub about: &'static str,
    /// What there is to say.
    pub text: String,
}

impl StoryLine {
    /// A line about something.
    pub fn new(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, text: text.into() }
    }

    /// A line that goes on with the one before.
    pub fn more(text: impl Into<String>) -> Self {
        Self::new("", text)
    }
}
