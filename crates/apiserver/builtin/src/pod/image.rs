//! A reference to an image → whether it means the newest one.

/// An image without tag or digest means `latest`; what is no reference to an image means nothing.
pub(super) fn has_latest_tag(image: &str) -> bool {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = last.split_once(':').map(|(_, tag)| tag);
    let name = tag.map_or(name, |tag| &name[..name.len() - tag.len() - 1]);
    let sound = is_name(name) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest);
    sound && tag.map_or(digest.is_none(), |tag| tag == "latest")
}

/// A path, with or without the registry that it is in.
fn is_name(name: &str) -> bool {
    const LONGEST: usize = 255;
    let is_registry = |part: &str| part.contains(['.', ':']) || part == "localhost" || part.to_lowercase() != part;
    let (path, registry) = match name.split_once('/') {
        Some((registry, path)) if is_registry(registry) => (path, Some(registry)),
        _ => (name, None),
    };
    let implied = if registry.is_none() && !path.contains('/') { "library/".len() } else { 0 };
    let is_identifier = name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    registry.is_none_or(is_host) && path.split('/').all(is_part) && path.len() + implied <= LONGEST && !is_identifier
}

/// Lower case letters and digits, parted by a dot, up to two underscores or any number of dashes.
fn is_part(part: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let edges = part.bytes().next().is_some_and(word) && part.bytes().last().is_some_and(word);
    let separators = part.split(|c: char| u8::try_from(c).is_ok_and(word));
    edges && separators.filter(|s| !s.is_empty()).all(|s| matches!(s, "." | "_" | "__") || s.bytes().all(|b| b == b'-'))
}

/// A registry's host and port.
fn is_host(registry: &str) -> bool {
    if let Some((address, port)) = registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let hexadecimal = address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
        return hexadecimal && (port.is_empty() || port.strip_prefix(':').is_some_and(is_number));
    }
    let (host, port) = registry.split_once(':').map_or((registry, None), |(host, port)| (host, Some(port)));
    let label = |label: &str| {
        let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        let inner = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        inner && edge(label.bytes().next()) && edge(label.bytes().last())
    };
    host.split('.').all(label) && port.is_none_or(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let inner = tag.bytes().all(|b| word(b) || matches!(b, b'.' | b'-'));
    tag.len() <= 128 && inner && tag.bytes().next().is_some_and(word)
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, value)| {
        !algorithm.is_empty() && value.len() >= 32 && value.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_without_a_tag_or_with_latest_mean_the_newest() {
        for image in ["a", "a:latest", "example.com:5000/a/b", "a/b__c--d.e", "[::1]:5000/a", "LOCAL/a"] {
            assert!(has_latest_tag(image), "{image}");
        }
        for image in ["a:1", "example.com/a:2", "a@sha256:0123456789abcdef0123456789abcdef"] {
            assert!(!has_latest_tag(image), "{image}");
        }
    }

    #[test]
    fn what_is_no_reference_to_an_image_means_nothing() {
        for image in ["", " a", "UPPER", "-a", "a..b", "a/", "a:", "a@b", "a___b", &"a".repeat(250)] {
            assert!(!has_latest_tag(image), "{image}");
        }
    }
}
