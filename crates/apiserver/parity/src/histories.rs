//! A seed → a random history of operations, replayed on both servers; where they differ, the shortest history
//! that still does.
//!
//! Operations are written as steps of a case file, so that a shrunk history can become a case as it is.
//! Propagation policies that need the garbage collector are left to the cases: when it runs is not ours to say.

use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::case::{Case, Expects};
use crate::script;

/// Operations in a history.
const LENGTH: usize = 20;

/// The custom resource that all histories share: one of each kind of list, map and default.
pub(crate) const DEFINITION: &str = r#"=== the kind of the histories
CRD status
  spec:
    type: object
    default: {}
    properties:
      name: {type: string, maxLength: 8}
      size: {type: integer, default: 1, minimum: 0, maximum: 9}
      port: {x-kubernetes-int-or-string: true}
      note: {type: string, nullable: true}
      fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: is fixed}]}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      plain: {type: array, maxItems: 3, items: {type: integer}}
      items:
        type: array
        maxItems: 5
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          properties: {name: {type: string, maxLength: 5}, value: {type: integer}, mode: {type: string, default: auto, enum: [auto, manual]}}
      map: {type: object, additionalProperties: {type: string}}
      whole: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: string}}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
    x-kubernetes-validations:
    - {rule: "!has(self.plain) || self.plain.size() <= self.size", message: more than size}
  status:
    type: object
    properties:
      phase: {type: string}
      conditions:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [type]
        items: {type: object, required: [type, status], properties: {type: {type: string}, status: {type: string}}}
"#;

/// A random history as script fragments, one per operation.
#[derive(Clone, Debug)]
pub(crate) struct RandomHistory {
    pub seed: u64,
    pub operations: Vec<String>,
}

impl RandomHistory {
    /// The history of a seed, always the same.
    pub(crate) fn of(seed: u64) -> Self {
        let mut writer = HistoryWriter { random: StdRng::seed_from_u64(seed), saved: vec!["first".to_owned()] };
        let start = "CREATE $cm/first\n  < first .metadata.resourceVersion\n  {}".to_owned();
        let operations = (1..LENGTH).map(|number| writer.operation(number));
        Self { seed, operations: std::iter::once(start).chain(operations).collect() }
    }

    /// The history without one operation.
    pub(crate) fn without(&self, index: usize) -> Self {
        let mut shorter = self.clone();
        shorter.operations.remove(index);
        shorter
    }

    /// The case to run, with names of its own.
    pub(crate) fn case(&self, definition: &str, attempt: &str) -> Case {
        let text = format!("=== {}\n{}\n", self.seed, self.operations.join("\n"));
        let mut cases = script::parse("history", attempt, &text).expect("the writer writes proper scripts");
        let mut case = cases.remove(0);
        case.id = format!("h{}-{attempt}", self.seed);
        definition.clone_into(&mut case.definition);
        for step in &mut case.steps {
            step.expects = Expects::Whatever;
        }
        case
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HistoryKind {
    ConfigMap,
    Deployment,
    Custom,
}

impl HistoryKind {
    fn short(self) -> &'static str {
        match self {
            Self::ConfigMap => "$cm",
            Self::Deployment => "$deploy",
            Self::Custom => "$cr",
        }
    }
}

struct HistoryWriter {
    random: StdRng,
    /// Variables that hold a resourceVersion.
    saved: Vec<String>,
}

impl HistoryWriter {
    fn operation(&mut self, number: usize) -> String {
        let target = self.pick(&[
            HistoryKind::ConfigMap,
            HistoryKind::ConfigMap,
            HistoryKind::Deployment,
            HistoryKind::Custom,
            HistoryKind::Custom,
        ]);
        match self.random.random_range(0..100) {
            0..14 => self.create(target, number),
            14..22 => self.replace(target),
            22..30 => self.merge(target),
            30..38 => self.json(target),
            38..62 => self.apply(target),
            62..70 => self.status(target),
            70..76 => self.finalizers(target),
            76..84 => self.delete(target),
            84..92 => self.list(target),
            _ => self.watch(target, number),
        }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *from.choose(&mut self.random).expect("there is always a choice")
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn name(&mut self) -> &'static str {
        self.pick(&["a", "a", "b"])
    }

    fn manager(&mut self) -> &'static str {
        self.pick(&["one", "two", "three"])
    }

    /// The version that some earlier operation left.
    fn version(&mut self) -> String {
        let index = self.random.random_range(0..self.saved.len());
        format!("\"${}\"", self.saved[index])
    }

