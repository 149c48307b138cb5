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
