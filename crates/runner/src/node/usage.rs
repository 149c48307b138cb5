//! Pods that run → what they use of this machine, measured when somebody asks.

use std::io;
use std::sync::Arc;

use super::NodeContext;
use crate::machine::usage::{Usage, usage_by_pod};

/// What a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodUsage {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What its processes use.
    pub usage: Usage,
}

/// Measures pods.
#[derive(Clone)]
pub struct UsageMeter {
    context: Arc<NodeContext>,
}

impl UsageMeter {
    pub(super) fn of(context: Arc<NodeContext>) -> Self {
        Self { context }
    }

    /// What each pod of this runner uses now, by namespace and name. Reads all processes of the machine.
    pub fn measure(&self) -> io::Result<Vec<PodUsage>> {
        let names = self.context.names.lock().expect("nobody panics with it").clone();
        let all = usage_by_pod()?;
        let of = |(uid, usage)| {
            let (namespace, name) = names.get(&uid)?.clone();
            Some(PodUsage { namespace, name, usage })
        };
        let mut pods: Vec<PodUsage> = all.into_iter().filter_map(of).collect();
        pods.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
        Ok(pods)
    }
}
