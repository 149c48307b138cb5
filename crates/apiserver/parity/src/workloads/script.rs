//! The text of a `workloads-*.case` file → steps on objects of a namespace.
//!
//! `=== name` opens a case, then one step a line, with a YAML body indented below where it needs one:
//!
//! ```text
//! create                                   POST the body to the collection of its kind
//! patch deployments.apps/web               merge patch of an object, or of all that a selector matches
//! patch pods app=web
//! status pods/a                            merge patch of its /status, also by selector
//! delete pods app=web                      by name or selector; a body is the options
//! ready app=web                            pods: Running, with a true condition Ready
//! unready app=web  fail app=web  succeed app=web
//! await deployments.apps/web .status.conditions.Available.status=True      conditions by type; `null` is absent
//! await pods app=web .status.phase=Running        all that match, and at least one
//! await endpoints/web .subsets.0.addresses.count=2        by place in other lists, or how many there are
//! await pods app=web count=2
//! show deployments.apps replicasets.apps pods events      compared as soon as both are alike, or in vain
//! show namespaces/$ns                      one object
//! ```
//!
//! On the real server a write must succeed unless its line ends with `refused`, what is waited for must come, and
//! what is named by a selector must be there.
//!
//! `$ns` is the namespace of the case. Nodes `pier-1` and `pier-2` are there, in the zones `north` and `south`.

use serde_json::Value;

use crate::run::read_yaml;

/// The case files: group and text.
pub(super) const FILES: &[(&str, &str)] = &[
    ("workloads-deployment", include_str!("../../cases/workloads-deployment.case")),
    ("workloads-statefulset", include_str!("../../cases/workloads-statefulset.case")),
    ("workloads-job", include_str!("../../cases/workloads-job.case")),
    ("workloads-service", include_str!("../../cases/workloads-service.case")),
    ("workloads-mirroring", include_str!("../../cases/workloads-mirroring.case")),
    ("workloads-namespace", include_str!("../../cases/workloads-namespace.case")),
];

/// A case of a file.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub group: &'static str,
    pub name: String,
    pub steps: Vec<ScriptStep>,
}

/// One step of a case.
#[derive(Clone, Debug)]
pub(super) struct ScriptStep {
    pub line: String,
    pub word: Word,
    pub body: String,
    /// Whether the line says that the write is refused.
    pub refused: bool,
}

impl ScriptStep {
    /// The body, which is null where there is none; or why it is no YAML.
    pub(super) fn body(&self, namespace: &str) -> Result<Value, String> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        read_yaml(&self.body.replace("$ns", namespace))
    }
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Create,
    Patch(Which),
    Status(Which),
    Delete(Which),
    /// Pods by selector, and what becomes of them.
    Become(String, PodFate),
    Await(Which, Expectation),
    Show(Vec<String>),
}

/// Objects of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Named { collection: String, name: String },
    Selected { collection: String, selector: String },
}

/// What a pod comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodFate {
    Ready,
    Unready,
    Failed,
    Succeeded,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    Count(usize),
    Value { path: Vec<String>, value: String },
}

/// All cases of the tree; the error is the line that is no step.
pub(super) fn all() -> Result<Vec<Script>, String> {
    let scripts: Result<Vec<Vec<Script>>, String> = FILES.iter().map(|(group, text)| parse(group, text)).collect();
    Ok(scripts?.concat())
}

fn parse(group: &'static str, text: &str) -> Result<Vec<Script>, String> {
    let mut scripts: Vec<Script> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let bad = || format!("{group}: {line}");
        if let Some(name) = line.strip_prefix("=== ") {
            scripts.push(Script { group, name: name.to_owned(), steps: Vec::new() });
            continue;
        }
        let script = scripts.last_mut().ok_or_else(bad)?;
        if let Some(body) = line.strip_prefix("  ") {
            let step = script.steps.last_mut().ok_or_else(bad)?;
            step.body.push_str(body);
            step.body.push('\n');
        } else {
            let (told, refused) = line.strip_suffix(" refused").map_or((line, false), |told| (told, true));
            let word = word(told).ok_or_else(bad)?;
            script.steps.push(ScriptStep { line: line.to_owned(), word, body: String::new(), refused });
        }
    }
    Ok(scripts)
}

