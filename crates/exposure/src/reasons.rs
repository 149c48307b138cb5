//! Reasons that only publishing a name has: `PascalCase`, stable, and each with when it appears.

/// A reusable Access policy that is named does not exist, or several have the name.
pub const POLICY_NOT_FOUND: &str = "PolicyNotFound";
/// An Access group that is named does not exist, or several have the name.
pub const GROUP_NOT_FOUND: &str = "GroupNotFound";
/// The tunnel does not exist in the account.
pub const TUNNEL_NOT_FOUND: &str = "TunnelNotFound";
/// The tunnel takes its configuration from a file beside `cloudflared`, not from the API.
pub const TUNNEL_LOCALLY_MANAGED: &str = "TunnelLocallyManaged";
/// Somebody else kept writing the tunnel's configuration, and our rule is not in it.
pub const TUNNEL_CONFIG_CONFLICT: &str = "TunnelConfigConflict";
/// Somebody else wrote the tunnel's configuration between our read and our write.
pub const TUNNEL_CONFIG_RACED: &str = "TunnelConfigRaced";
/// The tunnel has a rule for the name that is not ours.
pub const TUNNEL_RULE_CONFLICT: &str = "TunnelRuleConflict";
/// The name has a DNS record that is not ours.
pub const DNS_RECORD_CONFLICT: &str = "DNSRecordConflict";
/// The name has an Access application that is not ours.
pub const ACCESS_APP_CONFLICT: &str = "AccessAppConflict";
/// The token may not edit redirect rules: the redirect to HTTPS is left to the zone's settings.
pub const HTTP_REDIRECT_NOT_MANAGED: &str = "HTTPRedirectNotManaged";
