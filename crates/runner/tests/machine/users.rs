//! Whom processes are.

use crate::support::{Home, other_user};

#[tokio::test]
async fn a_runner_that_is_root_runs_a_program_as_whom_it_is_told_and_any_other_as_itself() {
    let home = Home::new();
    let mut launch = home.script("a", "id -u; id -g; id -G");
    launch.order.user = other_user();

    home.run(launch).await;

    let own = rustix::process::geteuid().as_raw();
    let expected = match other_user() {
        Some(user) => vec![user.user.to_string(), user.group.to_string(), "65532 65531".to_owned()],
        None => vec![own.to_string()],
    };
    assert_eq!(home.output("a")[..expected.len()], expected[..]);
}

#[tokio::test]
async fn a_program_of_another_user_keeps_one_privilege_of_roots_that_for_low_ports() {
    let home = Home::new();
    let mut launch = home.script("a", "grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status");
    launch.order.user = other_user();

    home.run(launch).await;

    if other_user().is_some() {
        // The tenth of them (linux/capability.h).
        let only = "0000000000000400";
        assert_eq!(home.output("a"), ["CapPrm", "CapEff", "CapAmb"].map(|set| format!("{set}:\t{only}")));
    }
}

#[tokio::test]
async fn a_program_in_a_folder_that_its_user_cannot_pass_through_is_run_all_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let folder = home.path("closed");
    std::fs::create_dir(&folder).unwrap();
    let shell = portolan_runner::machine::processes::find_executable("sh").unwrap();
    std::fs::copy(shell, folder.join("sh")).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut launch = home.script("a", "echo it runs");
    launch.order.executable = folder.join("sh");
    launch.order.user = other_user();

    home.run(launch).await;

    assert_eq!(home.output("a"), ["it runs"]);
}
