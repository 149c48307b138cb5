//! A piece of a job that runs beside the others.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

/// A future with a name that also says how busy it is.
pub struct Task {
    /// What it is called in logs.
    pub name: &'static str,
    busy: Busy,
    run: BoxFuture<'static, ()>,
}

/// Tells how many things are under way.
pub type Busy = Arc<dyn Fn() -> usize + Send + Sync>;

impl Task {
    /// A task that ends when its job's shutdown token says so.
    pub fn new(
        name: &'static str,
        busy: impl Fn() -> usize + Send + Sync + 'static,
        run: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { name, busy: Arc::new(busy), run: run.boxed() }
    }

    /// How busy it is, also after it was started.
    pub fn busy(&self) -> Busy {
        self.busy.clone()
    }

    /// Runs it.
    pub fn run(self) -> BoxFuture<'static, ()> {
        self.run
    }
}
