//! `portolan crds`: the definitions of Portolan's own kinds.

use super::print;
use crate::definitions;
use crate::failure::Outcome;
use crate::output;

/// Prints them as one YAML stream, and nothing else.
pub(crate) fn run() -> Outcome {
    let mut text = String::new();
    for object in definitions::objects() {
        text.push_str("---\n");
        text.push_str(&output::yaml_text(&object)?);
    }
    print(&text);
    Ok(())
}
