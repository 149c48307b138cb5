//! A piece of a job that runs beside the others.

use std::borrow::Cow;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

/// A future with a name that also says how busy it is, and whether it has all it needs.
pub struct Task {
    /// What it is called in logs and probes.
    pub name: Cow<'static, str>,
    busy: Busy,
    lack: Lack,
    run: BoxFuture<'static, ()>,
}

/// Tells how many things are under way.
pub type Busy = Arc<dyn Fn() -> usize + Send + Sync>;

/// Tells what a task waits for before it can do its work.
pub(crate) type Lack = Arc<dyn Fn() -> Option<&'static str> + Send + Sync>;

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
    pub(crate) fn lack(&self) -> Lack {
        self.lack.clone()
    }

    /// Runs it.
    pub fn run(self) -> BoxFuture<'static, ()> {
        self.run
    }
}