    fn create(&mut self, target: HistoryKind, number: usize) -> String {
        let variable = format!("v{number}");
        let (name, body, manager) = (self.name(), self.object(target, true), self.manager());
        self.saved.push(variable.clone());
        format!(
            "CREATE {}/{name}?fieldManager={manager}\n  < {variable} .metadata.resourceVersion\n  {body}",
            target.short()
        )
    }

    fn replace(&mut self, target: HistoryKind) -> String {
        let (name, body, manager) = (self.name(), self.object(target, true), self.manager());
        format!("PUT {}/{name}?fieldManager={manager}\n  {body}", target.short())
    }

    fn merge(&mut self, target: HistoryKind) -> String {
        let (name, body, manager) = (self.name(), self.object(target, false), self.manager());
        format!("MERGE {}/{name}?fieldManager={manager}\n  {body}", target.short())
    }

    fn apply(&mut self, target: HistoryKind) -> String {
        let whole = self.chance(70);
        let (name, body, manager) = (self.name(), self.object(target, whole), self.manager());
        let force = if self.chance(40) { "&force=true" } else { "" };
        let dry = if self.chance(5) { "&dryRun=All" } else { "" };
        format!("APPLY {}/{name}?fieldManager={manager}{force}{dry}\n  {body}", target.short())
    }

    fn json(&mut self, target: HistoryKind) -> String {
        let (name, manager) = (self.name(), self.manager());
        let count = self.random.random_range(1..4);
        let operations: Vec<String> = (0..count).map(|_| self.json_operation(target)).collect();
        format!("JSON {}/{name}?fieldManager={manager}\n  [{}]", target.short(), operations.join(", "))
    }

    fn json_operation(&mut self, target: HistoryKind) -> String {
        let path = match target {
            HistoryKind::ConfigMap => self.pick(&["/data/k0", "/data/k1", "/data", "/metadata/labels/l0"]),
            HistoryKind::Deployment => self.pick(&[
                "/spec/replicas",
                "/spec/paused",
                "/metadata/labels/l0",
                "/spec/template/spec/containers/0/image",
            ]),
            HistoryKind::Custom => self.pick(&[
                "/spec/name",
                "/spec/size",
                "/spec/tags/0",
                "/spec/items/0/value",
                "/spec/plain/-",
                "/spec/map/k0",
            ]),
        };
        let value = match path {
            "/data" => "{k3: v3}".to_owned(),
            "/spec/replicas" | "/spec/size" | "/spec/items/0/value" | "/spec/plain/-" => self.number(),
            "/spec/paused" => "true".to_owned(),
            _ => self.text(),
        };
        match self.random.random_range(0..10) {
            0..5 => format!("{{op: add, path: {path}, value: {value}}}"),
            5..7 => format!("{{op: replace, path: {path}, value: {value}}}"),
            7..9 => format!("{{op: remove, path: {path}}}"),
            _ => format!("{{op: test, path: {path}, value: {value}}}"),
        }
    }

    fn status(&mut self, target: HistoryKind) -> String {
        let (name, manager) = (self.name(), self.manager());
        let condition = self.pick(&["Ready", "Synced"]);
        let value = self.pick(&["\"True\"", "\"False\""]);
        let status = match target {
            HistoryKind::Deployment => {
                format!("{{observedGeneration: 1, conditions: [{{type: {condition}, status: {value}}}]}}")
            }
            HistoryKind::ConfigMap | HistoryKind::Custom => {
                format!("{{phase: p, conditions: [{{type: {condition}, status: {value}}}]}}")
            }
        };
        let target = if target == HistoryKind::Deployment { "$deploy" } else { "$cr" };
        let body = format!("{{status: {status}}}");
        match self.random.random_range(0..3) {
            0 => format!("MERGE {target}/{name}/status?fieldManager={manager}\n  {body}"),
            1 => format!("APPLY {target}/{name}/status?fieldManager={manager}&force=true\n  {body}"),
            _ => format!("APPLY {target}/{name}/status?fieldManager={manager}\n  {body}"),
        }
    }

    fn finalizers(&mut self, target: HistoryKind) -> String {
        let (name, manager) = (self.name(), self.manager());
        // An empty list in the metadata of a custom object makes the real server write without a difference.
        let none = if target == HistoryKind::Custom { "null" } else { "[]" };
        let list = self.pick(&["[example.com/f]", "[example.com/f, example.com/g]", "null", "null", none]);
        format!("MERGE {}/{name}?fieldManager={manager}\n  metadata: {{finalizers: {list}}}", target.short())
    }

