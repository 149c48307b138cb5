//! The text of a case file → cases.
//!
//! `=== name` opens a case. A step is a line `VERB path`; the lines indented below it are its body in YAML,
//! before them `> Name: value` sets a header (`> raw` sends the body as it is, `> bare` adds no kind and name)
//! and `< name .field.path` saves a value of the answer for later steps. `#` at the start of a line is a comment.
//!
//! On the real server a `CREATE` and a `CRD` must succeed unless the line ends with `refused`, and a `WAIT` or
//! `WATCH` must see what it is for unless the line ends with `never`.

use crate::case::{Case, CaseAction, CaseStep, CaseVerb, Enough, Expects, Text, Until};

/// A line of a case file that says nothing.
#[derive(Debug, thiserror::Error)]
#[error("{group}.case line {line}: {text}")]
pub(crate) struct ScriptError {
    group: String,
    line: usize,
    text: String,
}

/// The cases of one file; `run` makes their names differ from those of another run on the same server.
pub(crate) fn parse(group: &str, run: &str, text: &str) -> Result<Vec<Case>, ScriptError> {
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let bad = || ScriptError { group: group.to_owned(), line: index + 1, text: line.to_owned() };
        if line.starts_with('#') || (line.is_empty() && !in_body(&cases)) {
            continue;
        }
        if let Some(name) = line.strip_prefix("=== ") {
            let id = format!("{group}-{}-{run}", cases.len() + 1);
            let (group, name, definition) = (group.to_owned(), name.trim().to_owned(), id.clone());
            cases.push(Case { group, name, id, definition, steps: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("  ") {
            let step = cases.last_mut().and_then(|case| case.steps.last_mut()).ok_or_else(bad)?;
            continue_step(step, rest).ok_or_else(bad)?;
        } else if !line.trim().is_empty() {
            let step = step(line).ok_or_else(bad)?;
            cases.last_mut().ok_or_else(bad)?.steps.push(step);
        }
    }
    Ok(cases)
}

fn in_body(cases: &[Case]) -> bool {
    cases.last().and_then(|case| case.steps.last()).is_some_and(|step| matches!(step.body, Text::Raw(_)))
}

fn step(line: &str) -> Option<CaseStep> {
    let mut words = line.split_whitespace();
    let word = words.next()?;
    let mut rest: Vec<&str> = words.collect();
    let expects = expects(word, &mut rest);
    let (action, path) = match (word, rest.as_slice()) {
        ("CRD", flags) => (CaseAction::Define(flags.iter().map(|flag| (*flag).to_owned()).collect()), ""),
        ("WAIT", [path, condition]) => (CaseAction::Wait(until(condition)?), *path),
        ("WATCH", [path, condition]) => (CaseAction::Watch(enough(condition)?), *path),
        (verb, [path]) => (CaseAction::Send(CaseVerb::parse(verb)?), *path),
        _ => return None,
    };
    Some(CaseStep {
        line: line.to_owned(),
        action,
        path: path.to_owned(),
        headers: Vec::new(),
        body: Text::None,
        saves: Vec::new(),
        expects,
    })
}

/// What the last word says, or else what the first one is for.
fn expects(word: &str, rest: &mut Vec<&str>) -> Expects {
    let (success, exception, excepted) = match word {
        "CREATE" | "CRD" => (Expects::Success, "refused", Expects::Refusal),
        "WAIT" | "WATCH" => (Expects::Success, "never", Expects::Never),
        _ => return Expects::Answer,
    };
    if rest.last() == Some(&exception) {
        rest.pop();
        return excepted;
    }
    success
}

fn until(condition: &str) -> Option<Until> {
    Some(match condition.split_once('=') {
        _ if condition == "gone" => Until::Gone,
        _ if condition == "served" => Until::Served,
        Some((field, value)) => Until::Equals(field.to_owned(), value.to_owned()),
        None => match condition.strip_prefix('!') {
            Some(field) => Until::Absent(field.to_owned()),
            None => Until::Present(condition.strip_prefix('.').map(|_| condition.to_owned())?),
        },
    })
}

fn enough(condition: &str) -> Option<Enough> {
    Some(match condition.split_once('=') {
        Some(("name", name)) => Enough::Named(name.to_owned()),
        Some(_) => return None,
        None if condition == "closed" => Enough::Closed,
        None if condition == "bookmark" => Enough::Bookmark,
        None => Enough::Events(condition.parse().ok()?),
    })
}

/// A header, a saved value, or one more line of the body.
fn continue_step(step: &mut CaseStep, rest: &str) -> Option<()> {
    let started = match &step.body {
        Text::None => false,
        Text::Filled(text) | Text::Bare(text) | Text::Raw(text) => !text.is_empty(),
    };
    if !started && let Some(header) = rest.strip_prefix("> ") {
        return header_line(step, header);
    }
    if let Some(save) = rest.strip_prefix("< ") {
        let (name, field) = save.split_once(' ')?;
        step.saves.push((name.to_owned(), field.trim().to_owned()));
        return Some(());
    }
    if matches!(step.body, Text::None) {
        step.body = Text::Filled(String::new());
    }
    match &mut step.body {
        Text::None => {}
        Text::Filled(text) | Text::Bare(text) | Text::Raw(text) => {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(rest);
        }
    }
    Some(())
}

fn header_line(step: &mut CaseStep, header: &str) -> Option<()> {
    match header.trim() {
        "raw" => step.body = Text::Raw(String::new()),
        "bare" => step.body = Text::Bare(String::new()),
        "anonymous" => step.headers.push(("Authorization".to_owned(), String::new())),
        other => {
            let (name, value) = other.split_once(':')?;
            step.headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{CaseAction, CaseVerb, Expects, Text, parse, step};

    #[test]
    fn a_case_has_steps_with_headers_bodies_and_saved_values() {
        let text = "=== one\nCREATE $cm/a\n  > Accept: text/html\n  < rv .metadata.resourceVersion\n  data: {a: b}\n";

        let cases = parse("patch", "x", text).expect("a proper script");

        let step = &cases[0].steps[0];
        assert!(matches!(step.action, CaseAction::Send(CaseVerb::Create)));
        assert_eq!(step.headers, [("Accept".to_owned(), "text/html".to_owned())]);
        assert_eq!(step.saves, [("rv".to_owned(), ".metadata.resourceVersion".to_owned())]);
        assert!(matches!(&step.body, Text::Filled(body) if body == "data: {a: b}"));
    }

    #[test]
    fn a_line_that_is_no_step_is_named() {
        let error = parse("patch", "x", "=== one\nFETCH $cm/a\n").expect_err("FETCH is no verb");

        assert_eq!(error.to_string(), "patch.case line 2: FETCH $cm/a");
    }

    #[test]
    fn a_step_must_succeed_unless_its_line_says_otherwise() {
        let expected = |line: &str| step(line).expect("a proper step").expects;

        assert_eq!(expected("CREATE $cm/a"), Expects::Success);
        assert_eq!(expected("CREATE $cm/a refused"), Expects::Refusal);
        assert_eq!(expected("CRD status refused"), Expects::Refusal);
        assert_eq!(expected("WAIT $cm/a gone"), Expects::Success);
        assert_eq!(expected("WAIT $cm/a gone never"), Expects::Never);
        assert_eq!(expected("GET $cm/a"), Expects::Answer);
    }

    #[test]
    fn every_case_file_is_a_proper_script() {
        for (group, text) in crate::suite::FILES {
            let cases = parse(group, "x", text).expect("the script is in the tree");
            assert!(!cases.is_empty(), "{group} has no cases");
            let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), cases.len(), "two cases of {group} have one name");
        }
    }
}
