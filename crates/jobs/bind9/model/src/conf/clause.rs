//! A configuration as a value: clauses of words and blocks → text that `named` reads.

use std::fmt::Write as _;

/// A clause: words and blocks up to a semicolon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clause {
    /// Its parts, in order.
    pub parts: Vec<ClausePart>,
}

/// A part of a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClausePart {
    /// A word without quotes. Whoever makes one vouches for it: it holds neither spaces nor anything that ends a clause.
    Word(String),
    /// A text in quotes.
    Quoted(String),
    /// Clauses in braces.
    Block(Vec<Clause>),
}

impl Clause {
    /// A clause of one word.
    pub fn word(word: impl Into<String>) -> Self {
        Self { parts: vec![ClausePart::Word(word.into())] }
    }

    /// A clause of words, parted by spaces: `listen-on port 5353`.
    pub fn words(words: &str) -> Self {
        Self {
            parts: words
                .split(' ')
                .filter(|word| !word.is_empty())
                .map(|word| ClausePart::Word(word.to_owned()))
                .collect(),
        }
    }

    /// The same with a word behind it.
    pub fn with(mut self, word: impl Into<String>) -> Self {
        self.parts.push(ClausePart::Word(word.into()));
        self
    }

    /// The same with a text in quotes behind it.
    pub fn quoted(mut self, text: impl Into<String>) -> Self {
        self.parts.push(ClausePart::Quoted(text.into()));
        self
    }

    /// The same with a block behind it.
    pub fn block(mut self, clauses: impl IntoIterator<Item = Clause>) -> Self {
        self.parts.push(ClausePart::Block(clauses.into_iter().collect()));
        self
    }

    /// The word at a place; also one in quotes.
    pub fn text(&self, place: usize) -> Option<&str> {
        match self.parts.get(place)? {
            ClausePart::Word(text) | ClausePart::Quoted(text) => Some(text),
            ClausePart::Block(_) => None,
        }
    }

    /// What it is about: its first word.
    pub fn name(&self) -> &str {
        self.text(0).unwrap_or_default()
    }

    /// Its last block.
    pub fn inner(&self) -> Option<&[Clause]> {
        self.parts.iter().rev().find_map(|part| match part {
            ClausePart::Block(clauses) => Some(clauses.as_slice()),
            ClausePart::Word(_) | ClausePart::Quoted(_) => None,
        })
    }

    /// The block right after a word.
    pub fn block_after(&self, word: &str) -> Option<&[Clause]> {
        let place = self.parts.iter().position(|part| matches!(part, ClausePart::Word(text) if text == word))?;
        match self.parts.get(place + 1)? {
            ClausePart::Block(clauses) => Some(clauses),
            ClausePart::Word(_) | ClausePart::Quoted(_) => None,
        }
    }

    /// The word right after a word: the port of `10.0.0.1 port 53`.
    pub fn after(&self, word: &str) -> Option<&str> {
        let place = self.parts.iter().position(|part| matches!(part, ClausePart::Word(text) if text == word))?;
        self.text(place + 1)
    }
}

/// The clause of a name, of several.
pub(crate) fn find<'a>(clauses: &'a [Clause], name: &str) -> Option<&'a Clause> {
    clauses.iter().find(|clause| clause.name() == name)
}

/// Clauses as text, four spaces a block.
pub fn render(clauses: &[Clause]) -> String {
    let mut text = String::new();
    write_all(&mut text, clauses, 0);
    text
}

fn write_all(text: &mut String, clauses: &[Clause], depth: usize) {
    for clause in clauses {
        text.push_str(&"    ".repeat(depth));
        write_clause(text, clause, depth);
        text.push_str(";\n");
    }
}

fn write_clause(text: &mut String, clause: &Clause, depth: usize) {
    for (place, part) in clause.parts.iter().enumerate() {
        if place > 0 {
            text.push(' ');
        }
        match part {
            ClausePart::Word(word) => text.push_str(word),
            ClausePart::Quoted(quoted) => {
                write!(text, "\"{}\"", escaped(quoted)).expect("writing to a string cannot fail");
            }
            ClausePart::Block(clauses) if is_short(clauses) => write_line(text, clauses, depth),
            ClausePart::Block(clauses) => {
                text.push_str("{\n");
                write_all(text, clauses, depth + 1);
                text.push_str(&"    ".repeat(depth));
                text.push('}');
            }
        }
    }
}

/// A block of a few words stands on one line: `{ any; }`.
fn is_short(clauses: &[Clause]) -> bool {
    let flat = |clause: &Clause| clause.inner().is_none();
    let words: usize = clauses.iter().map(|clause| clause.parts.len()).sum();
    clauses.iter().all(flat) && words <= 6
}

fn write_line(text: &mut String, clauses: &[Clause], depth: usize) {
    text.push_str("{ ");
    for clause in clauses {
        write_clause(text, clause, depth);
        text.push_str("; ");
    }
    text.push('}');
}

/// `named` reads a backslash in quotes as "the next character as it is".
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_blocks_stand_on_a_line_and_others_below() {
        let listen = Clause::words("listen-on port 5353").block([Clause::word("any")]);
        let options = Clause::word("options").block([listen.clone(), Clause::word("directory").quoted("/a b\"c")]);

        assert_eq!(render(&[listen]), "listen-on port 5353 { any; };\n");
        assert_eq!(
            render(&[options]),
            "options {\n    listen-on port 5353 { any; };\n    directory \"/a b\\\"c\";\n};\n"
        );
    }

    #[test]
    fn parts_are_found_by_the_word_before_them() {
        let controls = Clause::words("inet * port 9530").with("allow").block([Clause::word("any")]);

        assert_eq!(controls.after("port"), Some("9530"));
        assert_eq!(controls.block_after("allow"), Some([Clause::word("any")].as_slice()));
        assert_eq!((controls.name(), controls.block_after("keys")), ("inet", None));
    }
}
