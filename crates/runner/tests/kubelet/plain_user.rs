//! The rows once more, by a runner that is not root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::rows::folder;

/// A user that nobody is.
const NOBODY_ELSE: u32 = 47_772;

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Everything that the rows need, where every user gets at it.
fn copy_all(place: &Path) {
    open(place, 0o755);
    fs::copy(std::env::current_exe().unwrap(), place.join("rows")).unwrap();
    let program = place.join("portolan-pod");
    fs::copy(env!("CARGO_BIN_EXE_portolan-pod"), &program).unwrap();
    open(&program, 0o755);
    fs::create_dir_all(place.join("kubelet")).unwrap();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, place.join("kubelet").join(path.file_name().unwrap())).unwrap();
    }
    fs::create_dir(place.join("tmp")).unwrap();
    open(&place.join("tmp"), 0o777);
}

#[test]
fn the_rows_hold_for_a_runner_that_is_not_root() {
    if !rustix::process::geteuid().is_root() {
        // The rows are played by such a one already.
        return;
    }
    let place = tempfile::tempdir().unwrap();
    copy_all(place.path());

    let played = Command::new(place.path().join("rows"))
        .args(["played::every_row_shows_what_a_kubelet_shows", "--exact", "--nocapture"])
        .env("PORTOLAN_KUBELET_PLACE", place.path())
        .env("TMPDIR", place.path().join("tmp"))
        .current_dir(place.path())
        .uid(NOBODY_ELSE)
        .gid(NOBODY_ELSE)
        .output()
        .unwrap();

    let said = String::from_utf8_lossy(&played.stdout);
    assert!(played.status.success(), "{said}{}", String::from_utf8_lossy(&played.stderr));
    assert!(said.contains("1 passed"), "{said}");
}
