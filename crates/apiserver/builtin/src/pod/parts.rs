//! Writes of `/ephemeralcontainers` and `/resize`: the one part of a pod that they change, and what it may become.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::quality::quality_class;
use super::setting::Whole;
use super::validate::validate_spec;
use crate::check::Errors;
use crate::value::{entries, list, list_at, text, text_at};

const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Everything but the containers for debugging stays as it was; adding one counts as a change of the spec.
pub fn prepare_ephemeral_containers(new: &mut Value, old: &Value) {
    let containers = new["spec"]["ephemeralContainers"].take();
    *new = keep_all_but_owners(new, old);
    match containers {
        Value::Null => drop(crate::value::remove(&mut new["spec"], "ephemeralContainers")),
        containers => new["spec"]["ephemeralContainers"] = containers,
    }
    count(new, old);
}

/// Containers for debugging come, but never change or go.
pub fn validate_ephemeral_containers(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    validate_spec(&new["spec"], Whole::Pod(text_at(new, "/metadata/name")), &path, &mut errors);
    let path = path.field("ephemeralContainers");
    for before in list_at(old, "/spec/ephemeralContainers") {
        let name = text(before, "name");
        let now = list_at(new, "/spec/ephemeralContainers").iter().find(|one| text(one, "name") == name);
        match now {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(now) if now != before => {
                let detail = format!("existing ephemeral containers {name:?} may not be changed\n");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(_) => {}
        }
    }
    errors
}

/// Only what containers ask of their node changes; containers that were added or renamed are left for validation to see.
pub fn prepare_resize(new: &mut Value, old: &Value) {
    let mut spec = old["spec"].clone();
    for field in ["containers", "initContainers"] {
        let (wanted, before) = (list(&new["spec"], field), list(&old["spec"], field));
        let same = wanted.len() == before.len() && wanted.iter().zip(before).all(|(a, b)| a["name"] == b["name"]);
        if !same {
            spec[field] = new["spec"][field].clone();
            continue;
        }
        let wanted: Vec<Value> = wanted.iter().zip(before).map(|(wanted, before)| resized(wanted, before)).collect();
        if !wanted.is_empty() {
            spec[field] = json!(wanted);
        }
    }
    *new = keep_all_but_owners(new, old);
    new["spec"] = spec;
    count(new, old);
}

fn resized(wanted: &Value, before: &Value) -> Value {
    let mut container = before.clone();
    for field in ["resources", "resizePolicy"] {
        crate::value::copy(&mut container, wanted, field);
    }
    container
}

/// CPU and memory may change, but neither appear, disappear, nor change the pod's class.
pub fn validate_resize(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    validate_spec(&new["spec"], Whole::Pod(text_at(new, "/metadata/name")), &path, &mut errors);
    if quality_class(new) != quality_class(old) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, &new["status"]["qosClass"], detail));
    }
    let before = errors.len();
    for field in ["containers", "initContainers"] {
        same_order(list(&new["spec"], field), list(&old["spec"], field), field, &path.field(field), &mut errors);
    }
    if errors.len() > before {
        return errors;
    }
    for field in ["initContainers", "containers"] {
        let pairs = list(&new["spec"], field).iter().zip(list(&old["spec"], field));
        for (index, (now, before)) in pairs.enumerate() {
            validate_container(now, before, &path.field(field).index(index), &path, &mut errors);
        }
    }
    errors
}

fn same_order(now: &[Value], before: &[Value], field: &str, path: &Path<'_>, errors: &mut Errors) {
    if now.len() != before.len() {
        errors.push(FieldError::forbidden(path, format!("{field} may not be added or removed on resize")));
        return;
    }
    for (index, _) in now.iter().zip(before).enumerate().filter(|(_, (now, before))| now["name"] != before["name"]) {
        let detail = format!("{field} may not be renamed or reordered on resize");
        errors.push(FieldError::forbidden(&path.index(index).field("name"), detail));
    }
}

