//! A job as data: what is known of it, what it needs, and how it starts. Whoever runs jobs has a list of these.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use portolan_core::job::JobSheet;
use portolan_core::{NameStory, Problem, WriteGate};

use crate::context::Context;
use crate::jobs::leadership::Leadership;
use crate::jobs::lease::Candidacy;
use crate::jobs::provisions::Provisions;
use crate::jobs::supervisor::Job;
use crate::pass::annotations::Steering;

/// A job. All of it is told by [`Provisions`] how it is to run in this process; where they say nothing, it runs as usual.
#[derive(Clone, Copy, Debug)]
pub struct JobDefinition {
    /// What is known of it without running it.
    pub sheet: JobSheet,
    /// The part of it that this process is told to do, where that is not everything.
    pub part: fn(&Provisions) -> Option<&'static str>,
    /// Its own namespace, where that is not the process's.
    pub namespace: fn(&Provisions) -> Option<OwnNamespace>,
    /// The lease by which this process leads it, where it is led.
    pub lease: fn(&Provisions) -> Option<&'static str>,
    /// The kinds of its own that this process works with, where those are not all.
    pub kinds: fn(&Provisions) -> Option<&'static [&'static str]>,
    /// The kinds of others that this process works with.
    pub needs: fn(&Provisions) -> &'static [NeededKind],
    /// What becomes of it while a kind is missing.
    pub lacking: Lacking,
    /// Whether this process marks remote objects as ours.
    pub marks: fn(&Provisions) -> bool,
    /// Says in the log how it runs.
    pub announce: fn(&Provisions),
    /// What it tells of hostnames, where its objects ask for some.
    pub names: Option<NameTeller>,
    /// Makes it.
    pub start: fn(&JobStart<'_>) -> Job,
}

/// How a job tells of a hostname.
#[derive(Clone, Copy, Debug)]
pub struct NameTeller {
    /// What asks for a name, as `route`.
    pub asker: &'static str,
    /// Several of them, which is also how programs find their stories: `routes`.
    pub askers: &'static str,
    /// What to do to ask for a name.
    pub hint: &'static str,
    /// Looks into a cluster. A cluster without the job's kinds knows no names.
    pub tell: for<'a> fn(NameQuestion<'a>) -> BoxFuture<'a, Result<NameAnswer, Problem>>,
}

/// A question about a hostname.
#[derive(Clone, Copy)]
pub struct NameQuestion<'a> {
    /// The cluster.
    pub client: &'a Client,
    /// The namespace of the job's own objects.
    pub namespace: &'a str,
    /// The name in its one spelling, or as it was written where it has none.
    pub hostname: &'a str,
}

/// What a job knows of a hostname.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NameAnswer {
    /// Those who ask for it; the one that has it first.
    pub stories: Vec<NameStory>,
    /// All names that are asked for.
    pub known: Vec<String>,
}

/// A namespace that a job keeps its own objects in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnNamespace {
    /// Its name.
    pub name: String,
    /// What is kept there, as `tasks and states`.
    pub keeps: &'static str,
}

/// A kind of others that a job cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededKind {
    /// Its API group.
    pub group: &'static str,
    /// Its name, as in manifests.
    pub kind: &'static str,
    /// What it is, as `HTTPRoute of the Gateway API`.
    pub called: &'static str,
    /// What to do where it is missing.
    pub remedy: &'static str,
}

/// What becomes of a job while the cluster lacks a kind that it works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// It starts, and does what it can.
    Starts,
    /// It waits until the kind is there.
    Waits,
}

/// What a job is made of.
pub struct JobStart<'a> {
    /// The cluster, and what all controllers of the process share.
    pub context: Arc<Context>,
    /// What else the process has for it.
    pub provisions: &'a Provisions,
    /// Open while this process may write elsewhere in the job's name.
    pub gate: WriteGate,
}

impl JobDefinition {
    /// A job that runs in the process's namespace, cannot be divided, and works with all of its kinds.
    pub const fn of(sheet: JobSheet, start: fn(&JobStart<'_>) -> Job) -> Self {
        Self {
            sheet,
            part: |_| None,
            namespace: |_| None,
            lease: |_| None,
            kinds: |_| None,
            needs: |_| &[],
            lacking: Lacking::Starts,
            marks: |_| true,
            announce: |_| (),
            names: None,
            start,
        }
    }

    /// The job in this process. A `candidate` stands for its lease, and whatever the job writes is sent while it leads.
    pub fn job(&self, context: &Arc<Context>, provisions: &Provisions, candidate: Option<&str>) -> Job {
        let own = Context { steering: Steering::with(self.sheet.older_prefixes), ..Context::clone(context) };
        let candidacy = candidate.and_then(|identity| self.candidacy(&own.operator_namespace, provisions, identity));
        let Some(candidacy) = candidacy else {
            return (self.start)(&JobStart { context: Arc::new(own), provisions, gate: WriteGate::default() });
        };
        let leadership = Leadership::default();
        let guarded = Context { client: leadership.guard(&own.client), ..own };
        let start = JobStart { context: Arc::new(guarded), provisions, gate: leadership.gate() };
        (self.start)(&start).elected(candidacy).granting(&leadership)
    }

    /// The lease that a process of this identity stands for: in the job's own namespace, else in the process's.
    pub fn candidacy(&self, namespace: &str, provisions: &Provisions, identity: &str) -> Option<Candidacy> {
        let lease = (self.lease)(provisions)?.to_owned();
        let namespace = (self.namespace)(provisions).map_or_else(|| namespace.to_owned(), |own| own.name);
        Some(Candidacy { namespace, lease, identity: identity.to_owned() })
    }
}
