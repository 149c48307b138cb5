//! An origin's URL → what it reaches: a Service, a machine, or something that protects the cluster.
//!
//! cloudflared reads origins as Go's `net/url` does and resolves names in its own pod. So a host has many spellings, and
//! what cannot be read for certain is not published.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Machines that hand out a node's credentials, besides the link-local ones: Azure's wire server, Alibaba's and Oracle's
/// metadata, and the IPv6 addresses of AWS' and Google's.
const METADATA: [&str; 5] = ["168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"];
/// Names of such machines.
const METADATA_NAMES: [&str; 5] =
    ["metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"];
/// What the names of Services end with in a cluster.
const CLUSTER: &str = ".cluster.local";

/// An origin, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// As it was written.
    pub(crate) text: String,
    /// Before the colon; the whole text of a word.
    pub(crate) scheme: String,
    /// The machine, if there is one.
    pub(crate) host: Option<Host>,
    /// The port, if it is said.
    pub(crate) port: Option<u16>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// By name: lower case, without the last dot, Services without the cluster's domain.
    Name(String),
    /// By address.
    Address(IpAddr),
}

/// What an origin reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reaches {
    /// Nothing: cloudflared answers by itself.
    Nothing,
    /// A Service.
    Service { namespace: String, name: String },
    /// A Service if there is such a namespace, else some machine.
    Perhaps { namespace: String, name: String },
    /// Some machine.
    Machine,
}

impl Origin {
    /// Reads an origin; none where nobody can tell for certain where requests would go.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |scheme: &str| Self { text: text.to_owned(), scheme: scheme.to_owned(), host: None, port: None };
        let Some((scheme, rest)) = text.split_once(':') else { return Some(plain(text)) };
        if matches!(scheme, "unix" | "unix+tls" | "http_status") {
            return Some(plain(scheme));
        }
        let authority = rest.strip_prefix("//")?.split(['/', '?', '#']).next()?;
        if authority.contains(|c: char| c == '\\' || c.is_whitespace()) {
            return None;
        }
        let (host, port) = split_port(authority.rsplit_once('@').map_or(authority, |(_, host)| host))?;
        let port = if port.is_empty() { None } else { Some(port.parse().ok()?) };
        Some(Self { host: Some(Host::parse(host)?), port, ..plain(scheme) })
    }

    /// The address, where it is one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self.host {
            Some(Host::Address(address)) => Some(address),
            Some(Host::Name(_)) | None => None,
        }
    }

    /// The port that is spoken to, where it can be told.
    pub(crate) fn effective_port(&self) -> Option<u16> {
        self.port.or(match self.scheme.as_str() {
            "http" | "ws" => Some(80),
            "https" | "wss" => Some(443),
            "ssh" => Some(22),
            "rdp" => Some(3389),
            "smb" => Some(445),
            _ => None,
        })
    }

    /// What it reaches.
    pub(crate) fn reaches(&self) -> Reaches {
        match &self.host {
            None if self.scheme.starts_with("unix") => Reaches::Machine,
            None => Reaches::Nothing,
            Some(Host::Address(_)) => Reaches::Machine,
            Some(Host::Name(name)) => service(name),
        }
    }

    /// Why it is nobody's to publish but the operator's: it reaches what protects the cluster.
    pub(crate) fn guarded(&self, api_server: &[IpAddr]) -> Option<&'static str> {
        match (&self.host, self.scheme.as_str()) {
            (_, "bastion" | "socks-proxy") => Some("it lets visitors choose where in the network they go"),
            (_, "unix" | "unix+tls") => Some("it is a socket of cloudflared's own machine"),
            (Some(Host::Address(address)), _) => guarded_address(*address, api_server),
            (Some(Host::Name(name)), _) => guarded_name(name, api_server),
            (None, _) => None,
        }
    }
}

impl Host {
    /// Reads a host; none where resolvers would not agree on it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            let address = inner.strip_suffix(']')?;
            let address = address.split('%').next()?;
            return address.parse::<Ipv6Addr>().ok().map(|address| Self::Address(plainest(address)));
        }
        let name = text.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(allowed) || name.split('.').any(str::is_empty) {
            return None;
        }
        if is_number(name.rsplit('.').next().unwrap_or_default()) {
            return address(name).map(|address| Self::Address(address.into()));
        }
        let of_cluster = |short: &&str| matches!(short.rsplit('.').next(), Some("svc" | "pod"));
        let short = name.strip_suffix(CLUSTER).filter(of_cluster);
        Some(Self::Name(short.unwrap_or(name).to_owned()))
    }
}

