//! Networks in CIDR form, IPv4 and IPv6, in one spelling.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::InvalidName;

/// A network without host bits. Displayed in its canonical form, so that equal networks are equal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(IpNet);

impl Network {
    /// Reads `10.0.0.0/8` or `fd00::/48`. Host bits and a missing prefix length are refused with what to write instead.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let refuse = |why: String| Err(InvalidName::new("network", text, why));
        if let Ok(address) = IpAddr::from_str(text) {
            return refuse(format!("it has no prefix length; for this one address write {}", IpNet::from(address)));
        }
        match IpNet::from_str(text) {
            Ok(network) if network == network.trunc() => Ok(Self(network)),
            Ok(network) => refuse(format!(
                "it has bits set behind the prefix length; for the whole network write {}, for the one address {}",
                network.trunc(),
                IpNet::from(network.addr()),
            )),
            Err(_) => refuse("write an address and a prefix length, as 10.0.0.0/8 or fd00::/48".to_owned()),
        }
    }

    /// A network in its one spelling; what is none stays as it is.
    pub fn spelled(text: &str) -> String {
        Self::parse(text).map_or_else(|_| text.to_owned(), |network| network.to_string())
    }

    /// Whether it is an IPv6 network.
    pub fn is_ipv6(&self) -> bool {
        matches!(self.0, IpNet::V6(_))
    }

    /// Whether the address is inside.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Whether the whole other network is inside.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.contains(&other.0)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Network {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Network {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> String {
        Network::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn equal_networks_are_equal_texts() {
        assert_eq!(Network::parse("FD00:0:0::/48").unwrap().to_string(), "fd00::/48");
        assert_eq!(Network::parse("fd00::/48").unwrap(), Network::parse("fd00:0::0/48").unwrap());
        assert_eq!(Network::parse("0.0.0.0/0").unwrap().to_string(), "0.0.0.0/0");
    }

    #[test]
    fn host_bits_are_refused_with_the_network_that_was_meant() {
        assert_eq!(
            refusal("10.0.0.1/8"),
            "network \"10.0.0.1/8\" is not valid: it has bits set behind the prefix length; \
             for the whole network write 10.0.0.0/8, for the one address 10.0.0.1/32"
        );
        assert!(refusal("fd00::1/48").contains("fd00::/48"));
    }

    #[test]
    fn a_bare_address_is_refused_with_its_prefix_length() {
        assert!(refusal("10.0.0.1").ends_with("write 10.0.0.1/32"));
        assert!(refusal("fd00::1").ends_with("write fd00::1/128"));
    }

    #[test]
    fn what_is_no_network_is_refused_with_an_example() {
        for text in ["", "999.0.0.0/99", "10.0.0.0/33", "fd00::/129", "10.0.0/8", "example.com", " 10.0.0.0/8"] {
            assert!(refusal(text).contains("as 10.0.0.0/8 or fd00::/48"), "{text}");
        }
    }

    #[test]
    fn a_network_covers_its_parts_and_no_other_family() {
        let ten = Network::parse("10.0.0.0/8").unwrap();

        assert!(ten.covers(&Network::parse("10.1.0.0/16").unwrap()) && ten.covers(&ten));
        assert!(!ten.covers(&Network::parse("::/0").unwrap()) && !ten.is_ipv6());
        assert!(ten.contains("10.255.0.1".parse().unwrap()) && !ten.contains("11.0.0.1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn every_network_reads_back_from_its_text(address in any::<IpAddr>(), prefix in 0u8..=128) {
            let Ok(network) = IpNet::new(address, prefix) else { return Ok(()) };
            let text = network.trunc().to_string();

            prop_assert_eq!(Network::parse(&text).unwrap().to_string(), text);
            prop_assert_eq!(Network::parse(&network.to_string()).is_ok(), network == network.trunc());
        }
    }
}
