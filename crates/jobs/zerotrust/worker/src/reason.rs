//! The word that a failed task gives for its problem: the ones that users of this job know.

use portolan_core::{Problem, reasons as core};
use portolan_exposure::reasons as exposure;
use portolan_zerotrust_model::{CloudflareTaskStatus, reasons};

/// The reason of a problem.
pub(crate) fn of(problem: &Problem) -> &'static str {
    match problem.reason {
        core::CREDENTIALS_DENIED => reasons::CREDENTIAL_INVALID,
        core::API_ERROR | core::CONFLICT_ERROR | core::ERROR | core::INVALID_CONFIG | core::NOT_FOUND => {
            reasons::CLOUDFLARE_API_ERROR
        }
        other => other,
    }
}

/// Whether another content of the credential's Secret may help.
pub(crate) fn is_of_credential(status: &CloudflareTaskStatus) -> bool {
    is_one(status, &[reasons::CREDENTIAL_INVALID, reasons::CREDENTIAL_NOT_FOUND, reasons::CREDENTIAL_KEY_MISSING])
}

/// Whether nothing but a policy or group at Cloudflare was missing.
pub(crate) fn is_of_something_missing(status: &CloudflareTaskStatus) -> bool {
    is_one(status, &[exposure::POLICY_NOT_FOUND, exposure::GROUP_NOT_FOUND])
}

/// Whether a task failed for one of these reasons.
fn is_one(status: &CloudflareTaskStatus, reasons: &[&str]) -> bool {
    status.failure_reason().is_some_and(|reason| reasons.contains(&reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cloudflare_refuses_is_told_in_the_words_of_this_job() {
        let told = |reason| of(&Problem::transient(reason, ""));

        assert_eq!(told(core::CREDENTIALS_DENIED), "CredentialInvalid");
        assert_eq!(told(core::API_ERROR), "CloudflareAPIError");
        assert_eq!((told(core::QUOTA_EXCEEDED), told("GroupNotFound")), ("QuotaExceeded", "GroupNotFound"));
    }

    #[test]
    fn only_problems_of_the_credential_wait_for_its_secret() {
        let said = |message: &str| CloudflareTaskStatus {
            message: Some(message.to_owned()),
            ..CloudflareTaskStatus::default()
        };
        let failed = |reason: &str| CloudflareTaskStatus { reason: Some(reason.to_owned()), ..said("it failed") };

        assert!(is_of_credential(&failed("CredentialNotFound")));
        assert!(!is_of_credential(&failed("GroupNotFound")));
        // As workers of earlier versions wrote it.
        assert!(is_of_credential(&said("CredentialNotFound: Secret default/x not found")));
        assert!(!is_of_credential(&said("GroupNotFound: CredentialInvalid is no group")));
        assert!(!is_of_credential(&said("")));
    }
}
