//! Who may write what several tasks share: one worker at a time a tunnel's configuration, one task at a time a token's name.

pub(crate) mod documents;
pub(crate) mod token_names;
