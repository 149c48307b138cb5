//! `labelSelector` and `fieldSelector` texts → predicates.

use crate::status::ApiError;
use crate::store::Labels;

/// A label selector: every requirement must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),!h,i>5`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        Parser { tokens: lex(text), position: 0 }.selector().map_err(|e| ApiError::bad_request(e.0))
    }

    /// Whether everything matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|r| r.holds(find(labels, &r.key)))
    }
}

fn find<'a>(labels: &'a Labels, key: &str) -> Option<&'a str> {
    let labels = labels.as_ref()?;
    let at = labels.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
    Some(&labels[at].1)
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = |v: &str| v.parse::<i64>().ok();
        match (&self.test, value) {
            (Test::In(values), Some(value)) => values.iter().any(|v| v == value),
            (Test::NotIn(values), Some(value)) => values.iter().all(|v| v != value),
            (Test::Greater(bound), Some(value)) => number(value).is_some_and(|n| n > *bound),
            (Test::Less(bound), Some(value)) => number(value).is_some_and(|n| n < *bound),
            (Test::Exists, found) => found.is_some(),
            (Test::Absent, found) => found.is_none(),
            (Test::NotIn(_), None) => true,
            (Test::In(_) | Test::Greater(_) | Test::Less(_), None) => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SelectorToken {
    Word(String),
    Sign(&'static str),
    End,
}

impl SelectorToken {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
            Self::End => "",
        }
    }
}

const SIGNS: [&str; 10] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<", "~"];

fn lex(text: &str) -> Vec<SelectorToken> {
    let mut tokens = Vec::new();
    // A NUL ends the text.
    let mut rest = text.split('\0').next().unwrap_or_default().trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS[..9].iter().find(|s| rest.starts_with(**s)) {
            tokens.push(SelectorToken::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "=!(),><".contains(c)).unwrap_or(rest.len());
            tokens.push(SelectorToken::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    tokens.push(SelectorToken::End);
    tokens
}

struct Wrong(String);

struct Parser {
    tokens: Vec<SelectorToken>,
    position: usize,
}

impl Parser {
    fn peek(&self) -> &SelectorToken {
        self.tokens.get(self.position).unwrap_or(&SelectorToken::End)
    }

    fn next(&mut self) -> SelectorToken {
        let token = self.peek().clone();
        self.position += 1;
        token
    }

    fn selector(mut self) -> Result<LabelSelector, Wrong> {
        let mut requirements = Vec::new();
        if *self.peek() == SelectorToken::End {
            return Ok(LabelSelector { requirements });
        }
        loop {
            match self.peek() {
                SelectorToken::Word(_) | SelectorToken::Sign("!") => {
                    let requirement =
                        self.requirement().map_err(|e| Wrong(format!("unable to parse requirement: {}", e.0)))?;
                    requirements.push(requirement);
                }
                other => {
                    return Err(Wrong(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    )));
                }
            }
            match self.next() {
                SelectorToken::End => return Ok(LabelSelector { requirements }),
                SelectorToken::Sign(",") => {
                    if !matches!(self.peek(), SelectorToken::Word(_) | SelectorToken::Sign("!")) {
                        let found = self.peek().text();
                        return Err(Wrong(format!("found '{found}', expected: identifier after ','")));
                    }
                }
                other => {
                    return Err(Wrong(format!("found '{}', expected: ',' or 'end of string'", other.text())));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Wrong> {
        let negated = *self.peek() == SelectorToken::Sign("!");
        if negated {
            self.next();
        }
        let key = match self.next() {
            SelectorToken::Word(word) => word,
            other => return Err(Wrong(format!("found '{}', expected: identifier", other.text()))),
        };
        check_key(&key)?;
        if negated {
            return match self.peek() {
                SelectorToken::Sign(",") | SelectorToken::End => Ok(Requirement { key, test: Test::Absent }),
                other => Err(Wrong(format!("found '{}', expected: ',' or 'end of string'", other.text()))),
            };
        }
        let test = match self.peek().clone() {
            SelectorToken::Sign(",") | SelectorToken::End => Test::Exists,
            SelectorToken::Sign("=" | "==") => Test::In(vec![self.operand(&key)?]),
            SelectorToken::Sign("!=") => Test::NotIn(vec![self.operand(&key)?]),
            SelectorToken::Sign(">") => Test::Greater(self.bound(&key)?),
            SelectorToken::Sign("<") => Test::Less(self.bound(&key)?),
            SelectorToken::Word(word) if word == "in" => Test::In(self.set(&key)?),
            SelectorToken::Word(word) if word == "notin" => Test::NotIn(self.set(&key)?),
            other => {
                let expected = "in, notin, =, ==, !=, gt, lt";
                return Err(Wrong(format!("found '{}', expected: {expected}", other.text())));
            }
        };
        Ok(Requirement { key, test })
    }

    /// The word after a sign; nothing there is the empty value.
    fn operand(&mut self, key: &str) -> Result<String, Wrong> {
        self.next();
        let value = match self.peek().clone() {
            SelectorToken::Word(word) => {
                self.next();
                word
            }
            SelectorToken::Sign(",") | SelectorToken::End => String::new(),
            SelectorToken::Sign(other) => return Err(Wrong(format!("found '{other}', expected: identifier"))),
        };
        check_value(key, &value)?;
        Ok(value)
    }

    fn bound(&mut self, key: &str) -> Result<i64, Wrong> {
        let value = self.operand(key)?;
        value.parse().map_err(|_| {
            Wrong(format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ))
        })
    }

    fn set(&mut self, key: &str) -> Result<Vec<String>, Wrong> {
        self.next();
        if *self.peek() != SelectorToken::Sign("(") {
            return Err(Wrong(format!("found '{}' expected: '('", self.peek().text())));
        }
        self.next();
        let mut values = Vec::new();
        let mut last_was_value = false;
        loop {
            match self.next() {
                SelectorToken::Word(word) => {
                    check_value(key, &word)?;
                    values.push(word);
                    last_was_value = true;
                }
                SelectorToken::Sign(",") => {
                    if !last_was_value {
                        values.push(String::new());
                    }
                    last_was_value = false;
                }
                SelectorToken::Sign(")") => {
                    if !last_was_value {
                        values.push(String::new());
                    }
                    values.sort();
                    values.dedup();
                    return Ok(values);
                }
                other => {
                    return Err(Wrong(format!("found '{}', expected: ',', ')' or identifier", other.text())));
                }
            }
        }
    }
}

fn check_key(key: &str) -> Result<(), Wrong> {
    portolan_builtin::names::qualified_name(key)
        .first()
        .map_or(Ok(()), |why| Err(Wrong(format!("<nil>: Invalid value: {key:?}: {why}"))))
}

fn check_value(key: &str, value: &str) -> Result<(), Wrong> {
    portolan_builtin::names::label_value(value)
        .first()
        .map_or(Ok(()), |why| Err(Wrong(format!("values[0][{key}]: Invalid value: {value:?}: {why}"))))
}

/// A field selector: every field must have, or not have, its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One `field=value` or `field!=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldTerm {
    /// The field, such as `metadata.name`.
    pub(crate) field: String,
    /// The value.
    pub(crate) value: String,
    /// Whether the field must have it.
    pub(crate) equal: bool,
}

impl FieldSelector {
    /// Reads `metadata.name=a,status.phase!=Running`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let terms = split_terms(text).into_iter().filter(|t| !t.is_empty()).map(|t| parse_term(&t, text));
        Ok(Self { terms: terms.collect::<Result<_, _>>()? })
    }

    /// Whether everything matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms.
    pub(crate) fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The value that a field must have, where the selector says so.
    pub(crate) fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| t.equal && t.field == field).map(|t| t.value.as_str())
    }

    /// Whether an object whose fields are read by `value_of` is selected.
    pub(crate) fn matches(&self, value_of: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|t| (value_of(&t.field) == t.value) == t.equal)
    }
}

fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        if let Some(term) = terms.last_mut() {
            term.push(c);
        }
    }
    terms
}

fn parse_term(term: &str, whole: &str) -> Result<FieldTerm, ApiError> {
    let bytes = term.as_bytes();
    for i in 0..bytes.len() {
        let rest = &term.as_bytes()[i..];
        let (equal, width) = match rest {
            [b'!', b'=', ..] => (false, 2),
            [b'=', b'=', ..] => (true, 2),
            [b'=', ..] => (true, 1),
            _ => continue,
        };
        let value = unescape(&term[i + width..])?;
        return Ok(FieldTerm { field: term[..i].to_owned(), value, equal });
    }
    Err(ApiError::bad_request(format!("invalid selector: '{whole}'; can't understand '{term}'")))
}

fn unescape(value: &str) -> Result<String, ApiError> {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                other => {
                    let found = other.map_or_else(|| "\\".to_owned(), |c| format!("\\{c}"));
                    return Err(ApiError::bad_request(format!(
                        "invalid field selector: invalid escape sequence: {found}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(ApiError::bad_request(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            plain => text.push(plain),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the type of stored labels")]
    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Some(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect())
    }

    #[test]
    fn label_selectors_select_what_they_say() {
        let web = labels(&[("app", "web"), ("tier", "3")]);
        let cases = [
            ("", true),
            ("app", true),
            ("!app", false),
            ("app=web", true),
            ("app==web,tier=3", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web, api)", true),
            ("app notin (web)", false),
            ("other notin (web)", true),
            ("other in ()", false),
            ("tier>2", true),
            ("tier<2", false),
            ("other=", false),
        ];
        for (text, expected) in cases {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&web), expected, "{text}");
        }
    }

    #[test]
    fn malformed_label_selectors_are_refused() {
        for text in ["a=b,", "a in b", "a=b c", "=", "a in (b", "a >", "a>x", "!a=b", ",a", "a$b=c", "a=b/c"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn field_selectors_take_escapes_and_refuse_the_rest() {
        let selector = FieldSelector::parse(r"metadata.name=a\,b,status.phase!=Running").unwrap();

        assert_eq!(selector.terms()[0].value, "a,b");
        assert!(selector.matches(|f| if f == "metadata.name" { "a,b".into() } else { "Pending".into() }));
        assert!(FieldSelector::parse("metadata.name").is_err());
        assert!(FieldSelector::parse(r"a=\x").is_err());
    }
}
