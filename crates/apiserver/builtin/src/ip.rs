//! Text → IP address or network: read as leniently as older versions read it, and refused by the stricter rules of today.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use portolan_schema::{FieldError, Path};
use serde_json::json;

use crate::check::Errors;

/// An address and the number of its bits that name a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressNetwork {
    pub(crate) address: IpAddr,
    pub(crate) length: u8,
}

impl AddressNetwork {
    /// Reads `10.0.0.0/8`, also with leading zeros.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address = read_v4(address).map(IpAddr::V4).or_else(|| address.parse().ok().map(IpAddr::V6))?;
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u8 = length.parse().ok().filter(|_| digits)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        (length <= most).then_some(Self { address, length })
    }

    /// The network's first address.
    pub(crate) fn first(&self) -> IpAddr {
        let kept = |width: u32| if self.length == 0 { 0 } else { u128::MAX << (width - u32::from(self.length)) };
        match self.address {
            IpAddr::V4(v4) => {
                let bits = u128::from(v4.to_bits()) & kept(32);
                IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(0)))
            }
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & kept(128))),
        }
    }

    /// Whether an address lies within.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let same_family = address.is_ipv4() == self.address.is_ipv4();
        same_family && Self { address, ..*self }.first() == self.first()
    }

    /// Whether another network lies within and is smaller.
    pub(crate) fn strictly_contains(&self, inner: &Self) -> bool {
        self.contains(inner.first()) && inner.length > self.length
    }

    /// The network as it should be written.
    pub(crate) fn canonical(&self) -> String {
        format!("{}/{}", self.first(), self.length)
    }
}

/// Reads an address; IPv4 may have leading zeros, and IPv4 in IPv6 is IPv4.
pub(crate) fn read_address(text: &str) -> Option<IpAddr> {
    if let Some(v4) = read_v4(text) {
        return Some(IpAddr::V4(v4));
    }
    let v6: Ipv6Addr = text.parse().ok()?;
    Some(v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4))
}

fn read_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// Whether the text is IPv4 written as IPv6.
pub(crate) fn is_mapped(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok_and(|v6| v6.to_ipv4_mapped().is_some())
}

/// Whether the text is an address by the strict rules, apart from its form.
pub(crate) fn is_standard(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() && !is_mapped(text)
}

/// Whether the text is a network by the strict rules, apart from its form.
pub(crate) fn is_standard_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let zeros = length.len() > 1 && length.starts_with('0');
    address.parse::<IpAddr>().is_ok() && !zeros && AddressNetwork::read(text).is_some()
}

/// An IP address, and nothing wrong with it.
pub(crate) fn address(errors: &mut Errors, text: &str, path: &Path<'_>) -> Option<IpAddr> {
    let mut refuse = |detail: &str| {
        errors.push(FieldError::invalid(path, &json!(text), detail));
        None
    };
    match read_address(text) {
        None => refuse("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        Some(_) if is_mapped(text) => refuse("must not be an IPv4-mapped IPv6 address"),
        Some(_) if !is_standard(text) => refuse("must not have leading 0s"),
        Some(parsed) => Some(parsed),
    }
}

/// An IP address in the form in which it would be printed.
pub(crate) fn canonical_address(errors: &mut Errors, text: &str, path: &Path<'_>) -> Option<IpAddr> {
    let parsed = address(errors, text, path)?;
    let canonical = parsed.to_string();
    if canonical == text {
        return Some(parsed);
    }
    errors.push(FieldError::invalid(path, &json!(text), format!("must be in canonical form ({canonical:?})")));
    None
}

/// A network; one that can be read is given back even where something is wrong with it.
pub(crate) fn network(errors: &mut Errors, text: &str, path: &Path<'_>) -> Option<AddressNetwork> {
    let parsed = AddressNetwork::read(text);
    let detail = match &parsed {
        None => Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        Some(_) if text.split('/').next().is_some_and(is_mapped) => Some("must not have an IPv4-mapped IPv6 address"),
        Some(_) if !is_standard_network(text) => Some("must not have leading 0s in IP or prefix length"),
        Some(network) if network.first() != network.address => Some("must not have bits set beyond the prefix length"),
        Some(_) => None,
    };
    if let Some(detail) = detail {
        errors.push(FieldError::invalid(path, &json!(text), detail));
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network_problem(text: &str) -> String {
        let mut errors = Vec::new();
        network(&mut errors, text, &Path::root());
        errors.first().map(|error| error.detail.clone()).unwrap_or_default()
    }

    #[test]
    fn a_smaller_network_lies_within_a_larger_one() {
        let network = |text: &str| AddressNetwork::read(text).unwrap();

        assert!(network("10.0.0.0/8").strictly_contains(&network("10.1.0.0/16")));
        assert!(!network("10.0.0.0/8").strictly_contains(&network("11.0.0.0/16")));
        assert!(!network("10.0.0.0/8").strictly_contains(&network("10.0.0.0/8")));
        assert!(network("::/0").strictly_contains(&network("2001:db8::/32")));
    }

    #[test]
    fn addresses_with_leading_zeros_are_read_and_refused() {
        let mut errors = Vec::new();

        address(&mut errors, "10.001.2.3", &Path::root());

        assert_eq!(read_address("10.001.2.3"), Some("10.1.2.3".parse().unwrap()));
        assert_eq!(errors[0].detail, "must not have leading 0s");
    }

    #[test]
    fn networks_are_refused_for_zeros_bits_and_form() {
        assert_eq!(network_problem("10.0.0.0/8"), "");
        assert_eq!(network_problem("10.0.0.0/08"), "must not have leading 0s in IP or prefix length");
        assert_eq!(network_problem("10.0.0.1/8"), "must not have bits set beyond the prefix length");
        assert!(network_problem("10.0.0.0").starts_with("must be a valid CIDR value"));
    }
}
