//! Reasons that only publishing a name has: `PascalCase`, stable, and each with when it appears.

portolan_core::reasons! {
    /// A reusable Access policy that is named does not exist, or several have the name.
    POLICY_NOT_FOUND = "PolicyNotFound";
    /// An Access group that is named does not exist, several have the name, or it is named as all are.
    GROUP_NOT_FOUND = "GroupNotFound";
    /// Whoever logs in may pass, since the literal `everyone` stands among the groups.
    EVERYONE_ALLOWED = "EveryoneAllowed";
    /// Access was asked for where requests would not pass through it.
    PROTECTION_IMPOSSIBLE = "ProtectionImpossible";
    /// The application lets requests pass without a token, so the tunnel's client cannot ask for one.
    SECOND_WALL_IMPOSSIBLE = "SecondWallImpossible";
    /// The team's name cannot be read, so the tunnel's client is not told to ask for the application's token.
    SECOND_WALL_UNAVAILABLE = "SecondWallUnavailable";
    /// The account has a service token of the wanted name that may be left from an earlier attempt, or be another cluster's.
    SERVICE_TOKEN_UNCLAIMED = "ServiceTokenUnclaimed";
    /// The tunnel does not exist in the account.
    TUNNEL_NOT_FOUND = "TunnelNotFound";
    /// The tunnel takes its configuration from a file beside `cloudflared`, not from the API.
    TUNNEL_LOCALLY_MANAGED = "TunnelLocallyManaged";
    /// Somebody else kept writing the tunnel's configuration, and our rule is not in it.
    TUNNEL_CONFIG_CONFLICT = "TunnelConfigConflict";
    /// Somebody else wrote the tunnel's configuration between our read and our write.
    TUNNEL_CONFIG_RACED = "TunnelConfigRaced";
    /// The tunnel has a rule for the name that is not ours.
    TUNNEL_RULE_CONFLICT = "TunnelRuleConflict";
    /// The name has a DNS record that is not ours.
    DNS_RECORD_CONFLICT = "DNSRecordConflict";
    /// The name has an Access application that is not ours.
    ACCESS_APP_CONFLICT = "AccessAppConflict";
    /// The token may not edit redirect rules: the redirect to HTTPS is left to the zone's settings.
    HTTP_REDIRECT_NOT_MANAGED = "HTTPRedirectNotManaged";
}
