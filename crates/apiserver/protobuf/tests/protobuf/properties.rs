//! Random objects of every kind come back from their bytes as they were; random bytes are read or refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use crate::encoder::{Random, Table};
use portolan_protobuf::{Envelope, ProtobufError};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn object(bytes: &[u8]) -> Result<Value, ProtobufError> {
    Envelope::open(bytes)?.object()
}

/// A random object, and its bytes.
fn sent(table: &Table, seed: u64) -> (Value, Vec<u8>) {
    let mut random = Random::new(seed);
    let (api_version, kind, message) = table.kind(&mut random);
    let mut object = table.sample(&message, &mut random, 0);
    let bytes = table.body(&api_version, &kind, &table.encode(&message, &object));
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    (object, bytes)
}

proptest! {
    #[test]
    fn an_object_comes_back_from_its_bytes(seed: u64) {
        let (whole, bytes) = sent(Table::read(), seed);

        prop_assert_eq!(object(&bytes).unwrap(), whole);
    }

    #[test]
    fn bytes_that_were_changed_are_read_or_refused(seed: u64, changes in vec((any::<usize>(), any::<u8>()), 1..4)) {
        let (whole, mut bytes) = sent(Table::read(), seed);
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
        }

        if let Ok(read) = object(&bytes) {
            prop_assert_eq!(read.is_object(), whole.is_object());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(seed: u64, bytes in vec(any::<u8>(), 0..300)) {
        let table = Table::read();
        let (api_version, kind, _) = table.kind(&mut Random::new(seed));

        if let Ok(read) = object(&table.body(&api_version, &kind, &bytes)) {
            prop_assert_eq!(&read["kind"], &json!(kind));
        }
        let _ = object(&bytes);
    }
}

#[test]
fn messages_within_messages_have_an_end() {
    let table = Table::read();
    // A schema whose `not` is a schema, and so on.
    let mut schema = Vec::new();
    for _ in 0..2_000 {
        schema = crate::encoder::bytes_field(28, &schema);
    }
    let version = crate::encoder::bytes_field(4, &crate::encoder::bytes_field(1, &schema));
    let spec = crate::encoder::bytes_field(2, &crate::encoder::bytes_field(7, &version));

    let read = object(&table.body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &spec));

    assert_eq!(read, Err(ProtobufError::Depth));
}

#[test]
fn two_bytes_for_an_object_do_not_fill_the_memory() {
    let table = Table::read();
    let claims = crate::encoder::bytes_field(4, b"").repeat(1_500_000);
    let spec = crate::encoder::bytes_field(2, &claims);

    let read = object(&table.body("apps/v1", "StatefulSet", &spec));

    assert_eq!(read, Err(ProtobufError::Size));
}

#[test]
fn what_stands_twice_is_merged() {
    let table = Table::read();
    let metadata =
        |field: u32, text: &str| crate::encoder::bytes_field(1, &crate::encoder::bytes_field(field, text.as_bytes()));
    let message = [metadata(1, "first"), metadata(1, "last"), metadata(2, "prefix-")].concat();

    let read = object(&table.body("v1", "ConfigMap", &message)).unwrap();

    assert_eq!(read["metadata"], json!({"name": "last", "generateName": "prefix-"}));
}

#[test]
fn numbers_may_be_packed() {
    let table = Table::read();
    let groups = crate::encoder::bytes_field(4, &[1, 0x96, 0x01]);
    let spec = crate::encoder::bytes_field(2, &crate::encoder::bytes_field(14, &groups));

    let read = object(&table.body("v1", "Pod", &spec)).unwrap();

    assert_eq!(read["spec"]["securityContext"]["supplementalGroups"], json!([1, 150]));
}
