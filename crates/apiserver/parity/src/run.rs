//! A case and a server → the transcript of its answers, masked.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};

use crate::answer::{AnswerBody, ServerAnswer};
use crate::case::{Case, CaseAction, CaseStep, CaseVerb, Enough, Text, Until};
use crate::client::{Client, PeerRequest};
use crate::kinds::{CUSTOM, KINDS};
use crate::mask::Masker;

/// How long an asynchronous effect (garbage collection, a CRD being served) may take.
const EFFECT_WITHIN: Duration = Duration::from_secs(90);
/// How long the events of a watch may take.
const EVENTS_WITHIN: Duration = Duration::from_secs(60);

/// Where an answer tells the fields that a step wanted to save and that are not there.
pub(crate) const UNSAVED: &str = "unsaved";

/// A JSON patch operation that changes nothing, for `${tests:count}`.
const TEST: &str = r#"{"op":"test","path":"/data/x","value":"1"}"#;

/// What a server answered to the steps of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript {
    /// One masked answer per step.
    pub answers: Vec<Value>,
    /// How long each took.
    pub took: Vec<Duration>,
}

impl Transcript {
    pub(crate) fn add(&mut self, answer: Value, since: Instant) {
        self.answers.push(answer);
        self.took.push(since.elapsed());
    }
}

pub(crate) async fn run(client: &Client, case: &Case) -> Transcript {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.id}});
    make(client, "/api/v1/namespaces", &namespace).await;
    if case.steps.iter().any(|step| step.path.starts_with("$pod")) {
        make(client, &format!("/api/v1/namespaces/{}/serviceaccounts", case.id), &account()).await;
    }
    let mut runner = Runner { client, variables: variables(&case.id, &case.definition), masker: Masker::default() };
    let mut transcript = Transcript::default();
    for step in &case.steps {
        let since = Instant::now();
        transcript.add(runner.step(step).await, since);
    }
    transcript
}

/// Makes what a case stands on; one that cannot be made would have both servers refuse everything after it alike.
pub(crate) async fn make(client: &Client, path: &str, object: &Value) {
    let request = PeerRequest::json("POST", path, object);
    assert!(
        poll(client, &request, |answer| matches!(answer.status, 201 | 409)).await,
        "{path} cannot be made: {}",
        object["metadata"]["name"]
    );
}

/// The account that pods run as: there in every namespace of a cluster, here without its controller.
fn account() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
        "automountServiceAccountToken": false,
    })
}

fn variables(id: &str, definition: &str) -> BTreeMap<String, String> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut variables = BTreeMap::from([pair("id", id), pair("ns", id), pair("definition", definition)]);
    for kind in KINDS {
        variables.insert(kind.short.to_owned(), kind.collection(id));
    }
    for (short, version) in CUSTOM {
        let root = format!("/apis/{definition}.example.com/{version}");
        variables.insert(short.to_owned(), format!("{root}/namespaces/{id}/widgets"));
        variables.insert(format!("{short}all"), format!("{root}/widgets"));
    }
    variables
}

struct Runner<'a> {
    client: &'a Client,
    variables: BTreeMap<String, String>,
    masker: Masker,
}

