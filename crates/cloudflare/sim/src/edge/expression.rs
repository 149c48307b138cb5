//! Cloudflare's rules language, as far as redirects use it.
//!
//! `and`, `or`, `not`, parentheses, comparisons, sets, the fields of a URL and a few functions. What is not known is an
//! error, not a guess.

use super::{domain::glob, request::EdgeRequest};

/// What an expression is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Worth {
    Text(String),
    Bool(bool),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ExpressionToken {
    Word(String),
    Quoted(String),
    Sign(&'static str),
}

/// Whether a request fits a filter.
pub(super) fn holds(expression: &str, request: &EdgeRequest) -> Result<bool, String> {
    match evaluate(expression, request)? {
        Worth::Bool(holds) => Ok(holds),
        Worth::Text(text) => Err(format!("\"{text}\" is neither true nor false")),
    }
}

/// The text that an expression gives for a request.
pub(super) fn write(expression: &str, request: &EdgeRequest) -> Result<String, String> {
    match evaluate(expression, request)? {
        Worth::Text(text) => Ok(text),
        Worth::Bool(_) => Err("the expression gives no text".to_owned()),
    }
}

fn evaluate(expression: &str, request: &EdgeRequest) -> Result<Worth, String> {
    let tokens = tokens(expression)?;
    let mut reader = ExpressionReader { tokens: &tokens, at: 0, request };
    let worth = reader.either()?;
    match reader.peek() {
        None => Ok(worth),
        Some(token) => Err(format!("{token:?} is not expected")),
    }
}

const SIGNS: [&str; 10] = ["==", "!=", "&&", "||", "!", "(", ")", "{", "}", ","];

fn tokens(expression: &str) -> Result<Vec<ExpressionToken>, String> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while !rest.is_empty() {
        let (token, after) = token(rest)?;
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

fn token(rest: &str) -> Result<(ExpressionToken, &str), String> {
    if let Some(raw) = rest.strip_prefix("r\"") {
        let (text, after) = raw.split_once('"').ok_or("a text does not end")?;
        return Ok((ExpressionToken::Quoted(text.to_owned()), after));
    }
    if let Some(quoted) = rest.strip_prefix('"') {
        return self::quoted(quoted);
    }
    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        return Ok((ExpressionToken::Sign(sign), &rest[sign.len()..]));
    }
    let word = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let end = rest.find(|letter| !word(letter)).unwrap_or(rest.len());
    match end {
        0 => Err(format!("{rest:?} cannot be read")),
        end => Ok((ExpressionToken::Word(rest[..end].to_owned()), &rest[end..])),
    }
}

fn quoted(rest: &str) -> Result<(ExpressionToken, &str), String> {
    let mut text = String::new();
    let mut letters = rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((ExpressionToken::Quoted(text), &rest[at + 1..])),
            '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
            letter => text.push(letter),
        }
    }
    Err("a text does not end".to_owned())
}

struct ExpressionReader<'a> {
    tokens: &'a [ExpressionToken],
    at: usize,
    request: &'a EdgeRequest,
}

