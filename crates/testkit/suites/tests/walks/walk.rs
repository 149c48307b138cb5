//! Waypoints in the order in which they are reached → the walk, as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

/// How wide the text is.
const WIDTH: usize = 120;

/// Notes which files a walk comes by. Clones share what they note.
#[derive(Clone, Default)]
pub(crate) struct Walker {
    walks: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Waypoint>>>,
}

/// A file that a walk came by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waypoint {
    /// The crate, as its modules call it.
    of: String,
    /// Below `crates/`.
    path: String,
}

impl Waypoint {
    fn of(metadata: &Metadata<'_>) -> Option<Self> {
        let module = metadata.module_path().filter(|_| metadata.name() == "waypoint")?;
        Some(Self {
            of: module.split("::").next().unwrap_or_default().to_owned(),
            path: metadata.file()?.strip_prefix("crates/")?.to_owned(),
        })
    }

    /// What comes before `src/`, and what comes after it without its ending.
    fn place(&self) -> (&str, &str) {
        let (folder, file) = self.path.split_once("/src/").unwrap_or(("", &self.path));
        (folder, file.strip_suffix(".rs").unwrap_or(file))
    }
}

impl Walker {
    /// Listens as long as what is answered lives.
    pub(crate) fn listen(&self) -> DefaultGuard {
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    /// The walk begins.
    pub(crate) fn begin(&self) {
        self.walks.store(true, Ordering::SeqCst);
    }

    /// The walk ends; it must have come by all of a main path.
    pub(crate) fn end(&self, main_path: &[&str]) -> Walk {
        self.walks.store(false, Ordering::SeqCst);
        let seen = self.seen.lock().expect("nothing panics while it notes");
        let missed: Vec<&&str> =
            main_path.iter().filter(|path| seen.iter().all(|waypoint| waypoint.path != **path)).collect();
        let on_path = |waypoint: &&Waypoint| main_path.contains(&waypoint.path.as_str());
        let walk = Walk(seen.iter().filter(on_path).cloned().collect());
        assert!(missed.is_empty(), "nobody came by {missed:#?}\n{}", walk.text("The walk so far"));
        walk
    }
}

impl<S: Subscriber> Layer<S> for Walker {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let Some(waypoint) = Waypoint::of(attributes.metadata()) else { return };
        let mut seen = self.seen.lock().expect("nothing panics while it notes");
        if self.walks.load(Ordering::SeqCst) && !seen.contains(&waypoint) {
            seen.push(waypoint);
        }
    }
}

/// The files of a main path, in the order in which an object first came by.
pub(crate) struct Walk(Vec<Waypoint>);

impl Walk {
    /// Holds that the walk is the one that a page shows.
    pub(crate) fn assert(&self, title: &str, page: &str) {
        let text = self.text(title);
        let page = std::fs::read_to_string(page).expect("the page can be read");
        assert!(page.contains(&text), "docs/architecture.md shows another walk; it is\n\n{text}");
    }

    /// How often the next file is one of another crate.
    fn changes(&self) -> usize {
        self.0.windows(2).filter(|pair| pair[0].of != pair[1].of).count()
    }

    /// A line of figures, and a line for every stay in a crate.
    fn text(&self, title: &str) -> String {
        let crates: BTreeSet<&str> = self.0.iter().map(|waypoint| waypoint.of.as_str()).collect();
        let (files, crates, changes) = (self.0.len(), crates.len(), self.changes());
        let mut text = format!("{title}: {files} files of {crates} crates, {changes} changes of crate\n");
        for stay in self.0.chunk_by(|one, next| one.of == next.of) {
            let folder = stay[0].place().0.trim_start_matches("jobs/");
            let files: Vec<&str> = stay.iter().map(|waypoint| waypoint.place().1).collect();
            for (number, line) in lines(&files).iter().enumerate() {
                let folder = if number == 0 { folder } else { "" };
                writeln!(text, "  {folder:<22} {line}").expect("a String takes everything");
            }
        }
        text
    }
}

/// Names in lines that are not too wide.
fn lines(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + name.len() < WIDTH => line.extend([" ", name]),
            _ => lines.push((*name).to_owned()),
        }
    }
    lines
}
