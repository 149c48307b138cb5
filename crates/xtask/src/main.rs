//! Generated files: published `OpenAPI` documents → the data that crates embed; types → their reference.

mod chart;
mod dashboard;
mod metrics;
mod reference;
mod rights;
mod schemas;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

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
        Task::Generate { openapi, check } => {
            let wanted = schemas::generate(&openapi)?;
            bring_up_to_date(&root.join("crates/local/builtin/data/schemas.json"), &wanted, check, "make generate")
        }
        Task::Chart { check } => chart::bring_up_to_date(root, check),
        Task::Reference { check } => {
            for (name, text) in reference() {
                bring_up_to_date(&root.join(name), &text, check, "make reference")?;
            }
            let security = root.join("docs/security.md");
            let page = rights::page(&std::fs::read_to_string(&security)?)?;
            bring_up_to_date(&security, &page, check, "make reference")
        }
    }
}

/// What is generated from types and tables: the file, and what is in it.
fn reference() -> Vec<(String, String)> {
    let pages = reference::pages().map(|(name, page)| (format!("docs/reference/{name}"), page));
    let charts = [("dashboards/portolan.json", dashboard::dashboard()), ("alerts/portolan.json", metrics::rules())];
    let charts = charts.map(|(name, text)| (format!("charts/portolan/{name}"), text));
    pages.into_iter().chain(charts).collect()
}

/// Writes a file that differs, or only says so.
fn bring_up_to_date(target: &Path, wanted: &str, check: bool, command: &str) -> Result<()> {
    let there = std::fs::read_to_string(target).unwrap_or_default();
    if there == wanted {
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
