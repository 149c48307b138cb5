//! What the schemas say of texts: patterns, and CEL rules with the sentence for whoever breaks them. The code checks the same again
//! (`validate`), since objects may be older than their definition.

use portolan_core::schema::CelRule;

/// A zone's name: labels of letters, digits, hyphens and underscores, without a dot at the end. Underscores are no host names (RFC 952)
/// but zones have them: `_msdcs.example.com`.
pub(crate) const ZONE_PATTERN: &str =
    r"^[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?)*$";

/// A zone's name is no address, which a pattern could not say without looking ahead.
pub(crate) const ZONE: &[CelRule] = &[(
    "!self.matches('^[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+$')",
    "write the zone's name, as example.com; an address is none (its reverse zone is 2.0.192.in-addr.arpa)",
)];

/// A full host name: labels, each with the dot after it.
pub(crate) const HOST_PATTERN: &str = r"^([A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?[.])+$";

/// A mailbox as SOA records have it: the first label is the local part, in which `\.` stands for a dot (RFC 1035 §8).
pub(crate) const MAILBOX_PATTERN: &str =
    r"^([A-Za-z0-9_]([-A-Za-z0-9_+\\.]{0,61}[A-Za-z0-9_+])?[.])([A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?[.])+$";

/// An IPv4 address, each part of it at most 255.
pub(crate) const IPV4_PATTERN: &str =
    r"^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])$";

/// What an IPv6 address is written with; the code reads it.
pub(crate) const IPV6_PATTERN: &str = "^[0-9A-Fa-f:.]{2,45}$";

/// Hosts without their dot at the end are told what to write.
pub(crate) const HOST: &[CelRule] =
    &[("self.endsWith('.')", "write the full name with a dot at its end, as ns1.example.com.")];

/// The name of an object.
pub(crate) const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

/// The name of a policy of `named`, which is an identifier in its configuration.
pub(crate) const POLICY_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$";

/// An algorithm or a lifetime: one word.
pub(crate) const WORD_PATTERN: &str = "^[A-Za-z0-9]{1,32}$";

/// When a key is renewed.
pub(crate) const ROTATION_PATTERN: &str = "^[1-9][0-9]{0,3}[hdw]$";

/// Tags of images that say which version they are.
pub(crate) const VERSION_PATTERN: &str = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$";

/// A plain address, of either family.
pub(crate) const ADDRESS_PATTERN: &str = "^[0-9A-Fa-f:.]{2,45}$";

/// How many entries an ACL may have.
pub(crate) const ACL_ENTRIES: usize = 256;
