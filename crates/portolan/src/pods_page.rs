//! What `portolan up` tells of its pods, as JSON at an address of `urls.json`: what its runner may do, and what pods use.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where it stands, beside the metrics.
pub(crate) const PATH: &str = "/pods";
const TIMEOUT: Duration = Duration::from_secs(2);

/// The page.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct PodsPage {
    pub(crate) runner: RunnerFacts,
    /// Pods that have processes.
    pub(crate) pods: Vec<PodUse>,
}

/// What a runner may do on its machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunnerFacts {
    /// `run` or `simulate`.
    pub(crate) pods: String,
    /// The uid that it runs as.
    pub(crate) user: u32,
    /// Where pods' files and claims are.
    pub(crate) folder: String,
    /// The folder that pods' users may not pass through, where theirs lie elsewhere for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closed: Option<String>,
    /// The programs that pods can be, and where each is.
    pub(crate) programs: Vec<ProgramFacts>,
    /// What pods' addresses, Services and names can be.
    #[serde(default)]
    pub(crate) network: NetworkFacts,
}

/// How pods can be reached.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkFacts {
    /// Whether the loopback interface carries pods' addresses, for programs that only listen on those.
    pub(crate) can_add_addresses: bool,
    /// The one command that lets it, where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command_that_helps: Option<String>,
    /// Where names of Services are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resolver: Option<String>,
    /// Ports of Services that cannot be listened on, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_served: Vec<String>,
}

/// A program that stands for images.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct ProgramFacts {
    pub(crate) name: String,
    /// The images, with `*` for any registry and folders.
    pub(crate) images: Vec<String>,
    /// None where it is not on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
}

/// What a pod uses.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodUse {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Resident.
    pub(crate) memory_bytes: u64,
    /// Since its processes began.
    pub(crate) cpu_seconds: f64,
    pub(crate) processes: usize,
}

/// Reads the page. Nothing where it cannot be read: who asks does without.
pub(crate) async fn read(url: &str) -> Option<PodsPage> {
    let client = reqwest::Client::builder().timeout(TIMEOUT).build().ok()?;
    client.get(url).send().await.ok()?.error_for_status().ok()?.json().await.ok()
}

impl RunnerFacts {
    /// What does not work as it would for root with all in place, each with the one command that helps.
    pub(crate) fn shortcomings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.user != 0 {
            all.push(format!(
                "Pods all run as user {}, whose files they can read, since portolan is not root: `sudo portolan up` gives each a user of its own",
                self.user
            ));
        }
        if let Some(closed) = &self.closed {
            all.push(format!(
                "Pods' files are in {}, since their users may not pass through {closed}: `chmod o+x {closed}`, or a --data-dir elsewhere, keeps those of new data directories together",
                self.folder
            ));
        }
        if let Some(command) = &self.network.command_that_helps {
            all.push(format!(
                "The loopback interface does not carry pods' addresses, which named and its like listen on: `{command}` lets it, from the next start on"
            ));
        }
        all.extend(self.network.not_served.iter().map(|port| format!("A Service is not served: {port}")));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(user: u32, closed: Option<&str>) -> RunnerFacts {
        RunnerFacts {
            pods: "run".to_owned(),
            user,
            folder: "/var/lib/portolan/x".to_owned(),
            closed: closed.map(str::to_owned),
            ..RunnerFacts::default()
        }
    }

    #[test]
    fn what_does_not_work_is_told_with_the_command_that_helps() {
        assert!(facts(0, None).shortcomings().is_empty());
        assert!(facts(1000, None).shortcomings()[0].contains("`sudo portolan up`"));
        assert!(facts(0, Some("/root")).shortcomings()[0].contains("`chmod o+x /root`"));
        let mut unconnected = facts(0, None);
        unconnected.network.command_that_helps = Some("sudo setcap cap_net_admin+ep portolan".to_owned());
        assert!(unconnected.shortcomings()[0].contains("`sudo setcap cap_net_admin+ep portolan`"));
    }
}
