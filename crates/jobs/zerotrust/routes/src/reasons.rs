//! Reasons that came as text, as words that events can carry.

use portolan_core::reasons as core;
use portolan_exposure::reasons as exposure;
use portolan_zerotrust_model::reasons;

/// Every reason that a task may give.
const KNOWN: &[&str] = &[
    reasons::ZONE_NOT_FOUND,
    reasons::ZONE_MISMATCH,
    reasons::DNS_SKIPPED,
    reasons::NO_ACCESS_POLICY,
    reasons::CREDENTIAL_NOT_FOUND,
    reasons::CREDENTIAL_KEY_MISSING,
    reasons::CREDENTIAL_INVALID,
    reasons::CLOUDFLARE_API_ERROR,
    reasons::INVALID_HOSTNAME,
    reasons::INVALID_TARGET_IP,
    reasons::PROTECTION_IMPOSSIBLE,
    core::RATE_LIMITED,
    core::QUOTA_EXCEEDED,
    core::ZERO_TRUST_NOT_ENABLED,
    core::QUOTA_NEARLY_REACHED,
    core::INVALID_CONFIG,
    core::ADOPTED,
    core::RELEASED,
    exposure::POLICY_NOT_FOUND,
    exposure::GROUP_NOT_FOUND,
    exposure::EVERYONE_ALLOWED,
    exposure::SECOND_WALL_IMPOSSIBLE,
    exposure::SERVICE_TOKEN_UNCLAIMED,
    exposure::SECOND_WALL_UNAVAILABLE,
    exposure::TUNNEL_NOT_FOUND,
    exposure::TUNNEL_LOCALLY_MANAGED,
    exposure::TUNNEL_CONFIG_CONFLICT,
    exposure::TUNNEL_CONFIG_RACED,
    exposure::TUNNEL_RULE_CONFLICT,
    exposure::DNS_RECORD_CONFLICT,
    exposure::ACCESS_APP_CONFLICT,
    exposure::HTTP_REDIRECT_NOT_MANAGED,
];

/// The reason of that name; what nobody knows is an error of the API.
pub(crate) fn named(name: &str) -> &'static str {
    KNOWN.iter().find(|known| **known == name).copied().unwrap_or(reasons::CLOUDFLARE_API_ERROR)
}

/// The reason that a task's message begins with.
pub(crate) fn of_message(message: &str) -> &'static str {
    named(message.split_once(':').map_or(message, |(reason, _)| reason).trim())
}

/// Whether a task's message begins with a reason: something is wrong, even while a worker has it.
pub(crate) fn is_told(message: &str) -> bool {
    message.split_once(": ").is_some_and(|(reason, _)| KNOWN.contains(&reason))
}

/// A task's message without the reason that it begins with.
pub(crate) fn without_reason(message: &str) -> &str {
    match message.split_once(": ") {
        Some((reason, rest)) if KNOWN.contains(&reason) => rest,
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_message_is_its_first_word_where_that_is_one() {
        assert_eq!(of_message("GroupNotFound: there is no group Engineering"), "GroupNotFound");
        assert_eq!(of_message("500: something broke"), "CloudflareAPIError");
        assert_eq!(of_message(""), "CloudflareAPIError");
        assert_eq!(without_reason("GroupNotFound: there is no group"), "there is no group");
        assert_eq!(without_reason("500: something broke"), "500: something broke");
    }
}
