use portolan_core::rights::RoleRule;

use super::*;
use crate::testing::JOBS;

#[test]
fn the_defaults_of_the_chart_are_the_defaults() {
    let text = values(JOBS);

    assert_eq!(Values::parse(JOBS, &[&text], &[]).unwrap(), Values::usual(JOBS), "{text}");
    let bare: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    assert_eq!(crate::merge::document(&bare.join("\n")).unwrap(), serde_json::to_value(Values::usual(JOBS)).unwrap());
}

#[test]
fn every_value_says_what_it_is_for() {
    fn look(schema: &Value, path: &str) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            assert!(field["description"].as_str().is_some_and(|text| !text.is_empty()), "{path}");
            look(field, &path);
        }
    }
    look(&schema(JOBS), "");
    let table = table(JOBS);
    let row = |name: &str| table.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_default();
    assert!(
        row("operator.mode").contains("| `\"single\"` | One process")
            && row("operator.mode").contains("One of single, roles.")
    );
    assert!(row("replicaCount").ends_with("From 0 to 100. |"), "{}", row("replicaCount"));
}

#[test]
fn rules_read_back_as_they_are_meant() {
    let files = files("1.0.0", JOBS);
    let (_, text) = files.iter().find(|(name, _)| name == "files/rbac/kube-worker-namespace.yaml").unwrap();

    let read: Value = serde_saphyr::from_str(text).unwrap();
    let role = JOBS.iter().find_map(|job| job.role("kube_worker")).unwrap();
    let rules = (role.rules)().into_iter().filter(|rule| rule.reach == Reach::OperatorNamespace);
    assert_eq!(read, json!(rules.map(RoleRule::written).collect::<Vec<_>>()));
}
