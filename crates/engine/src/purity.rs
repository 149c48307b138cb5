//! Holds the pure steps to their word. In tests they run where nothing can be read or written: on a thread without a
//! runtime, on which nobody can wait for a future, and which the doubles of clusters, of what is remote and of clocks refuse
//! to serve.

use std::cell::Cell;

thread_local! {
    static IN_PURE_STEP: Cell<bool> = const { Cell::new(false) };
}

/// How much the pure steps of controllers are believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purity {
    /// They are.
    #[default]
    Trusted,
    /// A step that starts a task, waits, or asks the world outside panics.
    Enforced,
}

impl Purity {
    /// Takes a pure step.
    pub(crate) fn step<T: Send>(self, step: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::Trusted => step(),
            Self::Enforced => alone(step),
        }
    }
}

/// Doubles of the world outside call this before they answer: in a pure step it panics.
pub fn refuse_pure_step(what: &str) {
    assert!(!IN_PURE_STEP.get(), "a pure step asked for {what}");
}

/// Takes a step on a thread of its own; what it logs goes where it would have gone.
fn alone<T: Send>(step: impl FnOnce() -> T + Send) -> T {
    let (span, logs) = (tracing::Span::current(), tracing::dispatcher::get_default(Clone::clone));
    let guarded = || {
        IN_PURE_STEP.set(true);
        let _nobody_waits = futures::executor::enter().expect("the thread is new");
        tracing::dispatcher::with_default(&logs, || span.in_scope(step))
    };
    std::thread::scope(|scope| scope.spawn(guarded).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn panics<T: Send>(step: impl FnOnce() -> T + Send) -> bool {
        catch_unwind(AssertUnwindSafe(|| drop(Purity::Enforced.step(step)))).is_err()
    }

    #[tokio::test]
    async fn a_pure_step_can_neither_start_a_task_nor_wait_nor_ask_the_world() {
        assert!(panics(|| drop(tokio::spawn(async {}))));
        assert!(panics(|| futures::executor::block_on(async {})));
        assert!(panics(|| drop(tokio::time::sleep(std::time::Duration::ZERO))));
        assert!(panics(|| refuse_pure_step("the time")));
    }

    #[tokio::test]
    async fn a_step_that_only_thinks_gives_what_it_thought() {
        let text = "borrowed".to_owned();

        assert_eq!(Purity::Enforced.step(|| text.len()), 8);
        refuse_pure_step("the time, and nobody is in a pure step here");
    }
}
