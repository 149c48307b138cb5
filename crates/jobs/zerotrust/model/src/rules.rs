//! What the schemas of several kinds say of texts: CEL rules, and the sentences that go with them.

use portolan_core::schema::CelRule;

/// An account or a zone.
pub(crate) const ID: &[CelRule] =
    &[("self.matches('^[a-f0-9]{32}$')", "write the id: 32 hexadecimal digits, lower case")];

/// A tunnel.
pub(crate) const UUID: &[CelRule] = &[(
    "self.matches('^[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}$')",
    "write the tunnel's UUID in lower case, as 11111111-2222-3333-4444-555555555555",
)];

/// The same as a pattern, for items of lists.
pub(crate) const UUID_PATTERN: &str = "^[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}$";

/// The name of an object: nothing that is a path.
pub(crate) const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

/// How long something lasts, as Go writes it.
pub(crate) const DURATION: &[CelRule] = &[(
    "self == '' || self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$')",
    "write a duration in hours, minutes and seconds, as 24h or 1h30m",
)];

/// How long a service token lasts.
pub(crate) const LIFETIME: &[CelRule] = &[(
    "self == '' || self == 'forever' || self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$')",
    "write a duration in hours, as 8760h, or forever",
)];

/// Where requests go.
pub(crate) const URL: &[CelRule] = &[(
    "self == '' || self.matches('^([a-z][a-z0-9+._-]*:.+|hello_world|hello-world|bastion|socks-proxy)$')",
    "write the origin as a URL, as http://web.shop.svc:80",
)];

/// Seconds that DNS answers may be kept.
pub(crate) const TTL: &[CelRule] =
    &[("self == 1 || (self >= 60 && self <= 86400)", "write 1 (automatic), or 60 to 86400 seconds")];

/// An address that a record can point to.
pub(crate) const IPV4: &[CelRule] = &[(
    "self == '' || self.matches('^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])$')",
    "write an IPv4 address, as 10.0.0.7",
)];
