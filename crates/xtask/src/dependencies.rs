//! What `cargo metadata` and the lock file say → what is wrong with the dependencies: licences, second versions, declared and
//! not used.
//!
//! Only this machine's packages are asked about: those of other systems are not downloaded by a build. The lock file knows the
//! versions of all.
//!
//! Known vulnerabilities are not looked for: the list of them is not on every machine that runs the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

mod licence;

/// Names that are there in more than one version, and why. `cargo` takes versions apart where they are not compatible.
const TWICE: &[(&str, &str)] = &[
    ("base64", "cel and k8s-openapi ask for 0.22, kube and reqwest for 0.23"),
    ("bit-vec", "yasna asks for 0.9, proptest for 0.10; tests and certificates only"),
    ("bitflags", "defmt asks for 1, which no target of ours builds"),
    ("cpufeatures", "sha2 asks for 0.2, rand for 0.3"),
    ("getrandom", "ring asks for 0.2, ahash for 0.3, uuid for 0.4"),
    ("hashbrown", "kube-runtime asks for 0.16"),
    ("r-efi", "of two versions of getrandom, for a target that is not ours"),
    ("rand", "proptest asks for 0.10; ours is 0.9 until its seeds may change"),
    ("rand_core", "of two versions of rand"),
    ("syn", "derive macros are moving from 2 to 3"),
    ("synstructure", "of two versions of syn"),
    ("tower-http", "reqwest asks for 0.6, kube for 0.7"),
    ("windows-sys", "for a target that is not ours"),
];

/// What `cargo metadata` prints, as far as it matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: std::path::PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    rename: Option<String>,
    kind: Option<String>,
}

/// Fails with everything that is wrong.
pub(crate) fn check(root: &Path) -> Result<()> {
    let host = said(root, "RUSTC", "rustc", &["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not say its host")?;
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    let metadata = said(root, "CARGO", "cargo", &arguments)?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("reading what cargo metadata prints")?;
    let mut faults = unlicensed(&metadata);
    faults.extend(twice(&std::fs::read_to_string(root.join("Cargo.lock"))?));
    let mut declared = 0;
    for package in metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id)) {
        declared += package.dependencies.len();
        faults.extend(unused(package, &Sources::read(package)?));
    }
    faults.extend(unnamed(&std::fs::read_to_string(root.join("Cargo.toml"))?, &metadata));
    if !faults.is_empty() {
        bail!("dependencies:\n  {}", faults.join("\n  "));
    }
    println!("dependencies: {} packages, {declared} declared by ours and used", metadata.packages.len());
    Ok(())
}

/// What a program prints, by the name in `variable` where it is set.
fn said(root: &Path, variable: &str, program: &str, arguments: &[&str]) -> Result<String> {
    let name = std::env::var_os(variable).unwrap_or_else(|| program.into());
    let output = Command::new(name).args(arguments).current_dir(root).output();
    let output = output.with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        bail!("{program} {}: {}", arguments[0], String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn unlicensed(metadata: &Metadata) -> Vec<String> {
    let refused = metadata.packages.iter().filter_map(|package| {
        let licence = package.license.as_deref().unwrap_or_default();
        let fault = licence::refused(licence)?;
        Some(format!("{} {} is licensed under {licence:?}: {fault}", package.name, package.version))
    });
    refused.collect()
}

/// Names with versions that cargo takes apart, and reasons that nothing needs any more.
fn twice(lock: &str) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let mut lines = package.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
        };
        if let (Some(name), Some(version)) = (field("name"), field("version")) {
            versions.entry(name).or_default().insert(compatible(version));
        }
    }
    let is_known = |name: &str| TWICE.iter().any(|(known, _)| *known == name);
    let new =
        versions.iter().filter(|(name, versions)| versions.len() > 1 && !is_known(name)).map(|(name, versions)| {
            let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
            format!(
                "{name} is there as {}: agree on one, or say why not in xtask's dependencies.rs",
                versions.join(" and ")
            )
        });
    let stale = TWICE.iter().filter(|(name, _)| versions.get(name).is_none_or(|versions| versions.len() < 2));
    new.chain(stale.map(|(name, _)| format!("{name} is there once: take its reason out of xtask's dependencies.rs")))
        .collect()
}

/// The part of a version that says which others it can stand for.
fn compatible(version: &str) -> String {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if major == "0" { format!("0.{minor}") } else { major.to_owned() }
}

/// A package's own source.
struct Sources {
    /// Of the library or program, and of its build script.
    shipped: String,
    /// Of its tests.
    tests: String,
}

impl Sources {
    fn read(package: &Package) -> Result<Self> {
        let folder = package.manifest_path.parent().context("a manifest has a folder")?;
        let mut shipped = text_below(&folder.join("src"))?;
        shipped.push_str(&std::fs::read_to_string(folder.join("build.rs")).unwrap_or_default());
        Ok(Self { shipped, tests: text_below(&folder.join("tests"))? })
    }

