//! How much is logged of an object's work, such as a fleet's: its own level, where it has one, else the process's.
//!
//! Such an object is a log scope. Its work happens in [`Levels::span`], or in a span that [`Levels::mark`] marked. The filter
//! finds that span around an event and obeys the scope's level, which may change at any time. Text and JSON lines name the scope
//! from the same span, in the words of the [`LogScope`] that the log is given, so a marked span is
//! made whatever the level is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use portolan_core::ObjectKey;
use portolan_core::job::LogScope;
use tracing::field::{Field, Visit, display};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Span, Subscriber};
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

use crate::dispatch::fingerprint::key_of;
use crate::reconcile::Object;
use crate::watch::cache::Cache;

/// The fields of a span that name its scope, before the log gives them the words of a job.
pub(crate) const SCOPE: LogScope = LogScope { name: "log_scope", namespace: "log_scope_namespace" };
/// What the targets of our own code begin with.
const OURS: &str = "portolan";
/// The levels, from few lines to many; a scope's choice is kept as its place here, counted from 1.
const LEVELS: [Level; 5] = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];

/// The levels that scopes chose; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    chosen: Arc<Mutex<BTreeMap<ObjectKey, ChosenLevel>>>,
}

/// A scope's choice; 0 for none.
type ChosenLevel = Arc<AtomicUsize>;

impl Levels {
    /// Those that the process's own log obeys.
    pub fn process() -> Self {
        static PROCESS: OnceLock<Levels> = OnceLock::new();
        PROCESS.get_or_init(Self::default).clone()
    }

    /// A scope's work is logged at this level from now on; without one, at the process's.
    pub fn set(&self, scope: &ObjectKey, level: Option<Level>) {
        let place = level.and_then(|level| LEVELS.iter().position(|one| *one == level));
        self.of(scope).store(place.map_or(0, |place| place + 1), Ordering::Relaxed);
    }

    /// From now on each object of a cache says how much is logged of its work.
    pub fn follow<K: Object>(&self, scopes: &Cache<K>, chosen: impl Fn(&K) -> Option<Level> + Send + Sync + 'static) {
        let levels = self.clone();
        scopes.on_change(move |before, after| {
            if let Some(scope) = after.or(before) {
                levels.set(&key_of(scope.meta()), after.and_then(&chosen));
            }
        });
    }

    /// The span of a scope's work.
    pub fn span(scope: &ObjectKey) -> Span {
        let namespace = scope.namespace.as_deref().map(display);
        // An error's level, so that it is there for every line that is logged at all.
        tracing::error_span!("log_scope", log_scope = %scope.name, log_scope_namespace = namespace)
    }

    /// Says that the work of the current span is a scope's. Has an effect on a controller's pass and on [`Levels::span`].
    pub fn mark(scope: &ObjectKey) {
        let span = Span::current();
        span.record(SCOPE.name, display(&scope.name));
        if let Some(namespace) = &scope.namespace {
            span.record(SCOPE.namespace, display(namespace));
        }
    }

    /// A filter that shows what a scope's level allows inside its spans, and what `base` allows elsewhere.
    pub fn filter<F>(&self, base: F) -> ByScope<F> {
        ByScope { levels: self.clone(), base }
    }

    fn of(&self, scope: &ObjectKey) -> ChosenLevel {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        match chosen.get(scope) {
            Some(level) => Arc::clone(level),
            None => Arc::clone(chosen.entry(scope.clone()).or_default()),
        }
    }
}

/// The level that a name stands for: `DEBUG`, `INFO`, `WARNING` (or `WARN`), `ERROR`, `TRACE`, in any case.
pub fn level(name: &str) -> Option<Level> {
    match name.trim().to_ascii_lowercase().as_str() {
        "error" => Some(Level::ERROR),
        "warning" | "warn" => Some(Level::WARN),
        "info" => Some(Level::INFO),
        "debug" => Some(Level::DEBUG),
        "trace" => Some(Level::TRACE),
        _ => None,
    }
}

/// See [`Levels::filter`].
#[derive(Debug)]
pub struct ByScope<F> {
    levels: Levels,
    base: F,
}

impl<F> ByScope<F> {
    /// The level that the scope of the innermost marked span chose.
    fn level<S>(&self, context: &Context<'_, S>) -> Option<Level>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let current = context.lookup_current()?;
        let chosen = current.scope().find_map(|span| span.extensions().get::<LevelWork>()?.chosen.clone())?;
        chosen.load(Ordering::Relaxed).checked_sub(1).map(|place| LEVELS[place])
    }

    fn notice<S>(&self, id: &Id, context: &Context<'_, S>, record: impl FnOnce(&mut LevelWork))
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let Some(span) = context.span(id) else { return };
        let mut work = span.extensions_mut().remove::<LevelWork>().unwrap_or_default();
        record(&mut work);
        work.chosen = work.scope().map(|scope| self.levels.of(&scope));
        span.extensions_mut().insert(work);
    }
}

