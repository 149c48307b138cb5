//! The name of a record as its user wrote it, and the full name that it means in a zone.
//!
//! A full name always says where it belongs. Where the zone is named by its id its own name may be left out, as APIs let
//! one leave it out: `@` is the zone itself, and a name of a single label lies right below it. A name of several labels
//! that does not lie in the zone is refused, since `www.other.net` is more likely a mistake than `www.other.net.example.com`.

use portolan_core::{Hostname, Problem, ZoneName, reasons};

/// A name as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenName {
    /// `@`, the zone's own name.
    Apex,
    /// One label, right below the zone's name.
    Label(String),
    /// A full name.
    Full(Hostname),
}

impl WrittenName {
    /// Reads a name; `@` and single labels only where the zone is named by its id. `domain` serves as an example.
    pub fn read(name: &str, zone_is_named: bool, domain: Option<&str>) -> Result<Self, Problem> {
        let example = domain.unwrap_or("example.com");
        let several_labels = name.trim_end_matches('.').contains('.');
        match name {
            "@" if zone_is_named => Ok(Self::Apex),
            "@" => Err(invalid(format!("name is @, which is not expanded; write the zone's own name, as {example}"))),
            _ if several_labels => {
                Hostname::parse(name).map(Self::Full).map_err(|error| invalid(format!("name: {error}")))
            }
            _ if zone_is_named && !name.ends_with('.') => {
                below(name, example)?;
                Ok(Self::Label(name.to_owned()))
            }
            _ => Err(invalid(format!("name {name:?} is not a full name; write {name}.{example}"))),
        }
    }

    /// The full name that is meant in a zone. Whoever publishes a name in the wrong zone publishes something else.
    pub fn within(&self, zone: &ZoneName) -> Result<Hostname, Problem> {
        match self {
            Self::Apex => Ok(zone.apex()),
            Self::Label(label) => below(label, zone.as_str()),
            Self::Full(name) if name.is_in(zone) => Ok(name.clone()),
            Self::Full(name) => Err(invalid(format!(
                "name {name} does not lie in zone {zone}; write the full name, as {name}.{zone}, or correct the zone"
            ))),
        }
    }

    /// The full name, as far as it is known without the zone's.
    pub fn full(&self) -> Option<&Hostname> {
        match self {
            Self::Full(name) => Some(name),
            Self::Apex | Self::Label(_) => None,
        }
    }

    /// As it is told apart from other names of its zone.
    pub fn text(&self) -> &str {
        match self {
            Self::Apex => "@",
            Self::Label(label) => label,
            Self::Full(name) => name.as_str(),
        }
    }
}

fn invalid(message: String) -> Problem {
    Problem::invalid(reasons::INVALID_CONFIG, message)
}

fn below(label: &str, zone: &str) -> Result<Hostname, Problem> {
    Hostname::parse(&format!("{label}.{zone}")).map_err(|error| invalid(format!("name: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone() -> ZoneName {
        ZoneName::parse("Example.com").expect("it is a name")
    }

    fn means(name: &str) -> String {
        let written = WrittenName::read(name, true, None).and_then(|written| written.within(&zone()));
        written.map_or_else(|problem| problem.message, String::from)
    }

    #[test]
    fn heldout_f4_short_names_under_a_zone_id_lie_right_below_the_zone() {
        assert_eq!(means("@"), "example.com");
        assert_eq!(means("www"), "www.example.com");
        assert_eq!(means("WWW"), "www.example.com");
        assert_eq!(means("_dmarc"), "_dmarc.example.com");
        assert_eq!(means("*"), "*.example.com");
        assert_eq!(means("com"), "com.example.com");
    }

    #[test]
    fn full_names_under_a_zone_id_stay_as_they_are() {
        assert_eq!(means("www.example.com"), "www.example.com");
        assert_eq!(means("Example.COM."), "example.com");
        assert_eq!(means("*.shop.example.com"), "*.shop.example.com");
    }

    #[test]
    fn heldout_f2_a_name_of_several_labels_outside_the_zone_is_refused_with_what_to_write() {
        for outside in ["www.other.net", "a.b", "www.notexample.com", "example.com.other.net"] {
            let said = means(outside);
            assert!(said.contains("does not lie in zone example.com"), "{said}");
            assert!(said.contains(&format!("as {outside}.example.com")), "{said}");
        }
    }

    #[test]
    fn without_a_zone_id_short_names_are_refused_with_what_to_write() {
        let refused = |name: &str| WrittenName::read(name, false, Some("shop.org")).expect_err("refused").message;

        assert!(refused("@").contains("as shop.org"));
        assert!(refused("www").contains("write www.shop.org"));
        assert!(refused("bad name").contains("is not a full name"));
    }

    #[test]
    fn what_no_name_can_be_is_refused_under_a_zone_id_too() {
        for wrong in ["", ".", "www.", "a b", "-x", "w*w", &"x".repeat(64)] {
            assert!(WrittenName::read(wrong, true, None).is_err(), "{wrong:?}");
        }
    }
}
