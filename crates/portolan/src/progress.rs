//! Progress of long work: a spinner on a terminal, a line for each step elsewhere. All on standard error.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// What is going on right now.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    last: std::sync::Mutex<String>,
}

impl Progress {
    /// A spinner if standard error is a terminal.
    pub(crate) fn start() -> Self {
        Self { bar: std::io::stderr().is_terminal().then(spinner), last: std::sync::Mutex::default() }
    }

    /// The step that runs now. The same one again says nothing new.
    pub(crate) fn step(&self, text: impl Into<String>) {
        let text = text.into();
        let mut last = self.last.lock().expect("nothing panics while it is held");
        if *last == text {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(text.clone()),
            None => eprintln!("{text}"),
        }
        *last = text;
    }

    /// A detail that changes often: only where it replaces the one before.
    pub(crate) fn detail(&self, text: impl Into<String>) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.into());
        }
    }

    /// A line that stays.
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{}", text.as_ref())),
            None => eprintln!("{}", text.as_ref()),
        }
    }

    /// Takes the spinner away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {msg} [{elapsed}]").expect("the template is constant"));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