fn word(line: &str) -> Option<Word> {
    let words: Vec<&str> = line.split(' ').collect();
    let fate = |selector: &str, fate| Some(Word::Become(selector.to_owned(), fate));
    match words.as_slice() {
        ["create"] => Some(Word::Create),
        ["patch", rest @ ..] => Some(Word::Patch(which(rest)?.0)),
        ["status", rest @ ..] => Some(Word::Status(which(rest)?.0)),
        ["delete", rest @ ..] => Some(Word::Delete(which(rest)?.0)),
        ["ready", selector] => fate(selector, PodFate::Ready),
        ["unready", selector] => fate(selector, PodFate::Unready),
        ["fail", selector] => fate(selector, PodFate::Failed),
        ["succeed", selector] => fate(selector, PodFate::Succeeded),
        ["await", rest @ ..] => {
            let (which, rest) = which(rest)?;
            let [expectation] = rest else { return None };
            Some(Word::Await(which, self::expectation(expectation)?))
        }
        ["show", collections @ ..] => Some(Word::Show(collections.iter().map(|&c| c.to_owned()).collect())),
        _ => None,
    }
}

/// What the words name, and the words after it.
fn which<'a>(words: &'a [&'a str]) -> Option<(Which, &'a [&'a str])> {
    let (first, rest) = words.split_first()?;
    if let Some((collection, name)) = first.split_once('/') {
        return Some((Which::Named { collection: collection.to_owned(), name: name.to_owned() }, rest));
    }
    let (selector, rest) = rest.split_first()?;
    Some((Which::Selected { collection: (*first).to_owned(), selector: (*selector).to_owned() }, rest))
}

fn expectation(text: &str) -> Option<Expectation> {
    if let Some(count) = text.strip_prefix("count=") {
        return count.parse().ok().map(Expectation::Count);
    }
    let (path, value) = text.strip_prefix('.')?.split_once('=')?;
    // `\.` is a dot inside a name.
    let path = path.replace("\\.", "\u{0}");
    let path = path.split('.').map(|part| part.replace('\u{0}', ".")).collect();
    Some(Expectation::Value { path, value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_dots_in_its_names() {
        let word = word("await deployments.apps/web .metadata.annotations.a\\.b/c=2").unwrap();

        let path = ["metadata", "annotations", "a.b/c"].map(str::to_owned).to_vec();
        let which = Which::Named { collection: "deployments.apps".to_owned(), name: "web".to_owned() };
        assert_eq!(word, Word::Await(which, Expectation::Value { path, value: "2".to_owned() }));
    }

    #[test]
    fn every_file_in_the_tree_is_proper() {
        assert!(all().unwrap().iter().all(|script| !script.steps.is_empty()));
    }

    #[test]
    fn every_body_is_yaml_and_is_there_where_a_step_needs_one() {
        for script in all().unwrap() {
            for step in &script.steps {
                let body = step.body("x").unwrap_or_else(|error| panic!("{}: {}: {error}", script.name, step.line));
                let needed = matches!(step.word, Word::Create | Word::Patch(_) | Word::Status(_));
                assert_eq!(needed, body.is_object() && !matches!(step.word, Word::Delete(_)), "{}", step.line);
            }
        }
    }

    #[test]
    fn a_label_y_is_a_text() {
        let body = "{metadata: {labels: {x: y}}}".to_owned();
        let step = ScriptStep { line: "create".to_owned(), word: Word::Create, body, refused: false };

        assert_eq!(step.body("x").unwrap()["metadata"]["labels"]["x"], "y");
    }

    #[test]
    fn a_body_that_is_no_yaml_is_found() {
        let step =
            ScriptStep { line: "create".to_owned(), word: Word::Create, body: "{kind: Pod".to_owned(), refused: false };

        assert!(step.body("x").is_err());
    }
}
