//! What a job is made of: pieces that run beside each other, and a look for drift.

use std::borrow::Cow;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::jobs::drift::Passed;

/// Everything of a job that runs, made anew for every term.
pub struct JobTasks {
    pub(crate) tasks: Vec<Task>,
    pub(crate) pass: DriftPass,
}

/// Looks for drift once.
pub(crate) type DriftPass = Arc<dyn Fn() -> BoxFuture<'static, Passed> + Send + Sync>;

impl JobTasks {
    /// The same for a job that looks for drift by `pass` when asked.
    #[must_use]
    pub fn passing<F>(self, pass: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Passed> + Send + 'static,
    {
        Self { pass: Arc::new(move || pass().boxed()), ..self }
    }
}

impl From<Vec<Task>> for JobTasks {
    /// Tasks of a job that has nothing to look for.
    fn from(tasks: Vec<Task>) -> Self {
        Self { tasks, pass: Arc::new(|| std::future::ready(Passed::default()).boxed()) }
    }
}

/// A future with a name that also says how busy it is, and whether it has all it needs.
pub struct Task {
    /// What it is called in logs and probes.
    pub name: Cow<'static, str>,
    busy: Busy,
    lack: NotReady,
    run: BoxFuture<'static, ()>,
}

/// Tells how many things are under way.
pub type Busy = Arc<dyn Fn() -> usize + Send + Sync>;

/// Tells what a task waits for before it can do its work.
pub(crate) type NotReady = Arc<dyn Fn() -> Option<&'static str> + Send + Sync>;

impl Task {
    /// A task that ends when its job's shutdown token says so.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        busy: impl Fn() -> usize + Send + Sync + 'static,
        run: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), busy: Arc::new(busy), lack: Arc::new(|| None), run: run.boxed() }
    }

    /// The process is not ready while this names something.
    #[must_use]
    pub fn lacking(self, lack: impl Fn() -> Option<&'static str> + Send + Sync + 'static) -> Self {
        Self { lack: Arc::new(lack), ..self }
    }

    /// How busy it is, also after it was started.
    pub fn busy(&self) -> Busy {
        self.busy.clone()
    }

    /// What it lacks, also after it was started.
    pub(crate) fn lack(&self) -> NotReady {
        self.lack.clone()
    }

    /// Runs it.
    pub fn run(self) -> BoxFuture<'static, ()> {
        self.run
    }
}
