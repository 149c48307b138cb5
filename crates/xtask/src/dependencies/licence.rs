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
    let allowed = words.alternatives();
    if words.at < words.words.len() || expression.trim().is_empty() {
        return Some("it is not a licence expression".to_owned());
    }
    (!allowed).then(|| "it is not on the list of xtask's dependencies/licence.rs".to_owned())
}

struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl Words<'_> {
    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    /// `a OR b`: one is enough.
    fn alternatives(&mut self) -> bool {
        let mut allowed = self.all();
        while self.takes("OR") {
            allowed |= self.all();
        }
        allowed
    }

    /// `a AND b`: all are needed.
    fn all(&mut self) -> bool {
        let mut allowed = self.one();
        while self.takes("AND") {
            allowed &= self.one();
        }
        allowed
    }

    fn one(&mut self) -> bool {
        if self.takes("(") {
            let allowed = self.alternatives();
            return self.takes(")") && allowed;
        }
        let Some(name) = self.words.get(self.at).map(|word| (*word).to_owned()) else { return false };
        self.at += 1;
        if !self.takes("WITH") {
            return ALLOWED.contains(&name.as_str());
        }
        let Some(exception) = self.words.get(self.at) else { return false };
        let whole = format!("{name} WITH {exception}");
        self.at += 1;
        ALLOWED.contains(&whole.as_str())
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
        for odd in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "MIT WITH"] {
            assert!(refused(odd).is_some(), "{odd:?}");
        }
    }
}
