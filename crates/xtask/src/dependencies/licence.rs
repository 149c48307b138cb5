//! A licence expression (SPDX, with the older `/` for `OR`) → whether we may use what stands under it. Pure.

/// What we may use, change and pass on under the project's own licence.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    // The list of certificate authorities, which is data.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Why a licence is refused; none where it is allowed.
pub(super) fn refused(expression: &str) -> Option<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words { words: spaced.split_whitespace().collect(), at: 0 };
    match words.alternatives() {
        Some(true) if words.at == words.words.len() => None,
        Some(false) if words.at == words.words.len() => {
            Some("it is not on the list of xtask's dependencies/licence.rs".to_owned())
        }
        _ => Some("it is not a licence expression".to_owned()),
    }
}

/// Each part says whether it is allowed; nothing where a word is missing.
struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied().filter(|word| !["OR", "AND", "WITH", "(", ")"].contains(word))?;
        self.at += 1;
        Some(word)
    }

    /// `a OR b`: one is enough.
    fn alternatives(&mut self) -> Option<bool> {
        let mut allowed = self.all()?;
        while self.takes("OR") {
            allowed |= self.all()?;
        }
        Some(allowed)
    }

    /// `a AND b`: all are needed.
    fn all(&mut self) -> Option<bool> {
        let mut allowed = self.one()?;
        while self.takes("AND") {
            allowed &= self.one()?;
        }
        Some(allowed)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let allowed = self.alternatives()?;
            return self.takes(")").then_some(allowed);
        }
        let name = self.next()?;
        if !self.takes("WITH") {
            return Some(ALLOWED.contains(&name));
        }
        let whole = format!("{name} WITH {}", self.next()?);
        Some(ALLOWED.contains(&whole.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_enough_and_all_are_needed_where_it_says_so() {
        for allowed in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "GPL-3.0-only/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert_eq!(refused(allowed), None, "{allowed}");
        }
        for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR ISC) AND SSPL-1.0", "MIT WITH made-up-exception"] {
            assert!(refused(bad).is_some_and(|why| why.contains("not on the list")), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for odd in ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT Apache-2.0", "MIT WITH"] {
            assert_eq!(refused(odd).as_deref(), Some("it is not a licence expression"), "{odd:?}");
        }
    }
}
