//! The name of an image → whether it is one.

use crate::finding::Finding;
use crate::kinds::server::ImageConfig;

/// What is wrong with an image, its version, and the names of Secrets that it is pulled with.
pub fn image(image: Option<&ImageConfig>, version: Option<&str>, field: &str, found: &mut Vec<Finding>) {
    if let Some(version) = version.filter(|version| !is_tag(version)) {
        let shown = portolan_core::text::shorten(version, 40);
        found.push(Finding::refused(format!("{field}.version"), format!("{shown:?} is no version; write one as 9.18")));
    }
    let Some(image) = image else { return };
    if let Some(name) = image.image.as_deref().filter(|name| !is_reference(name)) {
        let shown = portolan_core::text::shorten(name, 80);
        found.push(Finding::refused(
            format!("{field}.image.image"),
            format!("{shown:?} is no image; write one as internetsystemsconsortium/bind9:9.18"),
        ));
    }
    for (index, secret) in image.image_pull_secrets.iter().flatten().enumerate() {
        if !is_object_name(secret) {
            found.push(Finding::refused(
                format!("{field}.image.imagePullSecrets[{index}]"),
                "is no name of a Secret; write its name in lower case",
            ));
        }
    }
}

/// Whether a text is a tag: `[A-Za-z0-9_][A-Za-z0-9._-]{0,127}`, as distribution/reference has it.
fn is_tag(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    begins
        && text.len() <= 128
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Whether a text names an image: path, tag, digest, each in the letters that it may have.
fn is_reference(text: &str) -> bool {
    let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
    let (path, tag) = match name.rsplit_once(':') {
        // A colon before a slash belongs to the registry's port.
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    let part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':');
        !part.is_empty() && part.bytes().all(inner)
    };
    let has_capitals =
        path.split('/').next_back().is_some_and(|last| last.bytes().any(|byte| byte.is_ascii_uppercase()));
    let digested = |digest: &str| {
        digest.split_once(':').is_some_and(|(kind, hex)| {
            kind == "sha256" && hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    text.len() <= 512
        && path.split('/').all(part)
        && !has_capitals
        && tag.is_none_or(is_tag)
        && digest.is_none_or(digested)
}

/// Whether a text names an object.
pub(crate) fn is_object_name(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    !text.is_empty() && text.len() <= 253 && text.starts_with(edge) && text.ends_with(edge) && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_names_with_a_tag_or_a_digest() {
        let digest = format!("bind9@sha256:{}", "a".repeat(64));
        for image in ["internetsystemsconsortium/bind9:9.18", "localhost:5000/bind9", "ghcr.io/a/b:v1@sha256:", &digest]
        {
            assert_eq!(is_reference(image), !image.ends_with("sha256:"), "{image}");
        }
        for image in ["", "bind9 --privileged", "bind9:", "/bind9", "a//b", "Bind9", "bind9:a b", "bind9\n"] {
            assert!(!is_reference(image), "{image:?}");
        }
    }

    #[test]
    fn a_version_is_a_tag() {
        let mut found = Vec::new();
        image(None, Some("9.18"), "spec", &mut found);
        assert_eq!(found, []);

        image(None, Some("9.18; rm"), "spec", &mut found);
        assert_eq!(found[0].field, "spec.version");
    }
}