    fn delete(&mut self, target: HistoryKind) -> String {
        let (short, name) = (target.short(), self.name());
        match self.random.random_range(0..7) {
            0 => format!("DELETE {short}/{name}?dryRun=All"),
            1 => format!("DELETE {short}/{name}?propagationPolicy=Background&gracePeriodSeconds=0"),
            2 => {
                let version = self.version();
                format!(
                    "DELETE {short}/{name}\n  > bare\n  {{apiVersion: v1, kind: DeleteOptions, preconditions: {{resourceVersion: {version}}}}}"
                )
            }
            3 => format!("DELETE {short}?labelSelector=l0%3D{}", self.text()),
            _ => format!("DELETE {short}/{name}"),
        }
    }

    fn list(&mut self, target: HistoryKind) -> String {
        let short = target.short();
        let query = match self.random.random_range(0..7) {
            0 => "?limit=1".to_owned(),
            1 => format!("?labelSelector=l0%3D{}", self.text()),
            2 => "?labelSelector=!l0".to_owned(),
            3 => "?fieldSelector=metadata.name%3Da".to_owned(),
            4 => "/a".to_owned(),
            // NotOlderThan may show any later state: it is compared in a case of its own.
            5 => "?resourceVersion=&limit=2".to_owned(),
            _ => String::new(),
        };
        format!("GET {short}{query}")
    }

    /// All events since a saved version, up to an object that is made for this.
    fn watch(&mut self, target: HistoryKind, number: usize) -> String {
        let version = self.version().trim_matches('"').to_owned();
        let (short, selector) = (target.short(), if self.chance(40) { "&labelSelector=l0%3Dv0" } else { "" });
        let body = match target {
            HistoryKind::Deployment => format!("{{metadata: {{labels: {{l0: v0}}}}, {DEPLOYMENT}}}"),
            HistoryKind::ConfigMap | HistoryKind::Custom => "{metadata: {labels: {l0: v0}}}".to_owned(),
        };
        format!(
            "CREATE {short}/end{number}\n  {body}\nWATCH {short}?watch=true&resourceVersion={version}{selector} name=end{number}"
        )
    }

    fn text(&mut self) -> String {
        self.pick(&["v0", "v1", "v2"]).to_owned()
    }

    fn number(&mut self) -> String {
        self.random.random_range(0..5).to_string()
    }

    /// A body; a whole one could be created, the other is a patch.
    fn object(&mut self, target: HistoryKind, whole: bool) -> String {
        // The real server stores nulls in an applied custom object's metadata, and writes again to be rid of them.
        let mut parts = self.metadata(whole || target == HistoryKind::Custom);
        if target == HistoryKind::Custom {
            // So it does with empty maps.
            for part in &mut parts {
                *part =
                    part.replace("labels: {}", "labels: {l9: v9}").replace("annotations: {}", "annotations: {n9: v9}");
            }
        }
        match target {
            HistoryKind::ConfigMap => parts.push(format!("data: {}", self.strings("k", whole))),
            HistoryKind::Deployment => parts.push(self.deployment(whole)),
            HistoryKind::Custom => parts.push(format!("spec: {}", self.custom(whole))),
        }
        format!("{{{}}}", parts.join(", "))
    }

    fn metadata(&mut self, whole: bool) -> Vec<String> {
        let mut fields = Vec::new();
        if self.chance(40) {
            fields.push(format!("labels: {}", self.strings("l", whole)));
        }
        if self.chance(15) {
            fields.push(format!("annotations: {}", self.strings("n", whole)));
        }
        if self.chance(8) {
            fields.push("finalizers: [example.com/f]".to_owned());
        }
        if self.chance(8) {
            fields.push(format!("resourceVersion: {}", self.version()));
        }
        if fields.is_empty() { Vec::new() } else { vec![format!("metadata: {{{}}}", fields.join(", "))] }
    }

    fn strings(&mut self, prefix: &str, whole: bool) -> String {
        let mut fields = Vec::new();
        for index in 0..3 {
            if self.chance(50) {
                let null = !whole && self.chance(30);
                let value = if null { "null".to_owned() } else { self.text() };
                fields.push(format!("{prefix}{index}: {value}"));
            }
        }
        format!("{{{}}}", fields.join(", "))
    }

    fn deployment(&mut self, whole: bool) -> String {
        if whole && self.chance(40) {
            return DEPLOYMENT.to_owned();
        }
        let mut fields = Vec::new();
        if self.chance(50) {
            fields.push("replicas: 0".to_owned());
        }
        if self.chance(30) {
            fields.push(format!("minReadySeconds: {}", self.number()));
        }
        if whole {
            fields.push("paused: true, selector: {matchLabels: {app: a}}".to_owned());
        }
        if whole || self.chance(50) {
            let (containers, labels) = (self.containers(), if whole { "metadata: {labels: {app: a}}, " } else { "" });
            fields.push(format!("template: {{{labels}spec: {{containers: [{containers}]}}}}"));
        }
        format!("spec: {{{}}}", fields.join(", "))
    }

