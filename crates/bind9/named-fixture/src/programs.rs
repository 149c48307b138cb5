//! Where named and its tools are: what `tools/named/build.sh` prints.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The folder with `named`, `rndc`, `dig` and others. Nothing where they cannot be had: then the test says that it was not run.
pub fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAMS.get_or_init(find) {
        Ok(folder) => Some(folder),
        Err(why) => {
            let what = std::thread::current().name().unwrap_or("a test").to_owned();
            tell(&format!("named: NOT RUN: {what}: {why}"));
            None
        }
    }
}

fn find() -> Result<PathBuf, String> {
    let script = format!("{}/../../../tools/named/build.sh", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(script).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Says something although tests are quiet.
pub fn tell(text: &str) {
    use std::io::Write as _;
    let _unread = writeln!(std::io::stderr(), "{text}");
}
