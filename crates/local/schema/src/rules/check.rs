//! Whether a rule compiles, before any object meets it.

use super::{Rule, compile};
use crate::node::Cursor;

/// Why a rule does not compile.
pub(crate) fn rule(rule: &Rule, _schema: Cursor<'_>, _resource: bool) -> Result<(), String> {
    rule.compile_error().map_or(Ok(()), |why| Err(failed(why)))
}

/// Why a rule's `messageExpression` does not compile.
pub(crate) fn message(rule: &Rule, _schema: Cursor<'_>, _resource: bool) -> Result<(), String> {
    let Some(source) = &rule.message_expression else {
        return Ok(());
    };
    compile(source)
        .map(|_| ())
        .map_err(|why| format!("messageExpression {}", failed(&why)))
}

fn failed(why: &str) -> String {
    format!("compilation failed: {}", why.replace("\n| ", "\n | "))
}
