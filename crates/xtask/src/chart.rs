//! The generated parts of the Helm chart, and the table of values in its page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use portolan_install::chart;
use portolan_jobs::{ALL, sheets};

const COMMAND: &str = "make chart";
const PAGE: &str = "docs/installation.md";
const BEGIN: &str = "<!-- values: begin -->\n";
const END: &str = "<!-- values: end -->";

/// Writes what differs and removes what is generated no more, or only says so.
pub(crate) fn bring_up_to_date(root: &Path, check: bool) -> Result<()> {
    let folder = root.join("charts/portolan");
    let files = chart::files(env!("CARGO_PKG_VERSION"), &sheets(ALL));
    let wanted: BTreeSet<PathBuf> = files.iter().map(|(name, _)| folder.join(name)).collect();
    for old in files_in(&folder.join("files"))?.into_iter().filter(|file| !wanted.contains(file)) {
        if check {
            bail!("{} is not generated any more: run `{COMMAND}`", old.display());
        }
        std::fs::remove_file(&old)?;
        println!("Removed {}", old.display());
    }
    for (name, text) in files {
        crate::bring_up_to_date(&folder.join(name), &text, check, COMMAND)?;
    }
    let page = root.join(PAGE);
    let text = std::fs::read_to_string(&page).with_context(|| format!("reading {}", page.display()))?;
    crate::bring_up_to_date(&page, &with_table(&text)?, check, COMMAND)
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in folder.read_dir().into_iter().flatten() {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_in(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// The page, with the table of today between its marks.
fn with_table(page: &str) -> Result<String> {
    let marks = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = marks.with_context(|| format!("{PAGE} has no place for the table of values"))?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", chart::table(&sheets(ALL))))
}