impl<S, F> Filter<S> for ByScope<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    F: Filter<S>,
{
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        if is_scoped(metadata) {
            return true;
        }
        match self.level(context) {
            Some(level) if is_ours(metadata) => *metadata.level() <= level,
            Some(level) => *metadata.level() <= level && self.base.enabled(metadata, context),
            None => self.base.enabled(metadata, context),
        }
    }

    /// A line of ours may be wanted by a scope later on, and any line unwanted.
    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        let base = self.base.callsite_enabled(metadata);
        if base.is_never() && !is_ours(metadata) && !is_scoped(metadata) { base } else { Interest::sometimes() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.base.max_level_hint().map(|base| base.max(LevelFilter::DEBUG))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if is_scoped(attributes.metadata()) {
            self.notice(id, &context, |work| attributes.record(work));
        }
        self.base.on_new_span(attributes, id, context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if context.metadata(id).is_some_and(is_scoped) {
            self.notice(id, &context, |work| values.record(work));
        }
        self.base.on_record(id, values, context);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.base.on_enter(id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.base.on_exit(id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        self.base.on_close(id, context);
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(OURS)
}

/// A span that may be marked.
fn is_scoped(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.fields().field(SCOPE.name).is_some()
}

/// Whose work a span is.
#[derive(Default)]
struct LevelWork {
    name: Option<String>,
    namespace: Option<String>,
    chosen: Option<ChosenLevel>,
}

impl LevelWork {
    fn scope(&self) -> Option<ObjectKey> {
        Some(ObjectKey { namespace: self.namespace.clone(), name: self.name.clone()? })
    }
}

impl Visit for LevelWork {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            name if name == SCOPE.name => self.name = Some(format!("{value:?}")),
            name if name == SCOPE.namespace => self.namespace = Some(format!("{value:?}")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::EnvFilter;

    use super::*;
    use crate::logs::testing::Captured;

    fn fleet(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    /// What is logged of `act` where the process's level is INFO.
    fn logged(levels: &Levels, act: impl FnOnce()) -> Vec<String> {
        Captured::text(levels.filter(EnvFilter::new("info"))).lines(act)
    }

    fn work(name: &str) {
        Levels::span(&fleet(name)).in_scope(|| {
            tracing::debug!("details of {name}");
            tracing::info!("work of {name}");
            tracing::error!("trouble of {name}");
        });
    }

    #[test]
    fn a_fleets_level_counts_for_its_own_work_alone() {
        let levels = Levels::default();
        levels.set(&fleet("loud"), Some(Level::DEBUG));
        levels.set(&fleet("quiet"), Some(Level::ERROR));

        let lines = logged(&levels, || {
            tracing::debug!("details of nobody");
            ["loud", "quiet", "usual"].into_iter().for_each(work);
        });

        let shown = |text: &str| lines.iter().any(|line| line.contains(text));
        assert!(shown("details of loud") && shown("work of loud"), "{lines:?}");
        assert!(shown("trouble of quiet") && !shown("work of quiet"), "{lines:?}");
        assert!(shown("work of usual") && !shown("details of usual") && !shown("details of nobody"), "{lines:?}");
    }

    #[test]
    fn fleets_of_one_name_in_two_namespaces_have_levels_of_their_own() {
        let levels = Levels::default();
        levels.set(&ObjectKey::namespaced("other", "prod"), Some(Level::DEBUG));

        let lines = logged(&levels, || work("prod"));

        assert_eq!(lines.len(), 2, "{lines:?}");
    }

    #[test]
    fn a_level_that_changes_counts_from_the_next_line_on() {
        let levels = Levels::default();

        let lines = logged(&levels, || {
            let span = Levels::span(&fleet("prod"));
            let _inside = span.enter();
            for (round, level) in [None, Some(Level::DEBUG), None].into_iter().enumerate() {
                levels.set(&fleet("prod"), level);
                tracing::debug!("round {round}");
            }
        });

        assert!(lines.len() == 1 && lines[0].contains("round 1"), "{lines:?}");
    }

    #[test]
    fn a_pass_becomes_a_fleets_when_it_is_marked() {
        let levels = Levels::default();
        levels.set(&fleet("prod"), Some(Level::DEBUG));

        let lines = logged(&levels, || {
            let span = tracing::debug_span!(
                "reconcile",
                log_scope = tracing::field::Empty,
                log_scope_namespace = tracing::field::Empty
            );
            span.in_scope(|| {
                tracing::debug!("before");
                Levels::mark(&fleet("prod"));
                tracing::debug!("after");
            });
        });

        assert!(lines.len() == 1 && lines[0].contains("after fleet=prod"), "{lines:?}");
    }

    #[test]
    fn every_line_in_the_span_names_the_fleet_also_below_other_spans() {
        let lines = logged(&Levels::default(), || {
            Levels::span(&fleet("staging"))
                .in_scope(|| tracing::info_span!("step").in_scope(|| tracing::warn!("something")));
        });

        assert!(lines[0].contains(" fleet=staging"), "{lines:?}");
    }

    #[test]
    fn others_code_is_not_made_louder_by_a_fleet() {
        let levels = Levels::default();
        levels.set(&fleet("prod"), Some(Level::DEBUG));

        let lines = logged(&levels, || {
            Levels::span(&fleet("prod")).in_scope(|| tracing::debug!(target: "hyper::proto", "noise"));
        });

        assert!(lines.is_empty(), "{lines:?}");
    }

    #[test]
    fn levels_have_the_names_of_manifests() {
        let names = ["DEBUG", "info", "WARNING", "warn", " Error "].map(level);

        assert_eq!(names, [Level::DEBUG, Level::INFO, Level::WARN, Level::WARN, Level::ERROR].map(Some));
        assert_eq!(level("verbose"), None);
    }
}