/// `host:port`, `[v6]:port`, or a host alone.
fn split_port(authority: &str) -> Option<(&str, &str)> {
    if authority.starts_with('[') {
        let end = authority.find(']')? + 1;
        let port = &authority[end..];
        return if port.is_empty() {
            Some((authority, ""))
        } else {
            Some((&authority[..end], port.strip_prefix(':')?))
        };
    }
    Some(authority.split_once(':').unwrap_or((authority, "")))
}

fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()));
    hex || label.chars().all(|c| c.is_ascii_digit())
}

/// An IPv4 address in any of the spellings that `inet_aton` takes: decimal, octal and hexadecimal, of one to four parts.
fn address(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, before) = parts.split_last()?;
    let rest = 4_usize.checked_sub(before.len()).filter(|rest| *rest > 0)?;
    let fits = u64::from(*last) < 1_u64 << (8 * rest) && before.iter().all(|part| *part < 256);
    let high = before.iter().enumerate().fold(0, |sum, (place, part)| sum | part << (24 - 8 * place));
    fits.then(|| Ipv4Addr::from(high | last))
}

fn number(part: &str) -> Option<u32> {
    match part {
        "0x" => Some(0),
        _ if part.starts_with("0x") => u32::from_str_radix(&part[2..], 16).ok(),
        _ if part.len() > 1 && part.starts_with('0') => u32::from_str_radix(part, 8).ok(),
        _ => part.parse().ok(),
    }
}

/// The IPv4 address that an IPv6 one carries, where it does: mapped, compatible, NAT64, 6to4.
fn plainest(address: Ipv6Addr) -> IpAddr {
    let segments = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match segments {
        // Neither the unspecified address nor the loopback carries one.
        [0, 0, 0, 0, 0, 0, 0, _] => address.into(),
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            join(high, low).into()
        }
        _ => address.into(),
    }
}

fn guarded_address(address: IpAddr, api_server: &[IpAddr]) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    };
    let metadata = METADATA.iter().any(|known| known.parse() == Ok(address));
    if link_local || metadata {
        Some("it is an address of the node's own, as those that hand out its credentials are")
    } else if api_server.contains(&address) {
        Some("it is the cluster's API server")
    } else {
        None
    }
}

fn guarded_name(name: &str, api_server: &[IpAddr]) -> Option<&'static str> {
    let is_api_server = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].contains(&name)
        || name.starts_with("kubernetes.default.svc.");
    if is_api_server {
        return Some("it is the cluster's API server");
    }
    if METADATA_NAMES.contains(&name) {
        return Some("it hands out the node's credentials");
    }
    // Every pod has a name made of its address, and DNS servers answer for any: 169-254-169-254.default.pod.
    let labels: Vec<&str> = name.split('.').collect();
    let of_pod = labels.get(2).filter(|label| **label == "pod").and(labels.first())?;
    guarded_address(of_pod.replace('-', ".").parse::<Ipv4Addr>().ok()?.into(), api_server)
}