    fn containers(&mut self) -> String {
        let mut containers = Vec::new();
        for name in ["c", "d"] {
            if containers.is_empty() || self.chance(40) {
                let (image, variable, value) = (self.text(), self.pick(&["A", "B"]), self.text());
                let mut fields = format!("name: {name}, image: {image}");
                if self.chance(50) {
                    let _ = write!(fields, ", env: [{{name: {variable}, value: {value}}}]");
                }
                if self.chance(40) {
                    let _ = write!(fields, ", ports: [{{containerPort: 8{}}}]", self.number());
                }
                containers.push(format!("{{{fields}}}"));
            }
        }
        containers.join(", ")
    }

    fn custom(&mut self, whole: bool) -> String {
        let mut fields = Vec::new();
        let mut add = |writer: &mut Self, percent: u32, field: &str, value: String| {
            if writer.chance(percent) {
                let null = !whole && writer.chance(15);
                fields.push(format!("{field}: {}", if null { "null" } else { &value }));
            }
        };
        let (text, number) = (self.text(), self.number());
        add(self, 40, "name", text.clone());
        add(self, 30, "size", number.clone());
        let port = if self.chance(50) { number } else { text.clone() };
        add(self, 20, "port", port);
        let note = if self.chance(40) { "null".to_owned() } else { text.clone() };
        add(self, 20, "note", note);
        add(self, 15, "fixed", text.clone());
        let tags = self.several(&["t0", "t1", "t2"]);
        add(self, 35, "tags", tags);
        let plain = self.several(&["1", "2", "3"]);
        add(self, 20, "plain", plain);
        let items = self.items();
        add(self, 45, "items", items);
        let map = self.strings("k", true);
        add(self, 30, "map", map);
        add(self, 20, "whole", format!("{{a: {text}}}"));
        let free = format!("{{deep: {}, list: [{}]}}", self.strings("k", true), self.number());
        add(self, 20, "free", free);
        add(self, 5, "size", "99".to_owned());
        add(self, 4, "name", "5".to_owned());
        add(self, 5, "nosuch", "1".to_owned());
        let mut seen = Vec::new();
        fields.retain(|field| {
            let key = field.split(':').next().unwrap_or_default().to_owned();
            let new = !seen.contains(&key);
            seen.push(key);
            new
        });
        format!("{{{}}}", fields.join(", "))
    }

    fn items(&mut self) -> String {
        let mut items = Vec::new();
        for name in ["i0", "i1", "i2"] {
            if self.chance(50) {
                let mut fields = format!("name: {name}");
                if self.chance(60) {
                    let _ = write!(fields, ", value: {}", self.number());
                }
                if self.chance(25) {
                    fields.push_str(", mode: manual");
                }
                items.push(format!("{{{fields}}}"));
            }
        }
        if self.chance(30) {
            items.reverse();
        }
        format!("[{}]", items.join(", "))
    }

    fn several(&mut self, from: &[&str]) -> String {
        let chosen: Vec<&str> = from.iter().copied().filter(|_| self.chance(50)).collect();
        format!("[{}]", chosen.join(", "))
    }
}

/// A Deployment that is valid and that no controller would act on.
const DEPLOYMENT: &str = "spec: {replicas: 0, paused: true, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: v0}]}}}";

#[cfg(test)]
mod tests {
    use super::{LENGTH, RandomHistory};

    #[test]
    fn a_seed_always_gives_the_same_history() {
        assert_eq!(RandomHistory::of(7).operations, RandomHistory::of(7).operations);
        assert_ne!(RandomHistory::of(7).operations, RandomHistory::of(8).operations);
    }

    #[test]
    fn every_history_is_a_proper_script() {
        for seed in 0..500 {
            let history = RandomHistory::of(seed);
            assert_eq!(history.operations.len(), LENGTH);
            let case = history.case("d", "x");
            assert!(case.steps.len() >= LENGTH);
            assert_eq!(crate::run::bad_bodies(&case), Vec::<String>::new(), "seed {seed}");
        }
    }

    #[test]
    fn a_shorter_history_keeps_the_other_operations() {
        let history = RandomHistory::of(3);

        let shorter = history.without(1);

        assert_eq!(shorter.operations.len(), LENGTH - 1);
        assert_eq!(shorter.operations[1], history.operations[2]);
    }
}
