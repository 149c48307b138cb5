//! Pages → links that lead nowhere: files that are not there, headings that no page has.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::page::{Fault, Page};

/// Links to files or headings that do not exist.
pub fn dead(root: &Path, pages: &[Page]) -> Vec<Fault> {
    let anchors: BTreeMap<&Path, Vec<String>> = pages.iter().map(|page| (page.path.as_path(), anchors(page))).collect();
    let mut faults = Vec::new();
    for page in pages {
        for (line, target) in links(page) {
            if let Some(why) = wrong(root, &anchors, page, target) {
                faults.push(page.fault(line, format!("the link {target} {why}")));
            }
        }
    }
    faults
}

fn wrong(root: &Path, anchors: &BTreeMap<&Path, Vec<String>>, page: &Page, target: &str) -> Option<String> {
    if target.starts_with("https://") || target.starts_with("http://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let folder = page.path.parent().unwrap_or(Path::new(""));
    let path = if file.is_empty() { page.path.clone() } else { plain(&folder.join(file)) };
    if !root.join(&path).exists() {
        return Some(format!("leads to {}, which does not exist", path.display()));
    }
    let anchor = anchor?;
    match anchors.get(path.as_path()) {
        Some(there) if there.iter().any(|one| one == anchor) => None,
        _ => Some(format!("names a heading that {} does not have", path.display())),
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Targets of inline links, with their lines.
fn links(page: &Page) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in page.prose() {
        for (start, _) in text.match_indices("](") {
            let rest = &text[start + 2..];
            if let Some(end) = rest.find(')') {
                found.push((line, rest[..end].split(' ').next().unwrap_or_default()));
            }
        }
    }
    found
}

/// The names by which headings are linked, as forges make them.
pub fn anchors(page: &Page) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    page.headings()
        .into_iter()
        .map(|(_, _, text)| {
            let name = slug(text);
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
        })
        .collect()
}

fn slug(heading: &str) -> String {
    let kept =
        heading.to_lowercase().chars().filter(|one| one.is_alphanumeric() || " -_".contains(*one)).collect::<String>();
    kept.replace(' ', "-")
}

mod tests {
    use super::{Page, dead};
    use std::path::Path;

    #[test]
    fn dead_links_and_dead_headings_are_found() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::write(root.path().join("file.txt"), "x").expect("written");
        let pages = [
            Page::parse(
                Path::new("docs/a.md"),
                "# Über `uns`, kurz\n[1](#über-uns-kurz) [2](../b.md#twice-1) [3](https://x.y/) [4](../file.txt)",
            ),
            Page::parse(
                Path::new("b.md"),
                "## Twice\n## Twice\n\n[5](docs/gone.md) [6](docs/a.md#nowhere)\n\n```text\n[7](gone)\n```\n",
            ),
        ];
        for page in &pages {
            std::fs::create_dir_all(root.path().join(&page.path).parent().expect("a folder")).expect("made");
            std::fs::write(root.path().join(&page.path), &page.text).expect("written");
        }

        let found: Vec<String> = dead(root.path(), &pages).iter().map(ToString::to_string).collect();

        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found[0].starts_with("b.md:4: the link docs/gone.md leads to docs/gone.md"), "{found:#?}");
        assert!(found[1].contains("docs/a.md#nowhere names a heading"), "{found:#?}");
    }
}
