//! A zone's statement as it was sent, and as `showzone` writes it → whether they say the same. Pure.

use std::net::IpAddr;

/// Whether a zone's statement as a server shows it (`zone "z" { … };`) says what one for `addzone` says (`{ … };`). named shows it in one
/// line with names in quotes, single addresses as networks, and its clauses sorted by their names; else a clause is as it was given (tried:
/// 9.18.49).
pub fn says_the_same(shown: &str, wanted: &str) -> bool {
    clauses(shown) == clauses(wanted)
}

/// The clauses in the outermost braces, each as its words, sorted.
fn clauses(statement: &str) -> Vec<Vec<String>> {
    let mut clauses: Vec<Vec<String>> = Vec::new();
    let mut clause = Vec::new();
    let mut depth = 0_usize;
    for word in words(statement) {
        match &*word {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_outermost = depth <= 1;
        match &*word {
            ";" | "{" if is_outermost => clauses.extend((!clause.is_empty()).then(|| std::mem::take(&mut clause))),
            _ if depth == 0 => {}
            _ => clause.push(spelling(word)),
        }
    }
    clauses.extend((!clause.is_empty()).then_some(clause));
    clauses.sort();
    clauses
}

/// An address in one spelling, alone where named shows it as the network of it alone (`10.0.0.1/32`).
fn spelling(word: String) -> String {
    if let Some(but_not) = word.strip_prefix('!') {
        return format!("!{}", spelling(but_not.to_owned()));
    }
    let (address, width) = word.split_once('/').unwrap_or((&word, ""));
    match (address.parse::<IpAddr>(), width) {
        (Ok(address @ IpAddr::V4(_)), "" | "32") | (Ok(address @ IpAddr::V6(_)), "" | "128") => address.to_string(),
        (Ok(address), width) => format!("{address}/{width}"),
        (Err(_), _) => word,
    }
}

/// Words, braces and semicolons from the first brace on, without quotes.
fn words(statement: &str) -> Vec<String> {
    let body = statement.find('{').map_or("", |at| &statement[at..]);
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    for c in body.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            '{' | '}' | ';' if !is_quoted => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                words.push(c.to_string());
            }
            _ if c.is_whitespace() && !is_quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(c),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_lines_do_not_count_and_words_do() {
        let shown = r#"zone "z.example" { type primary; file "a b"; allow-update { key "update"; }; };"#;

        assert!(says_the_same(shown, "{\n  type primary;\n  file \"a b\";\n  allow-update { key update; };\n}"));
        assert!(says_the_same(
            "zone \"z\" { a { 10.0.0.1/32; 2001:db8::1/128; }; };",
            "{ a { 10.0.0.1; 2001:DB8:0::1; }; }"
        ));
        assert!(!says_the_same("zone \"z\" { a { 10.0.0.1/32; }; };", "{ a { 10.0.0.1/24; }; }"));
        assert!(says_the_same(shown, "{ allow-update { key update; }; file \"a b\"; type primary; };"));
        assert!(!says_the_same(shown, "{ type primary; file \"a b\"; allow-update { key update; }; notify no; }"));
        assert!(!says_the_same(shown, "{ type primary; file \"a  b\"; allow-update { key update; }; }"));
        assert!(!says_the_same(shown, "{ type primary; file \"a b\"; allow-update { key update; key next; }; }"));
        assert!(!says_the_same("", "{ type primary; }"));
    }
}
