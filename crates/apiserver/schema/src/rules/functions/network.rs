//! `ip("10.0.0.1").isLoopback()`, `cidr("10.0.0.0/8").containsIP("10.1.2.3")` and their kin.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cel::common::types::{CelBool, CelInt, CelString};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use super::failure;
use super::opaque::opaque;
use crate::go;

#[derive(Clone, Debug, PartialEq)]
struct Ip(IpAddr);

#[derive(Clone, Debug, PartialEq)]
struct Cidr {
    address: IpAddr,
    length: u32,
}

opaque!(Ip, IP, "net.IP");
opaque!(Cidr, CIDR, "net.CIDR");

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(IP.to_owned())?;
    env.add_type(CIDR.to_owned())?;
    add_overload!(env, fn ip: (CelString<'_>) -> Result<Ip>, name = "ip")?;
    add_overload!(env, fn is_ip: (CelString<'_>) -> CelBool, name = "isIP")?;
    add_overload!(env, fn is_canonical: (CelString<'_>) -> Result<CelBool>, name = "ip.isCanonical")?;
    add_overload!(env, fn ip_string: (Ip) -> CelString<'_>, name = "string")?;
    add_member_overload!(env, fn family: (Ip) -> CelInt)?;
    add_member_overload!(env, fn is_unspecified: (Ip) -> CelBool)?;
    add_member_overload!(env, fn is_loopback: (Ip) -> CelBool)?;
    add_member_overload!(env, fn is_link_local_multicast: (Ip) -> CelBool)?;
    add_member_overload!(env, fn is_link_local_unicast: (Ip) -> CelBool)?;
    add_member_overload!(env, fn is_global_unicast: (Ip) -> CelBool)?;
    add_overload!(env, fn cidr: (CelString<'_>) -> Result<Cidr>, name = "cidr")?;
    add_overload!(env, fn is_cidr: (CelString<'_>) -> CelBool, name = "isCIDR")?;
    add_overload!(env, fn cidr_string: (Cidr) -> CelString<'_>, name = "string")?;
    add_member_overload!(env, fn contains_ip: (Cidr, Ip) -> CelBool, name = "containsIP")?;
    add_member_overload!(env, fn contains_ip_text: (Cidr, CelString<'_>) -> Result<CelBool>, name = "containsIP")?;
    add_member_overload!(env, fn contains_cidr: (Cidr, Cidr) -> CelBool, name = "containsCIDR")?;
    add_member_overload!(env, fn contains_cidr_text: (Cidr, CelString<'_>) -> Result<CelBool>, name = "containsCIDR")?;
    add_member_overload!(env, fn cidr_ip: (Cidr) -> Ip, name = "ip")?;
    add_member_overload!(env, fn prefix_length: (Cidr) -> CelInt)?;
    add_member_overload!(env, fn masked: (Cidr) -> Cidr)?;
    Ok(())
}

fn parse_ip(text: &str) -> Result<IpAddr, String> {
    if text.contains('%') {
        return Err(format!("IP address {} with zone value is not allowed", go::quote(text)));
    }
    let address: IpAddr = text.parse().map_err(|_| {
        let shown = go::quote(text);
        format!("IP Address {shown} parse error during conversion from string: ParseAddr({shown}): unable to parse IP")
    })?;
    if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", go::quote(text)));
    }
    Ok(address)
}

fn ip(text: &CelString<'_>) -> Result<Ip, ExecutionError> {
    parse_ip(text.inner()).map(Ip).map_err(failure)
}

fn is_ip(text: &CelString<'_>) -> CelBool {
    parse_ip(text.inner()).is_ok().into()
}

fn is_canonical(text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok((ip(text)?.0.to_string() == text.inner()).into())
}

fn ip_string(this: &Ip) -> CelString<'static> {
    this.0.to_string().into()
}

fn family(this: &Ip) -> CelInt {
    if this.0.is_ipv4() { 4.into() } else { 6.into() }
}

fn is_unspecified(this: &Ip) -> CelBool {
    this.0.is_unspecified().into()
}

fn is_loopback(this: &Ip) -> CelBool {
    this.0.is_loopback().into()
}

fn is_link_local_multicast(this: &Ip) -> CelBool {
    link_local_multicast(this.0).into()
}

fn link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(this: &Ip) -> CelBool {
    link_local_unicast(this.0).into()
}

fn link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(this: &Ip) -> CelBool {
    let broadcast = this.0 == IpAddr::V4(Ipv4Addr::BROADCAST);
    let special = broadcast || this.0.is_unspecified() || this.0.is_loopback() || this.0.is_multicast();
    (!special && !link_local_unicast(this.0)).into()
}

fn parse_cidr(text: &str) -> Result<Cidr, String> {
    let wrong = |why: &str| {
        let shown = go::quote(text);
        format!("network address parse error during conversion from string: netip.ParsePrefix({shown}): {why}")
    };
    let (address, length) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let address: IpAddr = address.parse().map_err(|_| wrong("ParseAddr: unable to parse IP"))?;
    let plain =
        !length.is_empty() && length.bytes().all(|c| c.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    let length: u32 = length.parse().ok().filter(|_| plain).ok_or_else(|| wrong("bad bits after slash"))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if length > most {
        return Err(wrong("prefix length out of range"));
    }
    if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", go::quote(text)));
    }
    Ok(Cidr { address, length })
}

fn cidr(text: &CelString<'_>) -> Result<Cidr, ExecutionError> {
    parse_cidr(text.inner())
        .map_err(|why| failure(format!("network address parse error during conversion from string: {why}")))
}

fn is_cidr(text: &CelString<'_>) -> CelBool {
    parse_cidr(text.inner()).is_ok().into()
}

fn cidr_string(this: &Cidr) -> CelString<'static> {
    format!("{}/{}", this.address, this.length).into()
}

/// The first address of the network.
fn network(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
        }
    }
}

fn contains(this: &Cidr, address: IpAddr) -> bool {
    this.address.is_ipv4() == address.is_ipv4() && network(this.address, this.length) == network(address, this.length)
}

fn contains_ip(this: &Cidr, other: &Ip) -> CelBool {
    contains(this, other.0).into()
}

fn contains_ip_text(this: &Cidr, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let other = ip(text).map_err(|_| no_overload("containsIP"))?;
    Ok(contains(this, other.0).into())
}

fn contains_cidr(this: &Cidr, other: &Cidr) -> CelBool {
    (contains(this, other.address) && this.length <= other.length).into()
}

fn contains_cidr_text(this: &Cidr, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let other = cidr(text).map_err(|_| no_overload("containsCIDR"))?;
    Ok(contains_cidr(this, &other))
}

/// What the server says of a text that is no address here.
fn no_overload(function: &str) -> ExecutionError {
    ExecutionError::no_such_overload(function, vec!["net.CIDR".to_owned(), "string".to_owned()])
}

fn cidr_ip(this: &Cidr) -> Ip {
    Ip(this.address)
}

fn prefix_length(this: &Cidr) -> CelInt {
    i64::from(this.length).into()
}

fn masked(this: &Cidr) -> Cidr {
    Cidr { address: network(this.address, this.length), length: this.length }
}
