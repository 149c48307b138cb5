//! What a schema can say of a `DNSRecord`, as CEL rules, and the sentences that go with it.

use portolan_core::schema::CelRule;
use portolan_dns::RecordType;

/// Rules on `spec`.
pub(super) const RULES: &[CelRule] = &[
    (
        "!(has(self.sourceRef) && has(self.content) && self.content != '')",
        "content and sourceRef exclude each other: remove one of them",
    ),
    (
        "has(self.sourceRef) || has(self.data) || (has(self.content) && self.content != '')",
        "a record needs a value: set content, data or sourceRef",
    ),
    ("has(self.type) || has(self.sourceRef)", "set type: it can only be left out with sourceRef"),
    (
        "!self.name.matches('[\\\\s/:]')",
        "name is the full name of the record, as www.example.com, without scheme, port, path or blanks",
    ),
    (
        "!has(self.proxied) || !self.proxied || !has(self.type) || self.type in ['A', 'AAAA', 'CNAME']",
        "proxied is for A, AAAA and CNAME: remove it, or change type",
    ),
    (
        "!has(self.ttl) || self.ttl == 1 || (self.ttl >= 30 && self.ttl <= 86400)",
        "ttl is 1 for automatic, or 60 to 86400 seconds (from 30 in enterprise zones)",
    ),
    (
        "!has(self.type) || self.type != 'A' || !has(self.content) || self.content == '' || \
         (isIP(self.content) && ip(self.content).family() == 4)",
        "content of an A record is an IPv4 address, as 203.0.113.7",
    ),
    (
        "!has(self.type) || self.type != 'AAAA' || !has(self.content) || self.content == '' || \
         (isIP(self.content) && ip(self.content).family() == 6)",
        "content of an AAAA record is an IPv6 address, as 2001:db8::7",
    ),
    (
        "!has(self.type) || !(self.type in ['CNAME', 'NS', 'MX']) || !has(self.content) || self.content == '' || \
         (!isIP(self.content) && self.content.matches('^[^\\\\s/:]+$'))",
        "content of a CNAME, NS or MX record is a host name, as target.example.com; for an address use type A or AAAA",
    ),
    (
        "!has(self.type) || self.type != 'MX' || has(self.priority)",
        "an MX record needs a priority: set priority, as 10",
    ),
    (
        "!has(self.type) || !(self.type in ['SRV', 'URI']) || !has(self.data) || has(self.priority) || \
         has(self.data.priority)",
        "SRV and URI records need a priority: set priority, as 10",
    ),
    (
        "!has(self.type) || self.type != 'SRV' || !has(self.data) || (has(self.data.port) && has(self.data.target))",
        "data of an SRV record needs port and target",
    ),
    (
        "!has(self.type) || self.type != 'CAA' || !has(self.data) || (has(self.data.tag) && has(self.data.value))",
        "data of a CAA record needs tag and value, as tag: issue and value: letsencrypt.org",
    ),
    (
        "!has(self.type) || !(self.type in ['TLSA', 'SMIMEA', 'CERT']) || !has(self.data) || has(self.data.certificate)",
        "data of a TLSA, SMIMEA or CERT record needs certificate",
    ),
    (
        "!has(self.type) || self.type != 'SSHFP' || !has(self.data) || has(self.data.fingerprint) || \
         has(self.data.certificate)",
        "data of an SSHFP record needs fingerprint",
    ),
    (
        "!has(self.type) || self.type != 'DS' || !has(self.data) || has(self.data.digest) || has(self.data.certificate)",
        "data of a DS record needs digest",
    ),
    (
        "!has(self.type) || self.type != 'DNSKEY' || !has(self.data) || has(self.data.publicKey) || \
         has(self.data.certificate)",
        "data of a DNSKEY record needs publicKey",
    ),
    (
        "!has(self.type) || self.type != 'NAPTR' || !has(self.data) || has(self.data.replacement) || has(self.data.regex)",
        "data of a NAPTR record needs replacement or regex",
    ),
    (
        "!has(self.type) || self.type != 'URI' || !has(self.data) || has(self.data.target) || has(self.data.content)",
        "data of a URI record needs target",
    ),
    (
        "!has(self.type) || self.type != 'LOC' || !has(self.data) || \
         (has(self.data.latDirection) && has(self.data.longDirection))",
        "data of a LOC record needs latDirection (N or S) and longDirection (E or W)",
    ),
];

/// The sentence for a value with parts that is incomplete or unreadable.
pub(super) fn wanted_parts(kind: RecordType) -> String {
    let parts = match kind {
        RecordType::Srv => "priority, weight, port (0 to 65535) and target",
        RecordType::Caa => "flags (0 to 255), tag and value",
        RecordType::Cert => "type, keyTag, algorithm and certificate",
        RecordType::Dnskey => "flags, protocol, algorithm and publicKey",
        RecordType::Ds => "keyTag, algorithm, digestType and digest",
        RecordType::Https | RecordType::Svcb => "priority, target and value",
        RecordType::Loc => {
            "latDegrees, latMinutes, latSeconds, latDirection (N or S), longDegrees, longMinutes, longSeconds, \
             longDirection (E or W) and altitude"
        }
        RecordType::Naptr => "order, preference, flags, service, regex and replacement",
        RecordType::Smimea | RecordType::Tlsa => "usage, selector, matchingType and certificate",
        RecordType::Sshfp => "algorithm, type and fingerprint",
        RecordType::Uri => "weight and target",
        RecordType::A
        | RecordType::Aaaa
        | RecordType::Cname
        | RecordType::Txt
        | RecordType::Mx
        | RecordType::Ns
        | RecordType::Other => "nothing",
    };
    format!("data of a record of type {kind} needs {parts}")
}
