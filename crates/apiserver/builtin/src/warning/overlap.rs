//! Volumes made of files → the files that lie where another one is.

use serde_json::Value;

use crate::value::{list, text};

/// A file and, in projected volumes, where it is from.
#[derive(Clone, PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn shown(&self) -> String {
        if self.source.is_empty() { format!("{:?}", self.path) } else { format!("{:?} ({})", self.path, self.source) }
    }
}

/// Warns of every file of a volume that covers, or lies below, an earlier one.
pub(super) fn overlapping_paths(volumes: &[Value], said: &mut Vec<String>) {
    for volume in volumes {
        let name = text(volume, "name");
        for (field, of) in [("configMap", "name"), ("secret", "secretName"), ("downwardAPI", "")] {
            let source = &volume[field];
            let what = match field {
                "configMap" => format!("ConfigMap {:?}", text(source, of)),
                "secret" => format!("Secret {:?}", text(source, of)),
                _ => "DownwardAPI".to_owned(),
            };
            collide(name, &what, items(source, ""), said);
        }
        let sources = list(&volume["projected"], "sources");
        for _ in sources.iter().filter(|source| source.as_object().is_none_or(serde_json::Map::is_empty)) {
            said.push(format!("volume {name:?} (Projected) has no sources provided"));
        }
        collide(name, "Projected", sources.iter().flat_map(projected).collect(), said);
    }
}

fn items(source: &Value, from: &str) -> Vec<File> {
    let paths = list(source, "items").iter().map(|item| text(item, "path"));
    paths.map(|path| file(path, from)).collect()
}

fn file(path: &str, source: &str) -> File {
    File { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
}

fn projected(source: &Value) -> Vec<File> {
    let part = |field: &str| Some(&source[field]).filter(|part| !part.is_null());
    if let Some(map) = part("configMap") {
        items(map, &format!("ConfigMap {:?}", text(map, "name")))
    } else if let Some(secret) = part("secret") {
        items(secret, &format!("Secret {:?}", text(secret, "name")))
    } else if let Some(downward) = part("downwardAPI") {
        items(downward, "DownwardAPI")
    } else if let Some(token) = part("serviceAccountToken") {
        vec![file(text(token, "path"), "ServiceAccountToken")]
    } else if let Some(bundle) = part("clusterTrustBundle") {
        let name = bundle["name"].as_str().unwrap_or_else(|| text(bundle, "signerName"));
        vec![file(text(bundle, "path"), &format!("ClusterTrustBundle {name:?}"))]
    } else {
        Vec::new()
    }
}

fn collide(volume: &str, what: &str, files: Vec<File>, said: &mut Vec<String>) {
    for (index, file) in files.iter().enumerate() {
        for other in files[..index].iter().filter(|other| overlap(file, other)) {
            let (file, other) = (file.shown(), other.shown());
            said.push(format!("volume {volume:?} ({what}): overlapping paths: {file} with {other}"));
        }
    }
}

fn overlap(one: &File, other: &File) -> bool {
    let below = |a: &str, b: &str| format!("{a}/").starts_with(&format!("{b}/"));
    !one.path.is_empty()
        && !other.path.is_empty()
        && (one == other || below(&one.path, &other.path) || below(&other.path, &one.path))
}
