//! A step and what the real server answered → what is wrong with it, though the other server may answer the same.

use serde_json::Value;

use crate::case::{Case, CaseAction, CaseStep, Expects};
use crate::compare::Difference;
use crate::run::UNSAVED;

/// The steps that did not come to what they are for.
pub(crate) fn unsound(case: &Case, answers: &[Value]) -> Vec<Difference> {
    let steps = case.steps.iter().zip(answers).enumerate();
    let wrong = steps.filter_map(|(index, (step, answer))| Some((index, step, wrong(step, answer)?)));
    wrong.map(|(index, step, wrong)| failure(&case.title(), index, &step.line, wrong)).collect()
}

/// A failure of the real server, told as a difference from what the step is for.
pub(crate) fn failure(case: &str, index: usize, line: &str, wrong: String) -> Difference {
    Difference {
        case: case.to_owned(),
        step: index + 1,
        line: line.to_owned(),
        at: SOUND.to_owned(),
        real: wrong,
        embedded: "(the real server must do what the step says)".to_owned(),
    }
}

/// The place of such a failure; no known difference has it.
pub(crate) const SOUND: &str = "(sound)";

fn wrong(step: &CaseStep, answer: &Value) -> Option<String> {
    let status = answer["status"].as_u64();
    if status == Some(0) {
        return Some(format!("no answer: {}", answer["body"]));
    }
    if status == Some(500) && answer["body"].to_string().contains("panic") {
        return Some(format!("a panic: {}", answer["body"]));
    }
    if step.expects == Expects::Whatever {
        return None;
    }
    if let Some(fields) = answer.get(UNSAVED) {
        return Some(format!("there is nothing to save at {fields}"));
    }
    let done = match &step.action {
        CaseAction::Wait(_) => answer["holds"] == true,
        CaseAction::Watch(_) => answer["body"]["end"] != "timed out",
        CaseAction::Send(_) | CaseAction::Define(_) => status.is_some_and(|status| (200..300).contains(&status)),
    };
    match (step.expects, done) {
        (Expects::Success, false) if status.is_some() => Some(format!("{answer}")),
        (Expects::Success, false) => Some("waited in vain".to_owned()),
        (Expects::Refusal, true) => Some("is not refused".to_owned()),
        (Expects::Never, true) => Some("comes nevertheless".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::script::parse;

    fn told(line: &str, answer: Value) -> Vec<String> {
        let cases = parse("x", "x", &format!("=== one\n{line}\n")).expect("a proper script");
        unsound(&cases[0], &[answer]).into_iter().map(|found| found.real).collect()
    }

    #[test]
    fn a_create_that_is_refused_by_both_is_found() {
        let refused = json!({"status": 422, "body": {"reason": "Invalid"}});

        assert_eq!(told("CREATE $cm/a", refused.clone()).len(), 1);
        assert_eq!(told("CRD status", refused.clone()).len(), 1);
        assert!(told("CREATE $cm/a refused", refused.clone()).is_empty());
        assert!(told("PUT $cm/a", refused).is_empty());
        assert_eq!(told("CREATE $cm/a refused", json!({"status": 201})), ["is not refused"]);
    }

    #[test]
    fn an_effect_that_comes_on_neither_is_found() {
        assert_eq!(told("WAIT $cm/a gone", json!({"holds": false})), ["waited in vain"]);
        assert!(told("WAIT $cm/a gone never", json!({"holds": false})).is_empty());
        assert_eq!(told("WATCH $cm 1", json!({"status": 200, "body": {"events": [], "end": "timed out"}})).len(), 1);
    }

    #[test]
    fn a_value_that_is_not_there_cannot_be_saved() {
        let answer = json!({"status": 404, "unsaved": [".metadata.uid"]});

        assert_eq!(told("GET $cm/a", answer), [r#"there is nothing to save at [".metadata.uid"]"#]);
    }

    #[test]
    fn a_server_that_does_not_answer_is_found_in_any_step() {
        assert_eq!(told("GET $cm/a", json!({"status": 0, "body": "no answer in time"})).len(), 1);
    }
}