fn validate_container(now: &Value, before: &Value, path: &Path<'_>, spec: &Path<'_>, errors: &mut Errors) {
    let at = path.field("resources");
    for part in ["requests", "limits"] {
        let kept = |name: &str| now["resources"][part].get(name).is_some();
        if entries(&before["resources"][part]).any(|(name, _)| !kept(name)) {
            errors.push(FieldError::forbidden(&at.field(part), format!("resource {part} cannot be removed")));
        }
    }
    let rest = |container: &Value| {
        let mut rest = container.clone();
        for part in ["limits", "requests"] {
            if let Some(resources) = rest["resources"][part].as_object_mut() {
                resources.retain(|name, _| !RESIZABLE.contains(&name.as_str()));
            }
        }
        rest["resizePolicy"].take();
        rest
    };
    if names_and_quantities(&rest(now)) != names_and_quantities(&rest(before)) {
        errors.push(FieldError::forbidden(spec, "only cpu and memory resources are mutable"));
    }
}

/// What is left of the resources when empty parts are not told from absent ones.
fn names_and_quantities(container: &Value) -> Vec<(String, String)> {
    let parts = ["limits", "requests"].into_iter();
    let all = parts.flat_map(|part| {
        entries(&container["resources"][part]).map(move |(name, q)| (format!("{part}.{name}"), q.to_string()))
    });
    all.chain([("name".to_owned(), text(container, "name").to_owned())]).collect()
}

/// The old object with the new owners of fields and the version that the write is for.
fn keep_all_but_owners(new: &Value, old: &Value) -> Value {
    let mut kept = old.clone();
    for field in ["managedFields", "resourceVersion"] {
        crate::value::copy(&mut kept["metadata"], &new["metadata"], field);
    }
    kept
}

fn count(new: &mut Value, old: &Value) {
    if new["spec"] != old["spec"] {
        let generation = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        new["metadata"]["generation"] = json!(generation + 1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{prepare_ephemeral_containers, prepare_resize, validate_ephemeral_containers, validate_resize};

    fn pod(cpu: &str) -> Value {
        json!({
            "metadata": {"name": "a", "generation": 1, "labels": {"x": "y"}},
            "spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}]},
        })
    }

    fn words(errors: &[portolan_schema::FieldError], word: &str) -> bool {
        errors.iter().any(|error| error.to_string().contains(word))
    }

    #[test]
    fn a_debugger_is_added_and_nothing_else_changes() {
        let mut new = pod("2");
        new["metadata"]["labels"] = json!({});
        new["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "b"}]);

        prepare_ephemeral_containers(&mut new, &pod("1"));

        assert_eq!(new["spec"]["containers"], pod("1")["spec"]["containers"]);
        assert_eq!((&new["metadata"]["labels"], &new["metadata"]["generation"]), (&json!({"x": "y"}), &json!(2)));
        assert!(words(&validate_ephemeral_containers(&pod("1"), &new), "may not be removed"));
    }

    #[test]
    fn only_cpu_and_memory_are_resized() {
        let mut new = pod("2");
        new["spec"]["containers"][0]["image"] = json!("b");

        prepare_resize(&mut new, &pod("1"));

        assert_eq!(new["spec"]["containers"][0]["image"], "a");
        assert_eq!(new["spec"]["containers"][0]["resources"]["requests"]["cpu"], "2");
        assert!(!words(&validate_resize(&new, &pod("1")), "only cpu"));
        let mut disk = pod("1");
        disk["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = json!("1Gi");
        assert!(words(&validate_resize(&disk, &pod("1")), "only cpu and memory"));
    }

    #[test]
    fn requests_do_not_disappear() {
        let mut new = pod("1");
        new["spec"]["containers"][0]["resources"] = json!({});

        assert!(words(&validate_resize(&new, &pod("1")), "QOS Class may not change"));
        assert!(words(&validate_resize(&new, &pod("1")), "cannot be removed"));
    }
}
