//! How a process talks to the API.

use std::time::Duration;

use crate::budget::governor::Limit;
use crate::budget::limits::Limits;
use crate::call::retry::RetryPolicy;

/// Where the API is unless the environment says otherwise.
pub const DEFAULT_BASE_URL: &str = "https://api.cloudflare.com/client/v4";

/// What all clients of a process share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The API's root.
    pub base_url: String,
    /// Budget of a credential until the API tells its own.
    pub limit: Limit,
    /// How many objects accounts and zones may have, as far as known.
    pub limits: Limits,
    /// When failed requests are sent again.
    pub retry: RetryPolicy,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// Every write is refused here, before it is sent.
    pub read_only: bool,
    /// Seed of the pauses' jitter.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            limit: Limit::default(),
            limits: Limits::default(),
            retry: RetryPolicy::default(),
            timeout: Duration::from_secs(30),
            read_only: false,
            seed: 0,
        }
    }
}

impl Settings {
    /// The defaults with the root that the process environment names.
    pub fn from_env() -> Self {
        Self { base_url: base_url(|name| std::env::var(name).ok()), ..Self::default() }
    }
}

/// The API's root: `CLOUDFLARE_API_BASE_URL`, else `CLOUDFLARE_API_BASE`, else the public one.
pub fn base_url(variable: impl Fn(&str) -> Option<String>) -> String {
    let named = |name| variable(name).map(|value| value.trim().trim_end_matches('/').to_owned());
    ["CLOUDFLARE_API_BASE_URL", "CLOUDFLARE_API_BASE"]
        .into_iter()
        .filter_map(named)
        .find(|value| !value.is_empty())
        .unwrap_or_else(|| DEFAULT_BASE_URL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_root_and_the_longer_name_wins() {
        let both = |name: &str| Some(format!("http://{}/", name.to_ascii_lowercase()));
        let older = |name: &str| (name == "CLOUDFLARE_API_BASE").then(|| "http://old/client/v4".to_owned());

        assert_eq!(base_url(both), "http://cloudflare_api_base_url");
        assert_eq!(base_url(older), "http://old/client/v4");
        assert_eq!(base_url(|_| Some(" ".to_owned())), DEFAULT_BASE_URL);
    }
}
