//! A zone on a server → what `rndc addzone` is given for it, in braces. Nothing in it is an address or a key: lists of the server's own
//! configuration stand for both, and follow `rndc reconfig` (tried with 9.18.49), so no zone is ever written anew because a pod has moved.

use crate::conf::clause::{Clause, ClausePart, render};
use crate::names;
use portolan_core::ZoneName;

/// How a zone stands on the server that it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneForm<'a> {
    /// It is being taken from the operator, and answers nobody: it is not complete.
    Seeding {
        /// Where the operator answers for zones that are being seeded.
        operator: (&'a str, u16),
        /// The key that it takes.
        key: &'a str,
    },
    /// It is complete, and open.
    Open {
        /// The policy that it is signed by.
        policy: Option<&'a str>,
    },
    /// It is a catalog, for one follower and nobody else.
    Catalog,
}

/// The file of a zone: the same while it is seeded and when it is open, and another one for every seed, since a server that finds a file of
/// an earlier life would load that instead of fetching the zone.
pub fn zone_file(zone: &ZoneName, serial: u32) -> String {
    format!("{}-{}-{serial}.db", names::digest(&[zone.as_str()]), shown(zone.as_str()))
}

/// Letters that are safe in the name of a file.
fn shown(zone: &str) -> String {
    zone.chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' })
        .collect()
}

/// What `addzone` is given.
pub fn zone_clauses(file: &str, form: ZoneForm<'_>) -> String {
    let file = Clause::word("file").quoted(file);
    let lists =
        |name: &str, lists: &[&str]| Clause::word(name).block(lists.iter().map(|list| Clause::default().quoted(*list)));
    let clauses = match form {
        ZoneForm::Seeding { operator: (address, port), key } => vec![
            Clause::words("type secondary"),
            file,
            // What was transferred is written as it came, and read again as it is.
            Clause::words("masterfile-format raw"),
            Clause::word("primaries").block([Clause::word(address)
                .with("port")
                .with(port.to_string())
                .with("key")
                .quoted(key)]),
            Clause::words("allow-query").block([Clause::word("none")]),
            Clause::words("allow-transfer").block([Clause::word("none")]),
            Clause::words("notify no"),
        ],
        ZoneForm::Open { policy } => {
            let mut clauses = vec![
                Clause::words("type primary"),
                file,
                Clause::words("masterfile-format raw"),
                lists("allow-update", &["bindy-updaters"]),
                lists("also-notify", &["bindy-followers"]),
                Clause::words("notify explicit"),
                // The usual five seconds would be waited before every second change.
                Clause::words("notify-delay 0"),
                Clause::words("serial-update-method unixtime"),
            ];
            clauses.extend(policy.map(|policy| Clause::word("dnssec-policy").quoted(policy)));
            clauses
        }
        ZoneForm::Catalog => vec![
            Clause::words("type primary"),
            file,
            Clause::words("masterfile-format raw"),
            lists("allow-update", &["bindy-updaters"]),
            lists("allow-query", &["bindy-servers"]),
            lists("also-notify", &["bindy-followers"]),
            Clause::words("notify explicit"),
            Clause::words("notify-delay 0"),
            Clause::words("serial-update-method unixtime"),
        ],
    };
    let clause = Clause { parts: vec![ClausePart::Block(clauses)] };
    // The command is one line.
    render(&[clause]).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_that_is_being_seeded_answers_nobody() {
        let text = zone_clauses("z.db", ZoneForm::Seeding { operator: ("10.0.0.9", 5300), key: "k" });

        assert!(text.starts_with("{ type secondary; file \"z.db\"; masterfile-format raw;"), "{text}");
        assert!(
            text.contains("primaries { 10.0.0.9 port 5300 key \"k\"; };") && text.contains("allow-query { none; };"),
            "{text}"
        );
        assert!(text.ends_with("};"), "{text}");
    }

    #[test]
    fn an_open_zone_names_lists_and_neither_addresses_nor_keys() {
        let text = zone_clauses("z.db", ZoneForm::Open { policy: Some("bindy-default") });

        assert!(
            text.contains("allow-update { \"bindy-updaters\"; };")
                && text.contains("also-notify { \"bindy-followers\"; };"),
            "{text}"
        );
        assert!(
            text.contains("dnssec-policy \"bindy-default\";") && !text.contains("key ") && !text.contains('\n'),
            "{text}"
        );
    }

    #[test]
    fn files_of_zones_have_names_of_their_own_whatever_the_case_and_no_way_up() {
        let file = |name: &str| zone_file(&ZoneName::parse(name).unwrap(), 7);

        assert_eq!(file("Example.com"), file("example.com"));
        assert_ne!(file("a.example"), file("b.example"));
        assert_ne!(file("a.example"), zone_file(&ZoneName::parse("a.example").unwrap(), 8), "each seed has its own");
        assert!(!file("_msdcs.example.com").contains('/'));
    }
}
