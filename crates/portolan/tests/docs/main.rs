//! The documentation, held to what it says: every command is run, every link leads somewhere, every reason is explained.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]
#![allow(missing_docs, unreachable_pub, reason = "modules of a test")]

mod cluster;
mod elsewhere;
mod inline;
mod invariants;
mod links;
mod node;
mod page;
mod reasons;
mod runner;
mod session;
mod shown;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use page::{Fault, Page};
use runner::Programs;

#[test]
fn every_command_in_the_documentation_runs() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let programs = Programs { portolan: env!("CARGO_BIN_EXE_portolan").into(), kubectl: kubectl(), helm: helm() };

    let count = runner::run(&root(), &chosen(pages()), &programs, &runtime).unwrap_or_else(|fault| panic!("{fault}"));

    for page in &count.not_run {
        tell(&format!("docs: NOT RUN: the commands of {page}"));
    }
    for (command, why) in elsewhere::by_hand() {
        tell(&format!("docs: BY HAND: {command} …: {why}"));
    }
    tell(&format!("docs: {} commands of {} pages run", count.commands, count.pages));
    assert!(count.commands > 0);
}

#[test]
fn commands_stand_in_blocks_that_are_run() {
    none(pages().iter().flat_map(Page::faults));
}

#[test]
fn links_lead_somewhere() {
    none(links::dead(&root(), &pages()));
}

#[test]
fn commands_in_sentences_exist() {
    none(inline::unknown(&pages()));
}

#[test]
fn every_reason_is_explained_and_nothing_else_is() {
    let page = pages().into_iter().find(|page| page.path == Path::new(reasons::PAGE)).unwrap();

    none(reasons::unexplained(&page));
}

#[test]
fn reasons_are_constants_of_the_lists_that_are_explained() {
    none(reasons::literals(&root()));
    assert_eq!(reasons::unused(&root()), [""; 0], "reasons that nothing gives: take them out");
    assert_eq!(
        reasons::declared(&root()),
        reasons::listed(),
        "a list of reasons that tests/docs/reasons.rs does not know"
    );
}

#[test]
fn every_rule_names_the_tests_that_would_catch_its_breaking() {
    let page = pages().into_iter().find(|page| page.path == Path::new(invariants::PAGE)).unwrap();

    tell(&format!("invariants: {} tests are named for the rules that always hold", invariants::count(&page)));
    none(invariants::faults(&root(), &page));
}

#[test]
fn what_is_said_to_run_elsewhere_is_there() {
    let here = std::fs::read_to_string(root().join("crates/portolan/tests/docs/main.rs")).unwrap();

    for test in elsewhere::tests() {
        assert!(here.contains(&format!("fn {test}()")), "{test} is named in elsewhere.rs and is no test");
    }
}

#[test]
fn the_demo_ends_with_a_name_that_is_live_and_protected() {
    let demo = Command::new("make")
        .args(["-s", "demo"])
        .current_dir(root())
        .env("PORTOLAN", env!("CARGO_BIN_EXE_portolan"))
        .stdin(Stdio::null())
        .output()
        .unwrap();

    let said = String::from_utf8_lossy(&demo.stdout);
    assert!(demo.status.success(), "{said}{}", String::from_utf8_lossy(&demo.stderr));
    assert!(said.contains("So the name is live, and protected."), "{said}");
}

#[track_caller]
fn none(faults: impl IntoIterator<Item = Fault>) {
    let faults: Vec<String> = faults.into_iter().map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page that people read.
fn pages() -> Vec<Page> {
    let root = root();
    let mut paths = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "examples", "charts", "tests"] {
        collect(&root.join(folder), &mut paths);
    }
    let page = |path: &PathBuf| Page::parse(path.strip_prefix(&root).unwrap(), &std::fs::read_to_string(path).unwrap());
    paths.iter().map(page).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}

/// All pages, or those whose path contains `PORTOLAN_DOCS_FILTER`.
fn chosen(pages: Vec<Page>) -> Vec<Page> {
    let filter = std::env::var("PORTOLAN_DOCS_FILTER").unwrap_or_default();
    pages.into_iter().filter(|page| page.path.to_string_lossy().contains(&filter)).collect()
}

fn kubectl() -> Result<PathBuf, String> {
    portolan_parity::binaries().map(|folder| folder.join("kubectl")).map_err(|error| error.to_string())
}

/// The helm that `tools/helm` builds.
fn helm() -> Result<PathBuf, String> {
    let script = root().join("tools/helm/build.sh");
    let output = Command::new(&script).stderr(Stdio::piped()).output().map_err(|error| format!("no helm: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.trim().lines().last().unwrap_or("no helm").to_owned());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Written to the handle itself: what `println!` says is kept back.
fn tell(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
