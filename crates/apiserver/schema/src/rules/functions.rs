//! What Kubernetes adds to CEL, a file for each library.

mod comprehensions;
mod formats;
mod lists;
mod network;
mod opaque;
mod quantities;
mod regexes;
mod semvers;
mod sets;
pub(super) mod texts;
mod urls;

use cel::{DeclarationError, Env, ExecutionError};

/// Declares all of them.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    comprehensions::declare(env)?;
    formats::declare(env)?;
    lists::declare(env)?;
    network::declare(env)?;
    quantities::declare(env)?;
    regexes::declare(env)?;
    semvers::declare(env)?;
    sets::declare(env)?;
    texts::declare(env)?;
    urls::declare(env)
}

/// An error whose text is all that the user sees.
fn failure(message: impl ToString) -> ExecutionError {
    ExecutionError::function_error("", message)
}
