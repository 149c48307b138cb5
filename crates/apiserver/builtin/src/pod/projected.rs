//! Files that a volume is made of → what is wrong with them.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::environment::{ResourcePlace, field_reference, resource_reference};
use crate::check::{Errors, label_selector, required};
use crate::meta::invalid;
use crate::names;
use crate::paths::{file_mode, not_reserved};
use crate::value::{list, number, text};

/// Keys of a `ConfigMap` or Secret and the files they become.
pub(super) fn validate_items(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, item) in list(source, "items").iter().enumerate() {
        let path = path.field("items");
        let path = path.index(index);
        required(errors, item, "key", &path);
        required(errors, item, "path", &path);
        not_reserved(errors, text(item, "path"), &path.field("path"));
        file_mode(errors, item, "mode", &path);
    }
}

/// Fields of a pod that a file can show.
const FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// Files that show the pod's own fields. Errors name the list, not the file: so does the real server.
pub(super) fn validate_downward(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    file_mode(errors, source, "defaultMode", path);
    for file in list(source, "items") {
        validate_file(file, path, errors);
    }
}

fn validate_file(file: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(errors, file, "path", path);
    not_reserved(errors, text(file, "path"), &path.field("path"));
    let (field, resource) = (&file["fieldRef"], &file["resourceFieldRef"]);
    match (field.is_null(), resource.is_null()) {
        (false, absent) => {
            field_reference(errors, field, FIELDS, &path.field("fieldRef"));
            if !absent {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, &json!("resource"), detail));
            }
        }
        (true, false) => resource_reference(errors, resource, ResourcePlace::Volume, &path.field("resourceFieldRef")),
        (true, true) => {
            errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
    }
    file_mode(errors, file, "mode", path);
}

/// Sources of a projected volume, each of one kind, and no file twice.
pub(super) fn validate_projected(volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    file_mode(errors, volume, "defaultMode", path);
    let mut files = ProjectedFiles { seen: Vec::new(), path };
    for (index, source) in list(volume, "sources").iter().enumerate() {
        let at = path.field("sources");
        let at = at.index(index);
        let kinds =
            ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
        let given: Vec<&str> = kinds.into_iter().filter(|kind| !source[*kind].is_null()).collect();
        for kind in &given {
            validate_source(kind, &source[*kind], &at.field(kind), &mut files, errors);
        }
        if given.len() > 1 {
            errors.push(FieldError::forbidden(&at, "may not specify more than 1 volume type per source"));
        }
    }
}

/// The files that earlier sources make.
struct ProjectedFiles<'a> {
    seen: Vec<&'a str>,
    path: &'a Path<'a>,
}

impl<'a> ProjectedFiles<'a> {
    fn add(&mut self, file: &'a str, shown: &str, errors: &mut Errors) {
        if self.seen.contains(&file) {
            errors.push(FieldError::invalid(self.path, &json!(shown), "conflicting duplicate paths"));
        } else {
            self.seen.push(file);
        }
    }
}

fn validate_source<'a>(
    kind: &str,
    source: &'a Value,
    path: &Path<'_>,
    files: &mut ProjectedFiles<'a>,
    errors: &mut Errors,
) {
    match kind {
        "secret" | "configMap" => {
            required(errors, source, "name", path);
            validate_items(source, path, errors);
            let items = list(source, "items").iter().map(|item| text(item, "path"));
            items.filter(|file| !file.is_empty()).for_each(|file| files.add(file, text(source, "name"), errors));
        }
        "downwardAPI" => {
            for file in list(source, "items") {
                validate_file(file, path, errors);
                let target = text(file, "path");
                if !target.is_empty() {
                    files.add(target, target, errors);
                }
            }
        }
        "serviceAccountToken" => validate_token(source, path, files.path, errors),
        "clusterTrustBundle" => {
            validate_bundle(source, path, errors);
            let target = text(source, "path");
            files.add(target, target, errors);
        }
        _ => validate_certificate(source, path, files, errors),
    }
}

fn validate_token(token: &Value, path: &Path<'_>, volume: &Path<'_>, errors: &mut Errors) {
    let seconds = number(token, "expirationSeconds").unwrap_or(0);
    let at = path.field("expirationSeconds");
    if seconds < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&at, &json!(seconds), detail));
    }
    if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&at, &json!(seconds), detail));
    }
    // The real server names the volume here, not the source.
    if required(errors, token, "path", volume) {
        not_reserved(errors, text(token, "path"), &volume.field("path"));
    }
}

fn validate_bundle(bundle: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (bundle["name"].as_str(), bundle["signerName"].as_str()) {
        (Some(_), Some(_)) => {
            errors.push(FieldError::invalid(path, bundle, "only one of name and signerName may be used"));
        }
        (Some(name), None) => {
            if name.is_empty() {
                errors.push(FieldError::required(&path.field("name"), "must be a valid object name"));
            }
            if !bundle["labelSelector"].is_null() {
                let detail = "labelSelector must be unset if name is specified";
                errors.push(FieldError::invalid(&path.field("labelSelector"), &bundle["labelSelector"], detail));
            }
        }
        (None, Some(signer)) => {
            if signer.is_empty() {
                errors.push(FieldError::required(&path.field("signerName"), "must be a valid signer name"));
            }
            label_selector(errors, &bundle["labelSelector"], &path.field("labelSelector"));
        }
        (None, None) => {
            errors.push(FieldError::required(path, "either name or signerName must be specified"));
        }
    }
    required(errors, bundle, "path", path);
    not_reserved(errors, text(bundle, "path"), &path.field("path"));
}

const KEYS: &[&str] = &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

fn validate_certificate<'a>(
    certificate: &'a Value,
    path: &Path<'_>,
    files: &mut ProjectedFiles<'a>,
    errors: &mut Errors,
) {
    let signer = text(certificate, "signerName");
    if let Some((domain, _)) = signer.split_once('/') {
        invalid(errors, &path.field("signerName"), domain, names::dns_subdomain(domain));
    }
    let key = text(certificate, "keyType");
    if !KEYS.contains(&key) {
        errors.push(FieldError::not_supported(&path.field("keyType"), &json!(key), KEYS));
    }
    if number(certificate, "maxExpirationSeconds").is_some_and(|seconds| seconds < 3600) {
        let detail = "if provided, maxExpirationSeconds must be >= 3600";
        let at = path.field("maxExpirationSeconds");
        errors.push(FieldError::invalid(&at, &certificate["maxExpirationSeconds"], detail));
    }
    let mut any = false;
    for field in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let target = text(certificate, field);
        if !target.is_empty() {
            any = true;
            not_reserved(errors, target, &path.field(field));
            files.add(target, target, errors);
        }
    }
    if !any {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(FieldError::required(path, detail));
    }
}
