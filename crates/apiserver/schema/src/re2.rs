//! A regular expression in Go's syntax → the same expression for the `regex` crate.
//!
//! The two agree on most of the syntax. They differ in ASCII classes (`\d`, `\w`, `\s`, `\b` know no other alphabets in
//! Go), in `[` and doubled operators inside a class, in braces that repeat nothing, in `\Q…\E`, `\<` and octals.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};

/// Go refuses larger counts.
const LARGEST_REPEAT: u32 = 1000;

/// Compiles Go's syntax; the error is the sentence that Go's compiler gives, where it is a known one.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate(pattern)?;
    RegexBuilder::new(&translated).size_limit(1 << 26).build().map_err(|error| explain(pattern, &error))
}

fn explain(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let known = [
        ("unclosed group", "missing closing )"),
        ("unopened group", "unexpected )"),
        ("unclosed character class", "missing closing ]"),
        ("repetition operator missing expression", "missing argument to repetition operator"),
        ("look-around", "invalid or unsupported Perl syntax"),
        ("backreferences", "invalid escape sequence"),
        ("unrecognized escape", "invalid escape sequence"),
        ("invalid character class range", "invalid character class range"),
    ];
    let reason =
        known.iter().find(|(ours, _)| text.contains(ours)).map_or("invalid or unsupported syntax", |(_, go)| go);
    let shown = match reason {
        "missing argument to repetition operator" => pattern.chars().find(|c| "*+?".contains(*c)).map(String::from),
        "missing closing ]" => pattern.rfind('[').map(|at| pattern[at..].to_owned()),
        "invalid or unsupported Perl syntax" => pattern.find("(?").map(|at| pattern[at..].chars().take(3).collect()),
        "invalid character class range" => reversed_range(pattern),
        _ => None,
    };
    format!("error parsing regexp: {reason}: `{}`", shown.unwrap_or_else(|| pattern.to_owned()))
}

/// The first `z-a` of a pattern.
fn reversed_range(pattern: &str) -> Option<String> {
    let characters: Vec<char> = pattern.chars().collect();
    let found = characters.windows(3).find(|range| range[1] == '-' && range[0] > range[2])?;
    Some(found.iter().collect())
}

fn translate(pattern: &str) -> Result<String, String> {
    let mut translator =
        Translator { input: pattern.chars().collect(), at: 0, output: String::with_capacity(pattern.len()) };
    translator.run()?;
    Ok(translator.output)
}

struct Translator {
    input: Vec<char>,
    at: usize,
    output: String,
}

