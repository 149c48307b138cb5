//! Generated files: published `OpenAPI` documents → the data that crates embed; types → their reference. And what is wrong with
//! the dependencies.

mod chart;
mod dashboard;
mod dependencies;
mod metrics;
mod published;
mod reference;
mod rights;
mod schemas;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use portolan_core::job::JobSheet;

#[derive(Parser)]
#[command(about = "Generates the committed data of other crates")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Reduce Kubernetes' `OpenAPI` v3 documents to the schemas of the built-in kinds.
    Generate {
        /// Folder of `*_openapi.json` files.
        openapi: PathBuf,
        /// Folder of such files as a running API server publishes them.
        published: PathBuf,
        /// Change nothing; fail where the committed file differs.
        #[arg(long)]
        check: bool,
    },
    /// Write the generated parts of the Helm chart, and the table of its values.
    Chart {
        /// Change nothing; fail where a committed file differs.
        #[arg(long)]
        check: bool,
    },
    /// Look at licences, second versions and unused dependencies; fail where something is wrong.
    Dependencies,
    /// Write the reference of kinds and metrics, the dashboard, the alerts, and the rights into the security page.
    Reference {
        /// Change nothing; fail where the committed page differs.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<()> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    match Arguments::parse().task {
        Task::Generate { openapi, published, check } => {
            let data = root.join("crates/apiserver/builtin/data");
            bring_up_to_date(&data.join("schemas.json"), &schemas::generate(&openapi)?, check, "make generate")?;
            bring_documents_up_to_date(&data.join("openapi.zlib"), &published::generate(&published)?, check)
        }
        Task::Chart { check } => chart::bring_up_to_date(root, check),
        Task::Dependencies => dependencies::check(root),
        Task::Reference { check } => {
            for (name, text) in reference(&all()) {
                bring_up_to_date(&root.join(name), &text, check, "make reference")?;
            }
            let security = root.join("docs/security.md");
            let page = rights::page(&std::fs::read_to_string(&security)?, &all())?;
            bring_up_to_date(&security, &page, check, "make reference")
        }
    }
}

/// What is known of all jobs.
fn all() -> Vec<&'static JobSheet> {
    portolan_jobs::sheets(portolan_jobs::ALL)
}

/// What is generated from types and tables: the file, and what is in it.
fn reference(jobs: &[&JobSheet]) -> Vec<(String, String)> {
    let pages = reference::pages(jobs).into_iter().map(|(name, page)| (format!("docs/reference/{name}"), page));
    let charts =
        [("dashboards/portolan.json", dashboard::dashboard(jobs)), ("alerts/portolan.json", metrics::rules(jobs))];
    let charts = charts.map(|(name, text)| (format!("charts/portolan/{name}"), text));
    pages.chain(charts).collect()
}

/// The same for a file that is compressed.
fn bring_documents_up_to_date(target: &Path, wanted: &str, check: bool) -> Result<()> {
    let there = published::decompress(&std::fs::read(target).unwrap_or_default());
    write_difference(target, there == wanted, &published::compress(wanted)?, check, "make generate")
}

/// Writes a file that differs, or only says so.
fn bring_up_to_date(target: &Path, wanted: &str, check: bool, command: &str) -> Result<()> {
    let there = std::fs::read_to_string(target).unwrap_or_default();
    write_difference(target, there == wanted, wanted.as_bytes(), check, command)
}

fn write_difference(target: &Path, is_there: bool, wanted: &[u8], check: bool, command: &str) -> Result<()> {
    if is_there {
        println!("{} is up to date", target.display());
    } else if check {
        bail!("{} is out of date: run `{command}`", target.display());
    } else {
        target.parent().map(std::fs::create_dir_all).transpose()?;
        std::fs::write(target, wanted)?;
        println!("Wrote {} ({} bytes)", target.display(), wanted.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
