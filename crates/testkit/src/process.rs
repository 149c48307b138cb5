//! How a world's operator is divided into processes, and what each of them is told when it starts.

use std::sync::Arc;

use portolan_engine::{Drift, Provisions};

use crate::pace::WorldPace;

/// A process of the operator: the role of the job that it has, and its number among those that have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperatorProcess {
    /// The role, as the job's sheet names it.
    pub role: &'static str,
    /// From 1 on.
    pub number: usize,
}

impl OperatorProcess {
    /// The first one of a role.
    pub const fn of(role: &'static str) -> Self {
        Self { role, number: 1 }
    }
}

/// What is known when a process starts.
#[derive(Clone, Copy, Debug)]
pub struct ProcessStart {
    /// The process.
    pub process: OperatorProcess,
    /// How many processes of the world were started before.
    pub life: u64,
    /// When drift passes are made by themselves.
    pub drift: Drift,
    /// How fast time goes.
    pub pace: WorldPace,
}

type Told = dyn Fn(&ProcessStart, Provisions) -> Provisions + Send + Sync;

/// The processes that the operator consists of, in the order of their starts.
#[derive(Clone)]
pub struct Processes {
    pub(crate) all: Vec<OperatorProcess>,
    told: Arc<Told>,
}

impl Processes {
    /// Several, each of which is told something more than all are.
    pub fn told(
        all: Vec<OperatorProcess>,
        told: impl Fn(&ProcessStart, Provisions) -> Provisions + Send + Sync + 'static,
    ) -> Self {
        Self { all, told: Arc::new(told) }
    }

    /// One that is told nothing.
    pub fn one(role: &'static str) -> Self {
        Self::told(vec![OperatorProcess::of(role)], |_, provisions| provisions)
    }

    pub(crate) fn provisions(&self, start: &ProcessStart, provisions: Provisions) -> Provisions {
        (self.told)(start, provisions)
    }
}
