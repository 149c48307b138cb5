//! How keys are asked for → when they are renewed, or what to write.

use crate::defaults;
use crate::finding::Finding;
use crate::kinds::keys::{RndcAlgorithm, RndcKeyConfig, RndcSecretRef};
use crate::validate::image::is_object_name;

const SHORTEST_HOURS: i64 = 1;
const LONGEST_HOURS: i64 = 8760;

/// Reads how old a key becomes, in hours.
pub fn rotate_after_hours(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is no age; write a number with h, d or w, from 1h to 8760h, as 720h or 30d");
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 168,
        _ => return Err(wrong()),
    };
    let plain = digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: i64 = digits.parse().ok().filter(|_| plain).ok_or_else(wrong)?;
    Some(count * hours).filter(|hours| (SHORTEST_HOURS..=LONGEST_HOURS).contains(hours)).ok_or_else(wrong)
}

/// The algorithm that keys are made with, where it may sign.
pub fn strong_algorithm(asked: Option<RndcAlgorithm>, field: &str, found: &mut Vec<Finding>) -> RndcAlgorithm {
    let algorithm = asked.unwrap_or_default();
    if !algorithm.is_strong() {
        let message = format!("{} is too weak to sign with; write hmac-sha256 or a longer one", algorithm.as_str());
        found.push(Finding::refused(field, message));
    }
    algorithm
}

/// What is wrong with how keys are asked for.
pub(crate) fn key_config(config: &RndcKeyConfig, field: &str, found: &mut Vec<Finding>) {
    if let Some(Err(message)) = config.rotate_after.as_deref().map(rotate_after_hours) {
        found.push(Finding::refused(format!("{field}.rotateAfter"), message));
    }
    strong_algorithm(config.algorithm, &format!("{field}.algorithm"), found);
    if let Some(reference) = &config.secret_ref {
        secret_ref(reference, &format!("{field}.secretRef"), found);
        if config.auto_rotate == Some(true) {
            found.push(Finding::ignored(
                format!("{field}.autoRotate"),
                "a key of the user's is used as it is; put another one into the Secret to renew it",
            ));
        }
    }
    if let Some(secret) = &config.secret
        && !is_object_name(&secret.metadata.name)
    {
        found.push(Finding::refused(format!("{field}.secret.metadata.name"), "is no name of a Secret"));
    }
}

/// What is wrong with a reference to a Secret with a key.
pub(crate) fn secret_ref(reference: &RndcSecretRef, field: &str, found: &mut Vec<Finding>) {
    if !is_object_name(&reference.name) {
        found.push(Finding::refused(format!("{field}.name"), "is no name of a Secret"));
    }
    strong_algorithm(reference.algorithm, &format!("{field}.algorithm"), found);
}

/// The hours after which keys are renewed by themselves; none where they are not.
pub fn rotation_hours(config: &RndcKeyConfig) -> Option<i64> {
    (config.auto_rotate == Some(true)).then(|| {
        let asked = config.rotate_after.as_deref().and_then(|text| rotate_after_hours(text).ok());
        asked.unwrap_or(defaults::ROTATE_AFTER_HOURS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_numbers_with_a_unit_within_a_year() {
        assert_eq!(
            (rotate_after_hours("1h"), rotate_after_hours("30d"), rotate_after_hours("52w")),
            (Ok(1), Ok(720), Ok(8736))
        );
        for text in ["", "h", "0h", "8761h", "366d", "1m", "1.5h", "-1h", "1 h", "99999h", "ü"] {
            assert!(rotate_after_hours(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_are_renewed_by_themselves_only_where_that_is_asked_for() {
        let config = |auto_rotate, after: &str| RndcKeyConfig {
            auto_rotate,
            rotate_after: Some(after.to_owned()),
            ..RndcKeyConfig::default()
        };

        assert_eq!(rotation_hours(&config(None, "1h")), None);
        assert_eq!(rotation_hours(&config(Some(true), "2d")), Some(48));
        assert_eq!(rotation_hours(&config(Some(true), "soon")), Some(720), "what is wrong is found, and does no harm");
    }

    #[test]
    fn sha_1_may_be_written_and_not_used() {
        let mut found = Vec::new();
        strong_algorithm(Some(RndcAlgorithm::HmacSha1), "spec.rndcKey.algorithm", &mut found);

        assert!(found[0].message.contains("hmac-sha256"));
    }
}
