//! What holds where nobody says anything: the last layer. No schema has a default, so that "not said" stays different from any value.

/// Version of BIND 9.
pub const VERSION: &str = "9.18";
/// The image, to which the version is the tag.
pub const IMAGE: &str = "internetsystemsconsortium/bind9";
/// When images are pulled.
pub const PULL_POLICY: &str = "IfNotPresent";
/// The key that servers are controlled with.
pub const CONTROL_KEY: &str = "bindy-operator";
/// The key that zones are updated with.
pub const UPDATE_KEY: &str = "bindy-update";
/// How old keys become that are renewed by themselves: 30 days, in hours.
pub const ROTATE_AFTER_HOURS: i64 = 720;
/// Seconds that answers may be kept.
pub const TTL: i32 = 300;
/// The port that servers listen on: above 1023, so that they need no rights.
pub const DNS_PORT: u16 = 5353;
/// The port that they are controlled by.
pub const CONTROL_PORT: u16 = 9530;
/// The port of Services.
pub const SERVICE_PORT: u16 = 53;
/// Where they keep zones, journals and keys.
pub const DIRECTORY: &str = "/var/cache/bind";
/// Where their configuration is.
pub const CONFIG_DIRECTORY: &str = "/etc/bind/config";
/// Where their keys are.
pub const KEYS_DIRECTORY: &str = "/etc/bind/keys";
/// The policy that zones are signed by.
pub const POLICY: &str = "default";
/// What zones are signed with.
pub const SIGNING_ALGORITHM: &str = "ECDSAP256SHA256";
/// How long signing keys live.
pub const KEY_LIFETIME: &str = "unlimited";
/// Bytes of salt where NSEC3 is asked for and no salt is given, as the older operator had it.
pub const NSEC3_SALT_BYTES: usize = 16;
/// Whom servers run as.
pub const USER: i64 = 101;
