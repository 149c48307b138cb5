//! Where the walk of an object through the code comes by: one line in a file → a span of no length that names its module.

/// Says that a walk comes by here. The walks in `docs/architecture.md` are made of these: a file on the main path of an object
/// has one in the function that carries it on.
///
/// It is a span of the lowest level that is entered and left at once, so that an `async` function stays as large as it is. Builds
/// for release have none at all, and elsewhere nothing is made of it unless somebody asks for that level.
#[macro_export]
macro_rules! waypoint {
    () => {
        if cfg!(debug_assertions) {
            $crate::tracing::trace_span!("waypoint").in_scope(|| ());
        }
    };
}
