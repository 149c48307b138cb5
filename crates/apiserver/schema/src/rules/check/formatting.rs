//! The clauses of a literal `'%d of %s'.format([…])` against the types of its arguments.

use super::types::Type;

/// What is wrong, and which argument is to blame; `None` for the call itself.
pub(super) struct Mistake {
    pub(super) argument: Option<usize>,
    pub(super) what: String,
}

/// Checks each clause in turn, up to the first that is wrong.
pub(super) fn check(format: &str, arguments: &[Type<'_>]) -> Option<Mistake> {
    let mut rest = format;
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Some(call("unexpected end of string".to_owned()));
        }
        let Some(argument) = arguments.get(next) else {
            return Some(call(format!("index {next} out of range")));
        };
        let (verb, after) = match clause(rest) {
            Ok(found) => found,
            Err(why) => return Some(call(format!("could not parse formatting clause: {why}"))),
        };
        if let Some(why) = refuses(verb, argument) {
            let what = format!("error during formatting: {why}, was given {}", type_name(argument));
            return Some(Mistake { argument: Some(next), what });
        }
        rest = after;
        next += 1;
    }
    let given = arguments.len();
    let many = || format!("too many arguments supplied to string.format (expected {next}, got {given})");
    (given > next).then(|| call(many()))
}

fn call(what: String) -> Mistake {
    Mistake { argument: None, what }
}

/// The verb of a clause without its `%`, and what follows.
fn clause(text: &str) -> Result<(char, &str), String> {
    let after_precision = match text.strip_prefix('.') {
        None => text,
        Some(digits) => {
            let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
            if rest.is_empty() {
                return Err("error while parsing precision: could not find end of precision specifier".to_owned());
            }
            if rest.len() == digits.len() {
                return Err("error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax".to_owned());
            }
            rest
        }
    };
    let mut characters = after_precision.chars();
    match characters.next() {
        Some(verb) if "sdfebxXo".contains(verb) => Ok((verb, characters.as_str())),
        Some(other) => Err(format!("unrecognized formatting clause \"{other}\"")),
        None => Err("unexpected end of string".to_owned()),
    }
}

/// Why a clause does not take a type.
fn refuses(verb: char, argument: &Type<'_>) -> Option<&'static str> {
    let integer = matches!(argument, Type::Int | Type::Uint);
    let (takes, why) = match verb {
        'd' => (integer, "decimal clause can only be used on integers"),
        'f' => (matches!(argument, Type::Double | Type::String), "fixed-point clause can only be used on doubles"),
        'e' => (matches!(argument, Type::Double | Type::String), "scientific clause can only be used on doubles"),
        'b' => (integer || matches!(argument, Type::Bool), "only integers and bools can be formatted as binary"),
        'o' => (integer, "octal clause can only be used on integers"),
        'x' | 'X' => (
            integer || matches!(argument, Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        _ => (
            !matches!(argument, Type::Object(..) | Type::Metadata | Type::Opaque(_) | Type::Optional(_)),
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
        ),
    };
    (!takes && !matches!(argument, Type::Dyn)).then_some(why)
}

/// The name of a type without its parameters.
fn type_name(argument: &Type<'_>) -> String {
    let shown = argument.to_string();
    match argument {
        Type::Null => "null_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        _ => shown.split('(').next().unwrap_or_default().to_owned(),
    }
}
