//! Bytes that Kubernetes' own Go types wrote, and the JSON that they wrote of the same objects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use portolan_protobuf::Envelope;
use serde_json::Value;

/// An object, as bytes and as JSON.
struct Sample {
    title: String,
    bytes: Vec<u8>,
    json: Value,
}

fn samples(text: &str) -> Vec<Sample> {
    let read = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let bytes = BASE64_STANDARD.decode(row["protobuf"].as_str().unwrap()).unwrap();
        Sample { title: format!("{} {}", row["apiVersion"], row["kind"]), bytes, json: row["json"].clone() }
    };
    text.lines().map(read).collect()
}

fn object(bytes: &[u8]) -> Result<Value, portolan_protobuf::ProtobufError> {
    Envelope::open(bytes)?.object()
}

#[test]
fn every_kind_reads_as_the_json_that_go_writes() {
    let samples = samples(include_str!("../data/samples.jsonl"));

    for sample in &samples {
        let read = object(&sample.bytes).unwrap_or_else(|error| panic!("{}: {error}", sample.title));
        assert_eq!(read, sample.json, "{}", sample.title);
    }
    assert!(samples.len() > 200);
}

#[test]
fn a_body_that_is_cut_off_is_refused() {
    for sample in samples(include_str!("../data/samples.jsonl")) {
        let envelope = Envelope::open(&sample.bytes).unwrap();
        let nothing = Envelope::open(b"k8s\0\x12\0").unwrap().or(&envelope.api_version, &envelope.kind);
        let nothing = nothing.object().unwrap();
        // The last four bytes name no encoding and no content type.
        for length in (0..sample.bytes.len() - 4).step_by(7) {
            let read = object(&sample.bytes[..length]);
            // Where the envelope ends before the message begins, there is none.
            assert!(read.is_err() || read.as_ref() == Ok(&nothing), "{} cut at {length}: {read:?}", sample.title);
        }
    }
}
