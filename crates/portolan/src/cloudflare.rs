//! `--cloudflare sim|live|URL`: which Cloudflare API is meant.

use portolan_cloudflare_api::{DEFAULT_BASE_URL, base_url};

use crate::failure::{Failure, Outcome};

/// Which Cloudflare API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cloudflare {
    /// A simulator in this process.
    Simulated,
    /// The one at this address.
    At(String),
}

impl Cloudflare {
    /// The public API, or the one that the environment names.
    pub(crate) fn live() -> Self {
        Self::At(base_url(|name| std::env::var(name).ok()))
    }

    /// The environment's address, if it names one.
    pub(crate) fn from_environment() -> Option<String> {
        Some(base_url(|name| std::env::var(name).ok())).filter(|url| url != DEFAULT_BASE_URL)
    }

    /// The API's address for a command that starts none: what was asked for, the environment's, that of the cluster (`own`),
    /// Cloudflare's.
    pub(crate) fn address(asked: Option<&Self>, own: impl FnOnce() -> Option<String>) -> Outcome<String> {
        match asked {
            Some(Self::At(url)) => Ok(url.clone()),
            Some(Self::Simulated) => Err(Failure::new("there is no simulator here to ask")
                .next("start one with `portolan sim` and give its address with --cloudflare")),
            None => Ok(Self::from_environment().or_else(own).unwrap_or_else(|| DEFAULT_BASE_URL.to_owned())),
        }
    }

    /// Reads the flag's value.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "sim" => Ok(Self::Simulated),
            "live" => Ok(Self::live()),
            url if url.starts_with("http://") || url.starts_with("https://") => {
                Ok(Self::At(url.trim_end_matches('/').to_owned()))
            }
            _ => Err("write sim, live, or the address of an API such as http://127.0.0.1:8787/client/v4".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_loses_its_last_slash_and_other_words_are_refused() {
        assert_eq!(Cloudflare::parse("http://a/client/v4/"), Ok(Cloudflare::At("http://a/client/v4".into())));
        assert_eq!(Cloudflare::parse("sim"), Ok(Cloudflare::Simulated));
        assert!(Cloudflare::parse("production").is_err());
    }
}