impl Runner<'_> {
    async fn step(&mut self, step: &CaseStep) -> Value {
        let answer = match &step.action {
            CaseAction::Send(verb) => self.client.send(&self.request(step, *verb)).await,
            CaseAction::Define(flags) => self.define(step, flags).await,
            CaseAction::Wait(until) => return self.wait(step, until).await,
            CaseAction::Watch(enough) => self.watch(step, enough).await,
        };
        let mut unsaved = Vec::new();
        for (name, field) in &step.saves {
            let value = lookup(answer.json(), field).map(plain);
            if value.is_none() {
                unsaved.push(field.clone());
            }
            self.variables.insert(name.clone(), value.unwrap_or_default());
        }
        let mut masked = self.masker.mask(answer.to_value());
        if !unsaved.is_empty() {
            masked[UNSAVED] = json!(unsaved);
        }
        masked
    }

    fn request(&self, step: &CaseStep, verb: CaseVerb) -> PeerRequest {
        let (path, name) = self.address(step, verb);
        let body = self.body(step, verb, name.as_deref());
        let mut request = PeerRequest::get(&path);
        request.method = verb.method();
        request.headers = step.headers.iter().map(|(key, value)| (key.clone(), self.expand(value))).collect();
        request.content_type = (!body.is_empty()).then(|| verb.content_type().to_owned());
        request.body = body;
        request
    }

    /// The path to send to and, where it names one, the object's name.
    fn address(&self, step: &CaseStep, verb: CaseVerb) -> (String, Option<String>) {
        let (path, query) = step.path.split_once('?').map_or((step.path.as_str(), ""), |(path, query)| (path, query));
        let name = path.starts_with('$').then(|| path.split('/').nth(1)).flatten().map(|name| self.expand(name));
        let path = match (verb, path.rsplit_once('/')) {
            (CaseVerb::Create, Some((collection, _))) => collection,
            _ => path,
        };
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        (self.expand(&format!("{path}{query}")), name)
    }

    fn body(&self, step: &CaseStep, verb: CaseVerb, name: Option<&str>) -> Vec<u8> {
        let (text, filled) = match &step.body {
            Text::None => return Vec::new(),
            Text::Raw(text) => return self.expand(text).into_bytes(),
            Text::Bare(text) => (text, false),
            Text::Filled(text) => (text, verb.sends_object()),
        };
        let mut value = yaml(&self.expand(text));
        if filled {
            self.fill(&mut value, step, name);
        }
        value.to_string().into_bytes()
    }

    fn fill(&self, body: &mut Value, step: &CaseStep, name: Option<&str>) {
        let short = step.path.split(['/', '?']).next().unwrap_or_default().trim_start_matches('$');
        let (Some((api_version, kind)), Some(object)) = (self.type_of(short), body.as_object_mut()) else {
            return;
        };
        object.entry("apiVersion").or_insert(json!(api_version));
        object.entry("kind").or_insert(json!(kind));
        let metadata = object.entry("metadata").or_insert(json!({}));
        if let (Some(name), Some(metadata)) = (name, metadata.as_object_mut()) {
            metadata.entry("name").or_insert(json!(name));
        }
    }

    fn type_of(&self, short: &str) -> Option<(String, String)> {
        if let Some(kind) = KINDS.iter().find(|kind| kind.short == short) {
            return Some((kind.api_version.to_owned(), kind.name.to_owned()));
        }
        let custom = CUSTOM.iter().find(|(name, _)| *name == short.trim_end_matches("all"));
        custom.map(|(_, version)| {
            (format!("{}.example.com/{version}", self.variables["definition"]), "Widget".to_owned())
        })
    }

    fn expand(&self, text: &str) -> String {
        expand(&self.variables, text)
    }

    async fn define(&self, step: &CaseStep, flags: &[String]) -> ServerAnswer {
        let text = match &step.body {
            Text::Filled(text) | Text::Bare(text) | Text::Raw(text) => self.expand(text),
            Text::None => "{}".to_owned(),
        };
        let definition = definition(&self.variables["id"], flags, yaml(&text));
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let answer = self.client.send(&PeerRequest::json("POST", path, &definition)).await;
        if answer.status == 201 {
            for list in collections(&definition) {
                self.poll(&PeerRequest::get(&list), &Until::Served).await;
            }
            // Served comes before both conditions are written, or after: what follows may depend on them.
            let own = format!("{path}/{}", definition["metadata"]["name"].as_str().unwrap_or_default());
            self.poll(&PeerRequest::get(&own), &Until::Present(".status.conditions.1".to_owned())).await;
        }
        answer
    }

    async fn wait(&self, step: &CaseStep, until: &Until) -> Value {
        let holds = self.poll(&self.request(step, CaseVerb::Get), until).await;
        json!({ "holds": holds })
    }

    async fn poll(&self, request: &PeerRequest, until: &Until) -> bool {
        poll(self.client, request, |answer| self.holds(answer, until)).await
    }

    fn holds(&self, answer: &ServerAnswer, until: &Until) -> bool {
        let field = |field: &str| lookup(answer.json(), field);
        match until {
            Until::Gone => answer.status == 404,
            Until::Served => answer.status == 200,
            Until::Present(path) => answer.status == 200 && field(path).is_some(),
            Until::Absent(path) => {
                let found = field(path).filter(|value| value.as_array().is_none_or(|items| !items.is_empty()));
                answer.status == 200 && found.is_none()
            }
            Until::Equals(path, value) => field(path).is_some_and(|found| plain(found) == self.expand(value)),
        }
    }

    async fn watch(&self, step: &CaseStep, enough: &Enough) -> ServerAnswer {
        let request = self.request(step, CaseVerb::Get);
        let name = match enough {
            Enough::Named(name) => self.expand(name),
            Enough::Events(_) | Enough::Closed | Enough::Bookmark => String::new(),
        };
        let answer = self.client.watch(&request, EVENTS_WITHIN, |events| read_enough(events, enough, &name)).await;
        drop_stray_bookmarks(answer, enough)
    }
}

