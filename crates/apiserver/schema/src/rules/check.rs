//! Whether a rule compiles, before any object meets it: names, fields and types, in cel-go's words.

mod formatting;
mod infer;
mod signatures;
mod types;

use cel::Program;

use self::infer::Inference;
use self::types::Type;
use super::{SchemaRule, compile};
use crate::node::Cursor;

/// Why a rule does not compile.
pub(crate) fn rule(rule: &SchemaRule, schema: Cursor<'_>, resource: bool) -> Result<(), String> {
    let program = match &rule.program {
        Ok(Some(program)) => program,
        Ok(None) => return Ok(()),
        Err(why) => return Err(failed(why)),
    };
    match infer(&program.program, rule, schema, resource).map_err(|why| failed(&why))? {
        Type::Bool => Ok(()),
        _ => Err("cel expression must evaluate to a bool".to_owned()),
    }
}

/// Why a rule's `messageExpression` does not compile.
pub(crate) fn message(rule: &SchemaRule, schema: Cursor<'_>, resource: bool) -> Result<(), String> {
    let Some(source) = &rule.message_expression else {
        return Ok(());
    };
    let worded = |why: &str| format!("messageExpression {}", failed(why));
    let Some(program) = compile(source).map_err(|why| worded(&why))? else {
        return Ok(());
    };
    match infer(&program.program, rule, schema, resource).map_err(|why| worded(&why))? {
        Type::String => Ok(()),
        _ => Err("messageExpression must evaluate to a string".to_owned()),
    }
}

fn infer<'s>(program: &Program, rule: &SchemaRule, schema: Cursor<'s>, resource: bool) -> Result<Type<'s>, String> {
    let own = Type::of(schema, resource).unwrap_or(Type::Dyn);
    let old = if rule.optional_old_self { Type::optional(own.clone()) } else { own.clone() };
    let mut inference = Inference::new(program, vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)]);
    let found = inference.expression(program.expression());
    inference.finish(found)
}

fn failed(why: &str) -> String {
    format!("compilation failed: {}", why.replace("\n| ", "\n | "))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "tests read better with literals")]
mod tests;