    fn names(&self, crate_name: &str, kind: Option<&str>) -> bool {
        has_word(&self.shipped, crate_name) || (kind == Some("dev") && has_word(&self.tests, crate_name))
    }
}

/// All Rust text in a folder, which need not be there.
fn text_below(folder: &Path) -> Result<String> {
    let mut text = String::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(text) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            text.push_str(&text_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).with_context(|| path.display().to_string())?);
        }
    }
    Ok(text)
}

fn unused(package: &Package, sources: &Sources) -> Vec<String> {
    let declared = package.dependencies.iter().filter(|dependency| {
        let name = dependency.rename.as_ref().unwrap_or(&dependency.name).replace('-', "_");
        !sources.names(&name, dependency.kind.as_deref())
    });
    declared.map(|dependency| format!("{} does not use {}: take it out", package.name, dependency.name)).collect()
}

/// What the workspace's manifest offers and no crate takes.
fn unnamed(manifest: &str, metadata: &Metadata) -> Vec<String> {
    let ours = metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id));
    let named: BTreeSet<&str> = ours.flat_map(|package| &package.dependencies).map(|one| one.name.as_str()).collect();
    let offered = manifest.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let offered = offered.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once(" = "));
    let unnamed = offered.filter(|(name, _)| !name.starts_with('#') && !named.contains(name));
    unnamed.map(|(name, _)| format!("no crate uses the workspace's {name}: take it out")).collect()
}

/// Whether a text has a word that is not part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part)
            && !text[at + word.len()..].chars().next().is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(packages: &[(&str, &str, &str)]) -> Metadata {
        let package = |(name, version, license): &(&str, &str, &str)| {
            json!({"id": format!("{name}@{version}"), "name": name, "version": version, "license": license,
                "manifest_path": "/nowhere/Cargo.toml", "dependencies": []})
        };
        let packages: Vec<_> = packages.iter().map(package).collect();
        serde_json::from_value(json!({"packages": packages, "workspace_members": []})).unwrap()
    }

    #[test]
    fn a_licence_that_is_not_allowed_is_told_with_its_package() {
        let faults = unlicensed(&metadata(&[("good", "1.0.0", "MIT"), ("bad", "2.1.0", "GPL-3.0-only")]));

        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("bad 2.1.0 is licensed under \"GPL-3.0-only\""), "{faults:?}");
    }

    #[test]
    fn two_versions_need_a_reason_and_a_reason_needs_two_versions() {
        let mut packages = vec![("one", "1.2.0"), ("one", "1.9.0"), ("zero", "0.3.1"), ("zero", "0.4.0")];
        packages.extend(TWICE.iter().skip(1).flat_map(|(name, _)| [(*name, "1.0.0"), (*name, "2.0.0")]));
        let package =
            |(name, version): &(&str, &str)| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n\n");
        let lock: String = packages.iter().map(package).collect();

        let faults = twice(&format!("version = 4\n\n{lock}"));

        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("zero is there as 0.3 and 0.4"), "{faults:?}");
        assert!(faults[1].starts_with(&format!("{} is there once", TWICE[0].0)), "{faults:?}");
    }

    #[test]
    fn what_the_workspace_offers_in_vain_is_told() {
        let manifest = "[workspace]\nmembers = []\n\n[workspace.dependencies]\n# why = because\nused = \"1\"\nlonely = { version = \"2\" }\n\n[profile.dev]\ndebug = 1\n";
        let mut metadata = metadata(&[("a", "0.1.0", "MIT")]);
        metadata.workspace_members.insert(metadata.packages[0].id.clone());
        metadata.packages[0].dependencies = vec![Dependency { name: "used".to_owned(), rename: None, kind: None }];

        assert_eq!(unnamed(manifest, &metadata), ["no crate uses the workspace's lonely: take it out"]);
    }

    #[test]
    fn a_dependency_that_no_source_names_is_unused() {
        let package: Package = serde_json::from_value(json!({
            "id": "a", "name": "a", "version": "0.1.0", "license": "MIT", "manifest_path": "/nowhere/Cargo.toml",
            "dependencies": [{"name": "used-here"}, {"name": "unused"}, {"name": "test-only", "kind": "dev"},
                {"name": "shipped-by-tests-only"}, {"name": "long", "rename": "short"}],
        }))
        .unwrap();
        let sources = Sources {
            shipped: "use used_here::One; fn f() { short::g(); unused_thing() }".to_owned(),
            tests: "use test_only::*; use shipped_by_tests_only::*;".to_owned(),
        };

        let faults = unused(&package, &sources);

        assert_eq!(faults, ["a does not use unused: take it out", "a does not use shipped-by-tests-only: take it out"]);
    }
}
