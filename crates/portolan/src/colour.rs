//! Colours on terminals that want them.

use std::io::IsTerminal as _;

/// Whether colours are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    /// Colours.
    On,
    /// Plain text.
    Off,
}

/// What a colour says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tone {
    Good,
    Waiting,
    Bad,
    Strong,
}

impl Colours {
    /// Colours for standard output: on terminals, unless `NO_COLOR` is set.
    pub(crate) fn for_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if std::io::stdout().is_terminal() && !refused { Self::On } else { Self::Off }
    }

    /// Text in a colour.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Waiting => "33",
            Tone::Bad => "31",
            Tone::Strong => "1",
        };
        match self {
            Self::On => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Self::Off => text.to_owned(),
        }
    }

    /// The same choice for plans.
    pub(crate) fn colour(self) -> portolan_core::Colour {
        match self {
            Self::On => portolan_core::Colour::On,
            Self::Off => portolan_core::Colour::Off,
        }
    }
}