/// `web.shop.svc`, also with a pod's name before it; `web.shop` is one where the namespace exists.
fn service(name: &str) -> Reaches {
    let labels: Vec<&str> = name.split('.').collect();
    let of = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
    match labels.as_slice() {
        [.., name, namespace, "svc"] => {
            let (namespace, name) = of(namespace, name);
            Reaches::Service { namespace, name }
        }
        [name, namespace] => {
            let (namespace, name) = of(namespace, name);
            Reaches::Perhaps { namespace, name }
        }
        _ => Reaches::Machine,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn guarded(url: &str) -> bool {
        Origin::parse(url).is_none_or(|origin| origin.guarded(&["10.96.0.1".parse().unwrap()]).is_some())
    }

    #[test]
    fn finding_12_what_protects_the_cluster_is_known_in_every_spelling() {
        for url in [
            "bastion",
            "socks-proxy",
            "unix:/var/run/docker.sock",
            "unix+tls:/run/x.sock",
            "http://169.254.169.254",
            "http://169.254.169.254:80/latest/meta-data/",
            "http://user:pass@169.254.169.254/",
            "http://web.shop.svc@169.254.169.254",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://0XA9.0xFE.0xA9.0xFE/",
            "http://0251.0376.0251.0376",
            "http://0251.254.43518",
            "http://169.16689662",
            "http://169.254.169.254.",
            "http://[::ffff:169.254.169.254]/",
            "http://[::ffff:a9fe:a9fe]:80",
            "http://[::169.254.169.254]",
            "http://[64:ff9b::a9fe:a9fe]",
            "http://[2002:a9fe:a9fe::1]",
            "http://[fe80::1%25eth0]:8080",
            "http://[febf::1]",
            "http://[fd00:ec2::254]",
            "http://168.63.129.16",
            "http://100.100.100.200",
            "http://Metadata.Google.Internal./computeMetadata/v1/",
            "http://metadata",
            "http://169-254-169-254.default.pod.cluster.local",
            "https://kubernetes",
            "https://kubernetes.default",
            "https://KUBERNETES.default.svc:443",
            "https://kubernetes.default.svc.cluster.local.",
            "https://kubernetes.default.svc.corp.example",
            "tcp://10.96.0.1:443",
            "tcp://10.6291457:443",
            "https://10-96-0-1.kube-system.pod",
        ] {
            assert!(guarded(url), "{url}");
        }
    }

    #[test]
    fn finding_12_what_nobody_can_read_for_certain_is_not_read() {
        for url in [
            "http://",
            "http://:80",
            "http:web",
            "http:/web",
            "http://a b",
            "http://169%2e254.169.254",
            "http://１６９.254.169.254",
            "http://169。254。169。254",
            "http://web\\@169.254.169.254",
            "http://web:99999",
            "http://web:80:90",
            "http://1.2.3.4.5",
            "http://256.1.1.1",
            "http://a..b",
            "http://[::1",
            "http://[::1]x",
            "http://[gg::1]",
        ] {
            assert_eq!(Origin::parse(url), None, "{url}");
        }
    }

    #[test]
    fn other_origins_protect_nothing() {
        for url in [
            "http://web",
            "https://web.shop.svc:443/path",
            "tcp://10.0.0.7:5432",
            "http://169.253.1.1",
            "http://[fd00::7]:80",
            "http://kubernetes-dashboard.kube-system.svc",
            "http://my-kubernetes.default.svc",
            "http://10-0-0-7.shop.pod",
            "hello_world",
            "http_status:404",
            "http://127.0.0.1:8080",
            "ssh://bastion:22",
        ] {
            assert!(!guarded(url), "{url}");
        }
    }

    #[test]
    fn services_are_known_by_their_names() {
        let reaches = |url: &str| Origin::parse(url).unwrap().reaches();
        let service = |namespace: &str, name: &str| Reaches::Service { namespace: namespace.into(), name: name.into() };

        for url in ["http://web.shop.svc", "https://Web.shop.svc.cluster.local:8443", "http://web-0.web.shop.svc."] {
            assert_eq!(reaches(url), service("shop", "web"), "{url}");
        }
        assert_eq!(reaches("http://web.shop"), Reaches::Perhaps { namespace: "shop".into(), name: "web".into() });
        for url in ["http://web", "http://web.shop.svc.example.com", "http://10.0.0.7", "http://a.b.example.com"] {
            assert_eq!(reaches(url), Reaches::Machine, "{url}");
        }
        assert_eq!(reaches("http_status:404"), Reaches::Nothing);
    }

    proptest! {
        #[test]
        fn every_spelling_of_an_address_is_that_address(number in any::<u32>()) {
            let wanted = Some(IpAddr::from(Ipv4Addr::from(number)));
            let [a, b, c, d] = number.to_be_bytes();
            for host in [
                format!("{a}.{b}.{c}.{d}"),
                format!("{number}"),
                format!("0x{number:x}"),
                format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
                format!("{a}.{}", number & 0xff_ffff),
                format!("[::ffff:{a}.{b}.{c}.{d}]"),
            ] {
                let origin = Origin::parse(&format!("http://{host}:80/")).unwrap();
                prop_assert_eq!(origin.address(), wanted, "{}", host);
            }
        }

        #[test]
        fn nothing_that_is_written_makes_reading_fail_otherwise(text in ".{0,40}") {
            drop(Origin::parse(&text));
            drop(Origin::parse(&format!("http://{text}")));
        }
    }
}
