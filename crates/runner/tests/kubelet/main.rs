//! The checklist of a kubelet's behaviour: each row has a pod that can be run, an expectation and its source; and all of them
//! are played on real processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod hostile;
mod plain_user;
mod played;
mod rows;
mod timings;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use portolan_runner::pod::containers::containers;
use portolan_runner::pod::programs::program_of;
use rows::rows;
use serde_json::json;

#[test]
fn there_are_at_least_a_hundred_rows_each_with_a_name_of_its_own_an_expectation_and_a_source() {
    let rows = rows();

    let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), rows.len());
    assert!(rows.len() >= 100, "{}", rows.len());
    for row in &rows {
        assert!(
            !row.source.is_empty() && row.expect.as_object().is_some_and(|expect| !expect.is_empty()),
            "{}",
            row.name
        );
    }
}

#[test]
fn every_row_has_a_pod_whose_images_have_programs_unless_it_is_about_that() {
    for row in rows() {
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"name": "row"}, "spec": row.spec, "status": row.given}))
                .unwrap_or_else(|error| panic!("{}: {error}", row.name));
        let all = containers(&pod);
        let without =
            all.iter().filter(|one| program_of(one.spec.image.as_deref().unwrap_or_default()).is_err()).count();
        assert_eq!(without > 0, row.name.contains("image without a program"), "{}", row.name);
    }
}

#[test]
fn everything_that_a_row_mounts_is_a_volume_of_its_pod_and_every_object_has_a_kind_and_a_name() {
    for row in rows() {
        let pod: Pod = serde_json::from_value(json!({"spec": row.spec})).unwrap();
        let spec = pod.spec.as_ref().unwrap();
        let volumes: BTreeSet<&str> = spec.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
        for mount in containers(&pod).iter().flat_map(|one| one.spec.volume_mounts.iter().flatten()) {
            assert!(volumes.contains(mount.name.as_str()), "{}: {}", row.name, mount.name);
        }
        for object in row.objects.iter().chain(&row.then) {
            assert!(object["kind"].is_string() && object["name"].is_string(), "{}: {object}", row.name);
        }
        assert!(row.deleted.is_none_or(|deleted| deleted.is_object()), "{}", row.name);
    }
}
