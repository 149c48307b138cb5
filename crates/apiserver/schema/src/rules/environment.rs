//! The functions and macros that rules may use: CEL's own, and those that Kubernetes adds.

use std::sync::{Arc, LazyLock};

use cel::common::types::CelString;
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, extensions};

use super::functions;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(build().expect("no function is declared twice")));

/// The environment of every rule.
pub(crate) fn shared() -> Arc<Env> {
    Arc::clone(&ENVIRONMENT)
}

fn build() -> Result<Env, DeclarationError> {
    let mut env = Env::stdlib();
    env.set_error_on_duplicate_map_keys(false);
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    functions::declare(&mut env)?;
    Ok(env)
}

/// `string(…)` of a value; `None` where there is no such conversion.
pub(super) fn text_of(value: &dyn Val) -> Option<String> {
    let arguments = vec![CowVal::Borrowed(value)];
    let overload = ENVIRONMENT.find_overload("string", &arguments)?;
    let text = overload(arguments).ok()?;
    text.downcast_ref::<CelString<'_>>().map(|text| text.inner().to_owned())
}

/// Calls a conversion of the standard library on a text; `None` where it fails.
pub(super) fn call<'v>(function: &str, text: String) -> Option<Box<dyn Val + 'v>> {
    let arguments: Vec<CowVal<'_, 'v>> = vec![CowVal::owned(CelString::from(text))];
    let overload = ENVIRONMENT.find_overload(function, &arguments)?;
    overload(arguments).ok().map(CowVal::into_owned)
}