/// Replaces `$name` where such a variable is known, and `${repeat:text:count}`, `${tests:count}`, `${nul}`.
fn expand(variables: &BTreeMap<String, String>, text: &str) -> String {
    static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\$(?:\{repeat:([^:}]+):(\d+)\}|\{(nul)\}|\{tests:(\d+)\}|([a-z][a-z0-9]*))").expect("a constant")
    });
    VARIABLE.replace_all(text, |found: &regex::Captures<'_>| replacement(variables, found)).into_owned()
}

fn replacement(variables: &BTreeMap<String, String>, found: &regex::Captures<'_>) -> String {
    if let (Some(text), Some(count)) = (found.get(1), found.get(2)) {
        return text.as_str().repeat(count.as_str().parse().unwrap_or(0));
    }
    match (found.get(3), found.get(4), found.get(5)) {
        (Some(_), _, _) => "\0".to_owned(),
        (_, Some(count), _) => vec![TEST; count.as_str().parse().unwrap_or(0)].join(","),
        (_, _, Some(name)) => variables.get(name.as_str()).cloned().unwrap_or_else(|| found[0].to_owned()),
        (None, None, None) => found[0].to_owned(),
    }
}

fn read_enough(events: &[Value], enough: &Enough, name: &str) -> bool {
    let Some(last) = events.last() else { return false };
    let real = || events.iter().filter(|event| event["type"] != "BOOKMARK").count();
    match enough {
        Enough::Events(count) => real() >= *count,
        Enough::Closed => false,
        Enough::Bookmark => last["type"] == "BOOKMARK",
        Enough::Named(_) => last["object"]["metadata"]["name"] == name,
    }
}

/// A server may send bookmarks when it likes; only the one that was asked for is compared.
fn drop_stray_bookmarks(mut answer: ServerAnswer, enough: &Enough) -> ServerAnswer {
    if let (AnswerBody::Events { events, .. }, false) = (&mut answer.body, matches!(enough, Enough::Bookmark)) {
        events.retain(|event| event["type"] != "BOOKMARK");
    }
    answer
}

