//! The `Dockerfile`, as far as it can be checked without a builder of images: what it copies is there, what it runs fits
//! its base, and it runs as the chart's pods do.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Run, portolan};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// Instructions with their arguments; continued lines are joined, comments left out.
fn instructions() -> Vec<(String, String)> {
    let text = read("Dockerfile").replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').map(|(word, rest)| (word.to_owned(), rest.to_owned())).unwrap()).collect()
}

fn arguments(of: &str) -> Vec<String> {
    instructions().into_iter().filter(|(word, _)| word == of).map(|(_, rest)| rest).collect()
}

/// The default of a variable.
fn variable(name: &str) -> String {
    let all = arguments("ARG");
    let found = all.iter().find_map(|line| line.strip_prefix(&format!("{name}=")));
    found.unwrap().to_owned()
}

#[test]
fn what_is_copied_is_there_and_not_ignored() {
    let ignore = read(".dockerignore");
    let copied: Vec<String> = arguments("COPY").into_iter().filter(|line| !line.starts_with("--from=")).collect();

    assert!(!copied.is_empty());
    for line in &copied {
        let mut sources: Vec<&str> = line.split_whitespace().collect();
        sources.pop();
        for source in sources {
            assert!(root().join(source).exists(), "{source}");
            assert!(ignore.lines().any(|rule| rule == format!("!{source}")), "{source} is ignored");
        }
    }
}

#[test]
fn everything_that_is_built_into_the_binary_is_copied() {
    let copied: Vec<PathBuf> =
        ["crates", "charts"].iter().map(|folder| root().join(folder).canonicalize().unwrap()).collect();
    for folder in ["crates", "charts"] {
        assert!(arguments("COPY").contains(&format!("{folder} {folder}")), "{folder}");
    }
    let mut seen = 0;
    for file in sources(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for included in text.split("include_str!(\"").skip(1) {
            let name = included.split('"').next().unwrap();
            let Ok(path) = file.parent().unwrap().join(name).canonicalize() else { continue };
            assert!(copied.iter().any(|folder| path.starts_with(folder)), "{} includes {name}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 3, "the search finds what is included: {seen}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    own.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

#[test]
fn the_base_is_named_by_a_variable_and_has_the_builders_c_library() {
    let stages = arguments("FROM");

    assert_eq!(stages, ["${BUILDER} AS build", "${BASE}"]);
    assert!(variable("BUILDER").ends_with("-bookworm"), "Debian 12");
    assert!(variable("BASE").contains("debian12"), "Debian 12");
    let minimum = read("Cargo.toml");
    let minimum = minimum.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    assert!(variable("BUILDER").contains(&format!("rust:{}-", minimum.trim_matches('"'))), "{minimum}");
}

#[test]
fn it_runs_as_the_user_of_the_charts_pods() {
    let values: serde_json::Value = serde_saphyr::from_str(&read("charts/portolan/values.yaml")).unwrap();
    let context = &values["podSecurityContext"];

    let user = format!("{}:{}", context["runAsUser"], context["runAsGroup"]);
    assert_eq!(arguments("USER"), [user]);
    assert_eq!(context["runAsNonRoot"], true);
}

#[test]
fn its_command_is_one_that_the_binary_knows() {
    let words = |of: &str| serde_json::from_str::<Vec<String>>(&arguments(of)[0]).unwrap();

    assert_eq!(words("ENTRYPOINT"), ["portolan"]);
    let run: Run = portolan().args(words("CMD")).arg("--help").output().unwrap().into();
    run.succeeded();
}

#[test]
fn the_binary_needs_nothing_but_the_c_library() {
    let Ok(output) = Command::new("ldd").arg(env!("CARGO_BIN_EXE_portolan")).output() else {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "image: NOT RUN: what the binary is linked with: there is no ldd here");
        return;
    };
    // What a `cc` base of the distroless kind brings.
    let known = ["linux-vdso", "ld-linux", "libc.so", "libm.so", "libgcc_s", "libdl.so", "libpthread", "librt"];
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.contains("statically linked")) {
        assert!(known.iter().any(|name| line.contains(name)), "{line}");
    }
}
