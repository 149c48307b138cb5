//! Files, folders and standard input → Kubernetes objects, each with the place it came from.
//!
//! Documents are split at `---` before parsing, so that an error names the document and the line of the file.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// An object and where it stands.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Where it stands.
    pub origin: FileDocument,
    /// The object.
    pub object: Value,
}

/// A document of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDocument {
    file: String,
    document: usize,
}

impl fmt::Display for FileDocument {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, document {}", self.file, self.document)
    }
}

impl Manifest {
    /// An object that no file holds; `origin` says in messages where it comes from.
    pub fn made(origin: &str, object: Value) -> Self {
        Self { origin: FileDocument { file: origin.to_owned(), document: 1 }, object }
    }

    /// The object's `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.object["apiVersion"].as_str().unwrap_or_default()
    }

    /// The object's `kind`.
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The object's namespace, where it names one.
    pub fn namespace(&self) -> Option<&str> {
        self.object["metadata"]["namespace"].as_str()
    }
}

/// Reads all objects of `paths`, in the order given; files of a folder by name; `-` is standard input.
pub fn read(paths: &[PathBuf], recursive: bool) -> Outcome<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for path in paths {
        for file in files_of(path, recursive)? {
            let (name, text) = read_text(&file)?;
            manifests.extend(parse(&name, &text)?);
        }
    }
    if manifests.is_empty() {
        let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::new(format!("no objects in {}", shown.join(", ")))
            .next("give files that hold Kubernetes objects as YAML or JSON (-R looks into subfolders too)"));
    }
    Ok(manifests)
}

/// The files that a path stands for: itself, or the folder's files that may hold objects, by name.
pub fn files_of(path: &Path, recursive: bool) -> Outcome<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error: std::io::Error| unreadable(path, &error);
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        if entry.is_dir() && recursive {
            files.extend(files_of(&entry, recursive)?);
        } else if entry.is_file() && holds_objects(&entry) {
            files.push(entry);
        }
    }
    Ok(files)
}

fn holds_objects(file: &Path) -> bool {
    file.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

fn read_text(file: &Path) -> Outcome<(String, String)> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| unreadable(Path::new("standard input"), &error))?;
        return Ok(("standard input".to_owned(), text));
    }
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    Ok((file.display().to_string(), text))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(format!("{} cannot be read: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::NotFound => failure.next("check the path given with -f"),
        std::io::ErrorKind::InvalidData => failure.next("manifests are UTF-8 text: is this another kind of file?"),
        _ => failure.next("check that you may read it"),
    }
}

/// The objects of one file's text.
pub fn parse(file: &str, text: &str) -> Outcome<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for (index, (first_line, document)) in documents(text).into_iter().enumerate() {
        let origin = FileDocument { file: file.to_owned(), document: index + 1 };
        let value = parse_document(&origin, first_line, &document)?;
        for object in objects_of(value) {
            manifests.push(Manifest { object: checked(&origin, object)?, origin: origin.clone() });
        }
    }
    Ok(manifests)
}

/// The documents of a YAML text that hold more than comments, each with the number of its first line.
fn documents(text: &str) -> Vec<(usize, String)> {
    let mut documents = vec![(1, String::new())];
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if line.strip_prefix("---").is_some_and(|rest| rest.trim_start().is_empty() || rest.starts_with([' ', '\t'])) {
            let rest = line.trim_start_matches('-').trim_start();
            documents.push((index + 1, format!("{rest}\n")));
        } else if let Some((_, current)) = documents.last_mut() {
            current.push_str(line);
            current.push('\n');
        }
    }
    documents.retain(|(_, document)| document.lines().any(has_content));
    documents
}

fn has_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#') && !line.starts_with('%') && line != "..."
}

