//! Options of Windows containers → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::Errors;
use crate::meta::invalid;
use crate::names;

const MOST_CREDENTIAL_KIB: usize = 64;
const LONGEST_DOMAIN: usize = 256;
const LONGEST_USER: usize = 104;

/// Credentials and the user's name.
pub(super) fn validate_windows_options(options: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(name) = options["gmsaCredentialSpecName"].as_str() {
        invalid(errors, &path.field("gmsaCredentialSpecName"), name, names::dns_subdomain(name));
    }
    if let Some(specification) = options["gmsaCredentialSpec"].as_str() {
        let problem = match specification.len() {
            0 => Some("gmsaCredentialSpec cannot be an empty string".to_owned()),
            length if length > MOST_CREDENTIAL_KIB * 1024 => {
                Some(format!("gmsaCredentialSpec size must be under {MOST_CREDENTIAL_KIB} KiB"))
            }
            _ => None,
        };
        let problems: Vec<String> = problem.into_iter().collect();
        invalid(errors, &path.field("gmsaCredentialSpec"), specification, problems);
    }
    if let Some(name) = options["runAsUserName"].as_str() {
        for problem in user_problems(name) {
            errors.push(FieldError::invalid(&path.field("runAsUserName"), &json!(name), problem));
        }
    }
}

/// `USER` or `DOMAIN\\USER`.
fn user_problems(name: &str) -> Vec<String> {
    let whole = if name.is_empty() {
        Some("cannot be an empty string")
    } else if name.chars().any(|c| c.is_ascii_control()) {
        Some("cannot contain control characters")
    } else if name.matches('\\').count() > 1 {
        Some("cannot contain more than one backslash")
    } else {
        None
    };
    if let Some(problem) = whole {
        return vec![format!("runAsUserName {problem}")];
    }
    let (domain, user) = name.split_once('\\').map_or((None, name), |(domain, user)| (Some(domain), user));
    let mut problems = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= LONGEST_DOMAIN) {
        problems.push(format!("runAsUserName's Domain length must be under {LONGEST_DOMAIN} characters"));
    }
    if domain.is_some_and(|domain| !is_domain(domain)) {
        problems.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        problems.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > LONGEST_USER {
        problems.push(format!("runAsUserName's User length must not be longer than {LONGEST_USER} characters"));
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        problems.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|c| "\"/\\:;|=,+*?<>@[]".contains(c)) {
        let problem = "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]";
        problems.push(problem.to_owned());
    }
    problems
}

/// A name of up to 15 characters as older networks have it, or labels joined by dots.
fn is_domain(domain: &str) -> bool {
    let old = domain.len() <= 15
        && !domain.is_empty()
        && !domain.starts_with('.')
        && !domain.contains(|c| "\\/:*?\"<>|".contains(c));
    let label = |label: &str| {
        let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        let inner = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        label.len() > 1 && inner && edge(label.bytes().next()) && edge(label.bytes().last())
    };
    old || domain.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_may_be_of_a_domain() {
        assert!(user_problems("user").is_empty());
        assert!(user_problems("EXAMPLE\\user").is_empty());
        assert!(user_problems("corp.example-domain.com\\user").is_empty());
    }

    #[test]
    fn a_user_is_told_what_its_name_cannot_have() {
        for name in ["", "a\\b\\c", "a\\", "a/b", "..", "a\u{1}"] {
            assert!(!user_problems(name).is_empty(), "{name:?}");
        }
    }
}