impl ExpressionReader<'_> {
    fn peek(&self) -> Option<&ExpressionToken> {
        self.tokens.get(self.at)
    }

    /// Takes one of these words or signs.
    fn take(&mut self, spellings: &[&str]) -> bool {
        let found = match self.peek() {
            Some(ExpressionToken::Word(word)) => spellings.contains(&word.as_str()),
            Some(ExpressionToken::Sign(sign)) => spellings.contains(sign),
            Some(ExpressionToken::Quoted(_)) | None => false,
        };
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take(&[sign]) { Ok(()) } else { Err(format!("{sign} is missing")) }
    }

    fn either(&mut self) -> Result<Worth, String> {
        let mut worth = self.both()?;
        while self.take(&["or", "||"]) {
            let (left, right) = (truth(&worth)?, truth(&self.both()?)?);
            worth = Worth::Bool(left || right);
        }
        Ok(worth)
    }

    fn both(&mut self) -> Result<Worth, String> {
        let mut worth = self.negated()?;
        while self.take(&["and", "&&"]) {
            let (left, right) = (truth(&worth)?, truth(&self.negated()?)?);
            worth = Worth::Bool(left && right);
        }
        Ok(worth)
    }

    fn negated(&mut self) -> Result<Worth, String> {
        if self.take(&["not", "!"]) {
            return Ok(Worth::Bool(!truth(&self.negated()?)?));
        }
        let left = self.operand()?;
        self.compared(left)
    }

    fn compared(&mut self, left: Worth) -> Result<Worth, String> {
        if self.take(&["eq", "=="]) {
            return Ok(Worth::Bool(left == self.operand()?));
        }
        if self.take(&["ne", "!="]) {
            return Ok(Worth::Bool(left != self.operand()?));
        }
        if self.take(&["contains"]) {
            let part = self.text()?;
            return Ok(Worth::Bool(text(left)?.contains(&part)));
        }
        if self.take(&["strict"]) {
            self.expect("wildcard")?;
            let pattern = self.text()?;
            return Ok(Worth::Bool(glob(&pattern, &text(left)?)));
        }
        if self.take(&["wildcard"]) {
            let pattern = self.text()?.to_lowercase();
            return Ok(Worth::Bool(glob(&pattern, &text(left)?.to_lowercase())));
        }
        if self.take(&["in"]) {
            return self.among(&left);
        }
        Ok(left)
    }

    fn among(&mut self, left: &Worth) -> Result<Worth, String> {
        self.expect("{")?;
        let mut found = false;
        while !self.take(&["}"]) {
            found |= self.operand()? == *left;
        }
        Ok(Worth::Bool(found))
    }

    fn text(&mut self) -> Result<String, String> {
        text(self.operand()?)
    }

    fn operand(&mut self) -> Result<Worth, String> {
        if self.take(&["("]) {
            let worth = self.either()?;
            self.expect(")")?;
            return Ok(worth);
        }
        let token = self.peek().cloned().ok_or("the expression ends early")?;
        self.at += 1;
        match token {
            ExpressionToken::Quoted(text) => Ok(Worth::Text(text)),
            ExpressionToken::Word(name) if self.take(&["("]) => {
                let arguments = self.arguments()?;
                call(&name, arguments)
            }
            ExpressionToken::Word(name) => field(&name, self.request),
            ExpressionToken::Sign(sign) => Err(format!("{sign} is not expected")),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Worth>, String> {
        let mut arguments = Vec::new();
        while !self.take(&[")"]) {
            arguments.push(self.either()?);
            if !self.take(&[","]) {
                self.expect(")")?;
                break;
            }
        }
        Ok(arguments)
    }
}

fn truth(worth: &Worth) -> Result<bool, String> {
    match worth {
        Worth::Bool(truth) => Ok(*truth),
        Worth::Text(text) => Err(format!("\"{text}\" is neither true nor false")),
    }
}

fn text(worth: Worth) -> Result<String, String> {
    match worth {
        Worth::Text(text) => Ok(text),
        Worth::Bool(truth) => Err(format!("{truth} is no text")),
    }
}

fn field(name: &str, request: &EdgeRequest) -> Result<Worth, String> {
    let text = match name {
        "true" | "false" => return Ok(Worth::Bool(name == "true")),
        "ssl" => return Ok(Worth::Bool(request.is_secure())),
        "http.host" => request.host.clone(),
        "http.request.method" => request.method.to_string(),
        "http.request.uri" => request.target(),
        "http.request.full_uri" => request.url(),
        "http.request.uri.path" => request.path.clone(),
        "http.request.uri.query" => request.query.clone().unwrap_or_default(),
        _ => return Err(format!("the simulator does not know the field {name}")),
    };
    Ok(Worth::Text(text))
}

fn call(name: &str, arguments: Vec<Worth>) -> Result<Worth, String> {
    let texts: Vec<String> = arguments.into_iter().map(text).collect::<Result<_, _>>()?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    match (name, texts.as_slice()) {
        ("concat", parts) => Ok(Worth::Text(parts.concat())),
        ("lower", [text]) => Ok(Worth::Text(text.to_lowercase())),
        ("upper", [text]) => Ok(Worth::Text(text.to_uppercase())),
        ("starts_with", [text, head]) => Ok(Worth::Bool(text.starts_with(head))),
        ("ends_with", [text, tail]) => Ok(Worth::Bool(text.ends_with(tail))),
        ("wildcard_replace", [text, pattern, replacement]) => Ok(Worth::Text(replace(text, pattern, replacement))),
        (name, _) => Err(format!("the simulator does not know the function {name}")),
    }
}

/// `${1}` stands for what the first `*` of the pattern stood for.
fn replace(text: &str, pattern: &str, replacement: &str) -> String {
    let pattern = regex::escape(pattern).replace(r"\*", "(.*?)");
    match regex::Regex::new(&format!("(?is)^{pattern}$")) {
        Ok(pattern) => pattern.replace(text, replacement).into_owned(),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> EdgeRequest {
        EdgeRequest::get("app.example.com", "/x?y=1", &[("x-forwarded-proto", "http")])
    }

    #[test]
    fn filters_hold_for_the_requests_they_describe() {
        for expression in [
            "not ssl",
            "!ssl",
            "(http.host eq \"app.example.com\" and not ssl)",
            "http.host == \"app.example.com\" && ssl eq false",
            "http.host in {\"a.b\" \"app.example.com\"}",
            "http.host wildcard \"*.EXAMPLE.com\"",
            "http.request.full_uri strict wildcard r\"http://*\"",
            "ssl or starts_with(http.request.uri.path, \"/x\")",
            "lower(http.host) contains \"example\"",
            "http.request.uri.query ne \"\"",
        ] {
            assert_eq!(holds(expression, &request()), Ok(true), "{expression}");
        }
        for expression in ["ssl", "http.host eq \"b\"", "http.host in {}", "not (not ssl)", "ssl and true"] {
            assert_eq!(holds(expression, &request()), Ok(false), "{expression}");
        }
    }

    #[test]
    fn targets_are_written_from_the_request() {
        let concat = "concat(\"https://\", http.host, http.request.uri.path)";
        assert_eq!(write(concat, &request()).unwrap(), "https://app.example.com/x");
        let replaced = "wildcard_replace(http.request.full_uri, \"http://*\", \"https://${1}\")";
        assert_eq!(write(replaced, &request()).unwrap(), "https://app.example.com/x?y=1");
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for expression in ["ip.src eq \"1.2.3.4\"", "ssl ssl", "(ssl", "\"x", "", "concat(\"a\")", "$"] {
            assert!(holds(expression, &request()).is_err(), "{expression}");
        }
    }
}