impl Translator {
    fn run(&mut self) -> Result<(), String> {
        // Where the repetition before this character began.
        let mut repetition = None;
        while let Some(c) = self.next() {
            let begin = self.at - 1;
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '{' => self.brace()?,
                '}' => self.output.push_str("\\}"),
                c => self.output.push(c),
            }
            let repeats = matches!(c, '*' | '+' | '?') || (c == '{' && self.at > begin + 1);
            if let Some(first) = repetition.filter(|_| repeats) {
                let nested: String = self.input[first..self.at].iter().collect();
                return Err(format!("error parsing regexp: invalid nested repetition operator: `{nested}`"));
            }
            repetition = (repeats && begin > 0 && self.input[begin - 1] != '(').then_some(begin);
            if repetition.is_some() && self.peek() == Some('?') {
                self.at += 1;
                self.output.push('?');
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Option<char> {
        let c = self.input.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn peek(&self) -> Option<char> {
        self.input.get(self.at).copied()
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(c) = self.next() else {
            return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
        };
        match c {
            'd' => self.output.push_str("[0-9]"),
            'D' => self.output.push_str("[^0-9]"),
            'w' => self.output.push_str("[0-9A-Za-z_]"),
            'W' => self.output.push_str("[^0-9A-Za-z_]"),
            's' => self.output.push_str("[\\t\\n\\f\\r ]"),
            'S' => self.output.push_str("[^\\t\\n\\f\\r ]"),
            'b' => self.output.push_str("(?-u:\\b)"),
            'Q' => self.quoted(),
            '0'..='7' => self.octal(c)?,
            c => self.plain_escape(c),
        }
        Ok(())
    }

    fn plain_escape(&mut self, c: char) {
        if matches!(c, '<' | '>') {
            self.output.push(c);
        } else {
            self.output.push('\\');
            self.output.push(c);
        }
        // `\p{Greek}` and `\x{10FF}` keep their braces.
        if matches!(c, 'p' | 'P' | 'x') && self.peek() == Some('{') {
            while let Some(c) = self.next() {
                self.output.push(c);
                if c == '}' {
                    break;
                }
            }
        }
    }

    fn octal(&mut self, first: char) -> Result<(), String> {
        if first != '0' && !self.peek().is_some_and(|c| c.is_digit(8)) {
            return Err(format!("error parsing regexp: invalid escape sequence: `\\{first}`"));
        }
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else {
                break;
            };
            code = code * 8 + digit;
            self.at += 1;
        }
        write!(self.output, "\\x{{{code:x}}}").expect("a string takes any text");
        Ok(())
    }

    fn quoted(&mut self) {
        let mut literal = String::new();
        while let Some(c) = self.next() {
            if c == '\\' && self.peek() == Some('E') {
                self.at += 1;
                break;
            }
            literal.push(c);
        }
        self.output.push_str(&regex::escape(&literal));
    }

    /// `{2,5}` repeats; any other brace is itself.
    fn brace(&mut self) -> Result<(), String> {
        let rest: String = self.input[self.at..].iter().take_while(|c| **c != '}').collect();
        let closed = self.input.get(self.at + rest.chars().count()) == Some(&'}');
        let (low, high) = rest.split_once(',').unwrap_or((&rest, "0"));
        let count = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if !(closed && count(low) && (high.is_empty() || count(high))) {
            self.output.push_str("\\{");
            return Ok(());
        }
        if [low, high].iter().any(|n| !n.is_empty() && n.parse::<u32>().map_or(true, |n| n > LARGEST_REPEAT)) {
            return Err(format!("error parsing regexp: invalid repeat count: `{{{rest}}}`"));
        }
        self.output.push('{');
        self.output.push_str(&rest);
        self.output.push('}');
        self.at += rest.chars().count() + 1;
        Ok(())
    }

    fn class(&mut self) -> Result<(), String> {
        self.output.push('[');
        if self.peek() == Some('^') {
            self.at += 1;
            self.output.push('^');
        }
        let mut first = true;
        while let Some(c) = self.next() {
            match c {
                ']' if first => self.output.push_str("\\]"),
                ']' => {
                    self.output.push(']');
                    return Ok(());
                }
                '[' if self.peek() == Some(':') && self.named_class() => {}
                '[' | '&' | '~' => {
                    self.output.push('\\');
                    self.output.push(c);
                }
                '-' if first || self.peek() == Some(']') => self.output.push_str("\\-"),
                '\\' => self.class_escape()?,
                c => self.output.push(c),
            }
            first = false;
        }
        Ok(())
    }

    /// `[:alpha:]` inside a class.
    fn named_class(&mut self) -> bool {
        let rest: String = self.input[self.at..].iter().collect();
        let Some(end) = rest.find(":]") else { return false };
        if !rest[1..end].chars().all(|c| c.is_ascii_alphabetic() || c == '^') {
            return false;
        }
        self.output.push('[');
        self.output.push_str(&rest[..end + 2]);
        self.at += end + 2;
        true
    }

    fn class_escape(&mut self) -> Result<(), String> {
        let Some(c) = self.next() else {
            return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
        };
        match c {
            'd' => self.output.push_str("0-9"),
            'D' => self.output.push_str("\\x00-/:-\\x{10FFFF}"),
            'w' => self.output.push_str("0-9A-Za-z_"),
            'W' => self.output.push_str("\\x00-/:-@\\[-\\^`\\{-\\x{10FFFF}"),
            's' => self.output.push_str("\\t\\n\\f\\r "),
            'S' => self.output.push_str("\\x00-\\x08\\x0B\\x0E-\\x1F!-\\x{10FFFF}"),
            '0'..='7' => self.octal(c)?,
            c => self.plain_escape(c),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern).unwrap().is_match(text)
    }

    #[test]
    fn classes_are_ascii_as_in_go() {
        assert!(matches(r"^\d+$", "123") && !matches(r"^\d+$", "١"));
        assert!(!matches(r"^\w$", "é") && !matches(r"^[\w-]$", "é") && matches(r"^[\w-]$", "-"));
        assert!(matches(r"^[^\s/]+$", "a\u{a0}b"));
    }

    #[test]
    fn brackets_and_doubled_operators_inside_a_class_are_literal() {
        assert!(matches(r"^[[a]$", "[") && matches(r"^[a&&b]$", "&") && matches(r"^[]]$", "]"));
        assert!(matches(r"^[[:alpha:]_]+$", "ab_"));
        assert!(matches(r"^[a-z-]$", "-") && matches(r"^[\]-]$", "-"));
    }

    #[test]
    fn braces_without_a_count_are_literal() {
        assert!(matches(r"^\$\{a}$", "${a}") && matches("^a{,5}$", "a{,5}") && matches("^a{2,3}$", "aaa"));
        assert!(matches("^{x}$", "{x}") && matches("^(?:a+?b*?)?$", "ab") && matches("^a{2}?$", "aa"));
    }

    #[test]
    fn go_only_forms_are_understood() {
        assert!(matches(r"(?i)\AABC\z", "abc") && matches(r"^\pL$", "é") && matches(r"^\p{Greek}$", "α"));
        assert!(matches(r"^\Qa.b\E$", "a.b") && !matches(r"^\Qa.b\E$", "axb"));
        assert!(matches(r"^\<$", "<"));
    }

    #[test]
    fn errors_read_as_go_words_them() {
        assert_eq!(compile("a{1001}").unwrap_err(), "error parsing regexp: invalid repeat count: `{1001}`");
        assert_eq!(compile("(a").unwrap_err(), "error parsing regexp: missing closing ): `(a`");
        assert_eq!(compile("a(?=b)").unwrap_err(), "error parsing regexp: invalid or unsupported Perl syntax: `(?=`");
    }
}