fn parse_document(origin: &FileDocument, first_line: usize, document: &str) -> Outcome<Value> {
    // As kubectl reads YAML: 1.1 booleans and octal numbers, so that one file means the same to both.
    let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
    serde_saphyr::from_str_with_options(document, options).map_err(|error| {
        let place = error.location().map_or_else(String::new, |location| {
            let line = first_line + usize::try_from(location.line()).unwrap_or(1).saturating_sub(1);
            format!(" at line {line}, column {}", location.column())
        });
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or(&text);
        Failure::new(format!("{origin}{place}: not valid YAML: {text}"))
            .next("correct the document (indentation, quotes, colons) and try again")
    })
}

/// The items of a `List`, else the object itself.
fn objects_of(value: Value) -> Vec<Value> {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) && value["items"].is_array();
    match value {
        Value::Object(mut list) if is_list => match list.remove("items") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        },
        other => vec![other],
    }
}

fn checked(origin: &FileDocument, object: Value) -> Outcome<Value> {
    if !object.is_object() {
        return Err(Failure::new(format!("{origin}: not an object but {}", shape(&object)))
            .next("a manifest starts with apiVersion, kind and metadata"));
    }
    for (pointer, shown) in [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")] {
        let value = object.pointer(pointer);
        if value.and_then(Value::as_str).is_none_or(str::is_empty) {
            let problem = if value.is_none() { "missing" } else { "not a text" };
            return Err(Failure::new(format!("{origin}: {shown} is {problem}"))
                .next(format!("add {shown} (a text) to the document")));
        }
    }
    Ok(object)
}

fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

    fn error_of(text: &str) -> String {
        parse("f.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn documents_without_content_are_passed_over() {
        let text = format!("# a comment\n---\n{CONFIG_MAP}---\n\n--- # last\n{CONFIG_MAP}...\n");

        assert_eq!(parse("f.yaml", &text).unwrap().len(), 2);
    }

    #[test]
    fn an_error_names_file_document_and_line_of_the_file() {
        let error = error_of(&format!("{CONFIG_MAP}---\napiVersion: v1\nkind: [Con\n"));

        assert!(error.contains("f.yaml, document 2 at line 8") || error.contains("document 2 at line 7"), "{error}");
    }

    #[test]
    fn a_missing_field_is_named_with_its_document() {
        let error = error_of(&format!("{CONFIG_MAP}---\napiVersion: v1\nkind: ConfigMap\n"));

        assert!(error.contains("f.yaml, document 2: metadata.name is missing"), "{error}");
    }

    #[test]
    fn a_list_is_taken_apart() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n";

        assert_eq!(parse("f.yaml", text).unwrap()[0].kind(), "Secret");
    }

    #[test]
    fn json_is_read_as_well() {
        let text = "{\n\t\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}\n}\n";

        assert_eq!(parse("f.json", text).unwrap()[0].name(), "a");
    }

    #[test]
    fn scalars_mean_what_they_mean_to_kubectl() {
        let text = format!("{CONFIG_MAP}x: [yes, 0644, \"0644\", 1.5, ~, 12, \"12\"]\n");
        let object = &parse("f.yaml", &text).unwrap()[0].object;

        assert_eq!(object["x"], serde_json::json!([true, 420, "0644", 1.5, null, 12, "12"]));
    }

    #[test]
    fn a_text_instead_of_an_object_is_refused() {
        assert!(error_of("just text\n").contains("not an object but a text"));
    }

    #[test]
    fn a_dashed_line_inside_an_indented_block_splits_nothing() {
        let text = format!("{CONFIG_MAP}data:\n  k: |\n    ---\n    text\n");

        assert_eq!(parse("f.yaml", &text).unwrap()[0].object["data"]["k"], "---\ntext\n");
    }

    #[test]
    fn a_missing_file_says_so() {
        let error = read(&[PathBuf::from("/nowhere/x.yaml")], false).unwrap_err().to_string();

        assert!(error.contains("/nowhere/x.yaml cannot be read") && error.contains("check the path"), "{error}");
    }
}
