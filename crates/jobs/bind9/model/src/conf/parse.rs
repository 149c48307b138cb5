//! Text of a configuration → clauses; or where it breaks off. Comments as in C, C++ and shells (`lib/isc/lex.c`).

use std::fmt;

use crate::conf::clause::{Clause, ClausePart};

/// Blocks within blocks.
const DEEPEST: usize = 32;
/// Octets in a file: what a `ConfigMap` holds.
const LONGEST: usize = 1024 * 1024;

/// A text that is no configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Reads a configuration.
pub fn parse(text: &str) -> Result<Vec<Clause>, ParseError> {
    let mut reader = Reader { rest: text, line: 1 };
    if text.len() > LONGEST {
        return Err(reader.error("the file is longer than a ConfigMap can hold"));
    }
    let clauses = reader.clauses(0)?;
    match reader.token()? {
        Token::End => Ok(clauses),
        _ => Err(reader.error("a block is closed that was not opened")),
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

enum Token {
    Word(String),
    Quoted(String),
    Open,
    Close,
    Semicolon,
    End,
}

impl Reader<'_> {
    fn error(&self, message: &'static str) -> ParseError {
        ParseError { line: self.line, message }
    }

    /// Clauses up to the end of their block, which is left to be read.
    fn clauses(&mut self, depth: usize) -> Result<Vec<Clause>, ParseError> {
        if depth > DEEPEST {
            return Err(self.error("blocks are nested too deeply"));
        }
        let mut all = Vec::new();
        loop {
            let (rest, line) = (self.rest, self.line);
            match self.token()? {
                Token::End | Token::Close => {
                    (self.rest, self.line) = (rest, line);
                    return Ok(all);
                }
                Token::Semicolon => return Err(self.error("nothing stands before the semicolon")),
                first => all.push(self.clause(first, depth)?),
            }
        }
    }

    fn clause(&mut self, first: Token, depth: usize) -> Result<Clause, ParseError> {
        let mut clause = Clause::default();
        let mut token = first;
        loop {
            match token {
                Token::Word(word) => clause.parts.push(ClausePart::Word(word)),
                Token::Quoted(text) => clause.parts.push(ClausePart::Quoted(text)),
                Token::Open => {
                    let inner = self.clauses(depth + 1)?;
                    let Token::Close = self.token()? else { return Err(self.error("a block is not closed")) };
                    clause.parts.push(ClausePart::Block(inner));
                }
                Token::Semicolon => return Ok(clause),
                Token::Close | Token::End => return Err(self.error("a semicolon is missing")),
            }
            token = self.token()?;
        }
    }

    fn token(&mut self) -> Result<Token, ParseError> {
        self.skip_blanks()?;
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        let single = match first {
            '{' => Some(Token::Open),
            '}' => Some(Token::Close),
            ';' => Some(Token::Semicolon),
            _ => None,
        };
        if let Some(token) = single {
            self.advance(1);
            return Ok(token);
        }
        if first == '"' {
            return self.quoted();
        }
        let is_word = |c: char| !c.is_whitespace() && !matches!(c, '{' | '}' | ';' | '"');
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        // A comment may begin right behind a word.
        let end = ["//", "/*", "#"].iter().filter_map(|mark| self.rest[..end].find(mark)).min().unwrap_or(end);
        let word = self.rest[..end].to_owned();
        self.advance(end);
        Ok(Token::Word(word))
    }

    fn quoted(&mut self) -> Result<Token, ParseError> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((place, c)) = chars.next() {
            match c {
                '"' => {
                    self.advance(place + 1);
                    return Ok(Token::Quoted(text));
                }
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                '\n' => return Err(self.error("a text in quotes does not end on its line")),
                c => text.push(c),
            }
        }
        Err(self.error("a text in quotes does not end"))
    }

    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest[2..].find("*/") else { return Err(self.error("a comment does not end")) };
                self.advance(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn advance(&mut self, octets: usize) {
        let (passed, rest) = self.rest.split_at(octets);
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conf::clause::render;

    #[test]
    fn comments_of_all_sorts_are_passed_over() {
        let text = "// one\n# two\n/* three\n four */ options { # five\n  recursion no;// six\n};\n";

        assert_eq!(render(&parse(text).unwrap()), "options { recursion no; };\n");
    }

    #[test]
    fn what_breaks_off_is_told_with_its_line() {
        for (text, line, message) in [
            ("options {\n  recursion no;\n", 3, "is not closed"),
            ("options { recursion no }\n", 1, "semicolon is missing"),
            ("a;\n};\n", 2, "not opened"),
            ("a;\n;\n", 2, "nothing stands"),
            ("a \"b\n\";", 1, "does not end on its line"),
            ("/* a", 1, "comment does not end"),
            ("recursion no", 1, "semicolon is missing"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains(message), "{text:?} said {error}");
            assert_eq!(error.line, line, "{text:?}");
        }
        assert!(parse(&"a {".repeat(1000)).unwrap_err().message.contains("too deeply"));
    }

    fn part() -> impl Strategy<Value = ClausePart> {
        let leaf = prop_oneof![
            "[a-z!*0-9./:_-]{1,8}"
                .prop_filter("no comment", |word| !word.contains("//") && !word.contains("/*"))
                .prop_map(ClausePart::Word),
            "[ -~]{0,8}".prop_map(ClausePart::Quoted),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let clause = proptest::collection::vec(inner, 1..4).prop_map(|parts| Clause { parts });
            proptest::collection::vec(clause, 0..4).prop_map(ClausePart::Block)
        })
    }

    proptest! {
        #[test]
        fn what_was_written_reads_the_same(parts in proptest::collection::vec(part(), 1..5)) {
            let clauses = vec![Clause { parts }];

            prop_assert_eq!(parse(&render(&clauses)).unwrap(), clauses);
        }

        #[test]
        fn no_text_is_too_much(text in "\\PC{0,200}") {
            drop(parse(&text));
        }
    }
}
