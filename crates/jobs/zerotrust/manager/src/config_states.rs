//! What the Deployment's controller last found out about a configuration, for the one that reports it.

use portolan_core::Problem;
use portolan_engine::Verdicts;
use portolan_zerotrust_model::CloudflareZeroTrustOperatorConfig as Config;

/// A configuration at one time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConfigVersion {
    pub(crate) uid: String,
    pub(crate) generation: i64,
}

impl ConfigVersion {
    pub(crate) fn of(config: &Config) -> Self {
        let meta = &config.metadata;
        Self { uid: meta.uid.clone().unwrap_or_default(), generation: meta.generation.unwrap_or_default() }
    }
}

/// How the configuration in force was taken: it stands, or could not be applied. There is one verdict at most.
pub(crate) type ConfigVerdicts = Verdicts<ConfigVersion, Result<(), Problem>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_about_one_version_alone() {
        let (verdicts, version) = (ConfigVerdicts::default(), ConfigVersion { uid: "u".to_owned(), generation: 1 });

        verdicts.post_alone(Some((version.clone(), Ok(()))));

        assert_eq!(verdicts.about(&version), Some(Ok(())));
        assert_eq!(verdicts.about(&ConfigVersion { generation: 2, ..version }), None);
    }
}
