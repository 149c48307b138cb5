//! What the linker is asked for, and whether it can → link arguments of a release of the binary.
//!
//! Pages of the executable are more than half of what `portolan run` keeps in memory. Folding functions that are the same
//! code (generics make many) and packing the relocations that the loader reads at every start (a list of the addresses
//! themselves is twenty times the size) take megabytes off them. `safe` folds no function whose address is compared.
//! lld, which Rust brings along for Linux on x86-64 since 1.90, can do both; with another linker a release is larger, no more.

use std::env::{var, var_os};
use std::path::PathBuf;
use std::process::Command;

const ARGUMENTS: [&str; 2] = ["-Wl,--icf=safe", "-Wl,-z,pack-relative-relocs"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Also of profiles that inherit from `release`.
    if !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_OS", "linux") || !links_with(&ARGUMENTS) {
        return;
    }
    for argument in ARGUMENTS {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}

fn is(name: &str, value: &str) -> bool {
    var(name).is_ok_and(|found| found == value)
}

/// Tries them on the smallest program, with the linker and the flags that the binary will be linked with.
fn links_with(arguments: &[&str]) -> bool {
    let folder = PathBuf::from(var_os("OUT_DIR").expect("cargo names a folder for what build scripts make"));
    let source = folder.join("probe.rs");
    if std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut probe = Command::new(var_os("RUSTC").expect("cargo names its compiler"));
    probe.arg("--target").arg(var_os("TARGET").expect("cargo names the target"));
    probe.args(var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().split('\u{1f}').filter(|flag| !flag.is_empty()));
    if let Ok(linker) = var("RUSTC_LINKER") {
        probe.arg("-C").arg(format!("linker={linker}"));
    }
    for argument in arguments {
        probe.arg("-C").arg(format!("link-arg={argument}"));
    }
    probe.arg("-o").arg(folder.join("probe")).arg(&source);
    // What a linker that cannot says about it is no news for who builds.
    probe.output().is_ok_and(|output| output.status.success())
}