/// The CRD of the case's `Widget`: `body` is the properties of its schema, or with `full` merged into its spec.
fn definition(id: &str, flags: &[String], body: Value) -> Value {
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let (properties, overlay) = if has("full") { (json!({}), body) } else { (body, json!({})) };
    let mut schema = json!({"type": "object", "properties": properties});
    if has("preserve") {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    let mut version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    if has("status") {
        version["subresources"]["status"] = json!({});
    }
    let scope = if has("cluster") { "Cluster" } else { "Namespaced" };
    let mut spec = json!({
        "group": format!("{id}.example.com"), "scope": scope, "versions": [version],
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
    });
    merge(&mut spec, overlay);
    let name = format!("{}.{id}.example.com", spec["names"]["plural"].as_str().unwrap_or("widgets"));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// The paths of the collections that a CRD will serve.
pub(crate) fn collections(definition: &Value) -> Vec<String> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let versions = spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
    versions.map(|version| format!("/apis/{group}/{}/{plural}", text(&version["name"]))).collect()
}

/// Asks again until the answer is right; `false` when that takes too long.
pub(crate) async fn poll(client: &Client, request: &PeerRequest, right: impl Fn(&ServerAnswer) -> bool) -> bool {
    let deadline = Instant::now() + EFFECT_WITHIN;
    let mut pause = Duration::from_millis(20);
    while Instant::now() < deadline {
        if right(&client.send(request).await) {
            return true;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(Duration::from_millis(500));
    }
    false
}

/// Objects are merged key by key, everything else is replaced.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// YAML of a case file.
fn yaml(text: &str) -> Value {
    read_yaml(text).expect("tests read every body")
}

/// YAML as the servers take it from files: only `true` and `false` are no texts.
pub(crate) fn read_yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// The bodies of a case that are no YAML: both servers would refuse what is sent instead.
#[cfg(test)]
pub(crate) fn bad_bodies(case: &Case) -> Vec<String> {
    let variables = variables(&case.id, &case.definition);
    let bodies = case.steps.iter().filter_map(|step| match &step.body {
        Text::Filled(text) | Text::Bare(text) => Some((step, text)),
        Text::None | Text::Raw(_) => None,
    });
    let read = bodies.map(|(step, text)| (step, read_yaml(&expand(&variables, text))));
    read.filter_map(|(step, body)| body.err().map(|error| format!("{}: {}: {error}", case.title(), step.line)))
        .collect()
}

/// The value at a path such as `.metadata.ownerReferences.0.uid`; a dot inside a key is written `\.`.
fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.trim_start_matches('.').replace("\\.", "\u{0}");
    path.split('.').try_fold(value, |value, key| match value {
        Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
        other => other.get(key.replace('\u{0}', ".")),
    })
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{bad_bodies, definition, lookup, merge};
    use crate::script::parse;

    #[test]
    fn every_body_of_every_case_is_yaml() {
        let all =
            crate::suite::FILES.iter().flat_map(|(group, text)| parse(group, "x", text).expect("a proper script"));
        let bad: Vec<String> = all.flat_map(|case| bad_bodies(&case)).collect();

        assert_eq!(bad, Vec::<String>::new());
    }

    #[test]
    fn a_body_that_is_no_yaml_is_found() {
        let cases = parse("x", "x", "=== one\nPUT $cm/a\n  data: {a: b\n").expect("the lines are proper");

        assert!(bad_bodies(&cases[0])[0].starts_with("x: one: PUT $cm/a: "), "{:?}", bad_bodies(&cases[0]));
    }

    #[test]
    fn a_path_goes_through_lists_and_keys_with_dots() {
        let value = json!({"metadata": {"labels": {"a.b/c": "x"}, "finalizers": ["f"]}});

        assert_eq!(lookup(&value, r".metadata.labels.a\.b/c"), Some(&json!("x")));
        assert_eq!(lookup(&value, ".metadata.finalizers.0"), Some(&json!("f")));
        assert_eq!(lookup(&value, ".metadata.finalizers.1"), None);
    }

    #[test]
    fn a_full_definition_keeps_what_it_does_not_name() {
        let made = definition("x", &["full".to_owned()], json!({"names": {"shortNames": ["w"]}}));

        assert_eq!(made["spec"]["names"]["plural"], "widgets");
        assert_eq!(made["spec"]["names"]["shortNames"], json!(["w"]));
    }

    #[test]
    fn merging_replaces_lists() {
        let mut into = json!({"a": [1, 2]});

        merge(&mut into, json!({"a": [3]}));

        assert_eq!(into, json!({"a": [3]}));
    }
}
