//! The addresses of a source and how to choose → the addresses to publish, each with its record type.

use portolan_core::{Problem, reasons};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::{Address, Family};
use crate::record_type::RecordType;

/// Which of a source's addresses are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AddressSelection {
    /// The first one.
    #[default]
    First,
    /// All of them, as one record each.
    All,
    /// The first IPv4 address, or the first at all.
    PreferIPv4,
    /// The first IPv6 address, or the first at all.
    PreferIPv6,
}

/// Chooses among the addresses of a source. A type that is asked for takes only addresses that fit it.
pub fn select(
    addresses: &[Address],
    selection: AddressSelection,
    asked: Option<RecordType>,
) -> Result<Vec<(RecordType, String)>, Problem> {
    portolan_core::waypoint!();
    let fits = |address: &&Address| match asked {
        Some(RecordType::A) => address.family == Family::V4,
        Some(RecordType::Aaaa) => address.family == Family::V6,
        Some(RecordType::Cname) => address.family == Family::Name,
        _ => true,
    };
    let usable: Vec<&Address> = addresses.iter().filter(fits).collect();
    if usable.is_empty() {
        return Err(none_usable(addresses, asked));
    }
    let chosen = match selection {
        AddressSelection::First => usable[..1].to_vec(),
        AddressSelection::All => all(usable),
        AddressSelection::PreferIPv4 => vec![prefer(&usable, Family::V4)],
        AddressSelection::PreferIPv6 => vec![prefer(&usable, Family::V6)],
    };
    Ok(chosen.into_iter().map(|address| (asked.unwrap_or(inferred(address.family)), address.value.clone())).collect())
}

fn none_usable(addresses: &[Address], asked: Option<RecordType>) -> Problem {
    let message = match (addresses, asked) {
        ([], _) | (_, None) => "the source has no address yet".to_owned(),
        (there, Some(asked)) => {
            let there: Vec<&str> = there.iter().map(|address| address.value.as_str()).collect();
            format!("the source has no address for a record of type {asked}, only {}", there.join(", "))
        }
    };
    Problem::waiting(reasons::PENDING, message)
}

/// A name may have one alias or many addresses, not both.
fn all(usable: Vec<&Address>) -> Vec<&Address> {
    let addresses: Vec<&Address> = usable.iter().copied().filter(|address| address.family != Family::Name).collect();
    if addresses.is_empty() { usable[..1].to_vec() } else { addresses }
}

fn prefer<'a>(usable: &[&'a Address], family: Family) -> &'a Address {
    usable.iter().find(|address| address.family == family).unwrap_or(&usable[0])
}

fn inferred(family: Family) -> RecordType {
    match family {
        Family::V4 => RecordType::A,
        Family::V6 => RecordType::Aaaa,
        Family::Name => RecordType::Cname,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(texts: &[&str], selection: AddressSelection, asked: Option<RecordType>) -> Vec<String> {
        let addresses: Vec<Address> = texts.iter().map(|text| Address::parse(text)).collect();
        let selected = select(&addresses, selection, asked).unwrap();
        selected.into_iter().map(|(kind, value)| format!("{kind} {value}")).collect()
    }

    const DUAL: [&str; 4] = ["192.0.2.1", "2001:db8::1", "192.0.2.2", "lb.example.net"];

    #[test]
    fn the_first_address_decides_the_type() {
        assert_eq!(chosen(&DUAL, AddressSelection::First, None), ["A 192.0.2.1"]);
        assert_eq!(chosen(&DUAL[3..], AddressSelection::First, None), ["CNAME lb.example.net"]);
    }

    #[test]
    fn a_preferred_family_gives_way_to_what_there_is() {
        assert_eq!(chosen(&DUAL, AddressSelection::PreferIPv6, None), ["AAAA 2001:db8::1"]);
        assert_eq!(chosen(&DUAL[..1], AddressSelection::PreferIPv6, None), ["A 192.0.2.1"]);
        assert_eq!(chosen(&DUAL[1..], AddressSelection::PreferIPv4, None), ["A 192.0.2.2"]);
    }

    #[test]
    fn all_addresses_become_records_and_names_stay_out() {
        assert_eq!(chosen(&DUAL, AddressSelection::All, None), ["A 192.0.2.1", "AAAA 2001:db8::1", "A 192.0.2.2"]);
        assert_eq!(chosen(&["a.example", "b.example"], AddressSelection::All, None), ["CNAME a.example"]);
    }

    #[test]
    fn a_type_that_is_asked_for_takes_only_what_fits() {
        assert_eq!(chosen(&DUAL, AddressSelection::First, Some(RecordType::Aaaa)), ["AAAA 2001:db8::1"]);
        assert_eq!(chosen(&DUAL, AddressSelection::All, Some(RecordType::A)), ["A 192.0.2.1", "A 192.0.2.2"]);
        assert_eq!(chosen(&DUAL, AddressSelection::First, Some(RecordType::Txt)), ["TXT 192.0.2.1"]);
    }

    #[test]
    fn no_address_is_something_to_wait_for() {
        let none = select(&[], AddressSelection::First, None).unwrap_err();
        let unfit =
            select(&[Address::parse("192.0.2.1")], AddressSelection::First, Some(RecordType::Aaaa)).unwrap_err();

        assert_eq!((none.class, none.reason), (portolan_core::Class::Waiting, "Pending"));
        assert_eq!(unfit.message, "the source has no address for a record of type AAAA, only 192.0.2.1");
    }
}
