use portolan_beacon::JOB as BEACON;
use portolan_install::chart;

use super::*;

/// What is known of all jobs and of one more.
fn with_beacon() -> Vec<&'static JobSheet> {
    all().into_iter().chain([&BEACON.sheet]).collect()
}

fn generated(name: &str) -> String {
    let files = reference(&with_beacon());
    files.into_iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("{name} is not generated")).1
}

#[test]
fn a_third_job_has_a_page_and_its_metrics_are_documented_shown_and_watched() {
    assert!(generated("docs/reference/beacon.md").contains("## Beacon\n\nA light on a map.\n"));
    let metrics = generated("docs/reference/metrics.md");
    assert!(
        metrics.contains("\n## Lights\n\nOf the job `beacon`.\n")
            && metrics.contains("| `portolan_beacon_lit` | gauge |")
    );
    assert!(metrics.contains("| PortolanBeaconDark | 5m |"));
    assert!(generated("charts/portolan/dashboards/portolan.json").contains("Lamps that are lit"));
    assert!(generated("charts/portolan/alerts/portolan.json").contains("PortolanBeaconDark"));
}

#[test]
fn a_third_job_is_in_the_chart_with_its_definition_its_rights_and_its_name() {
    let files = chart::files("1.0.0", &with_beacon());
    let file =
        |name: &str| files.iter().find(|(file, _)| file == name).map(|(_, text)| text.as_str()).unwrap_or_default();

    assert!(file("files/definitions/beacon/beacons.yaml").contains("beacons.beacon.example.com"));
    assert!(
        file("files/rbac/beacon-cluster.yaml")
            .starts_with("# the lamps on the map\n- apiGroups: [\"beacon.example.com\"]")
    );
    assert!(file("files/rbac/beacon-namespace.yaml").contains("resourceNames: [\"beacon-keeper\"]"));
    assert!(file("values.yaml").contains("lights on a map (`beacon`)."));
    assert!(file("values.schema.json").contains("\"beacon\""));
}

#[test]
fn a_third_jobs_rights_are_on_the_security_page() {
    let there = "<!-- rights: written by `make reference` -->\n<!-- /rights -->";

    assert!(rights::page(there, &with_beacon()).unwrap().contains("### beacon\n"));
    assert!(
        !rights::page(there, &all()).unwrap().contains("### cloudflare\n"),
        "its rules do not say what they are for"
    );
}
