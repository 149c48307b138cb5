//! `kubectl exec` and `kubectl attach`.

use std::process::Stdio;

use portolan_runner::machine::leftovers::process_count;
use portolan_runner::machine::terminal::Terminal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Harbour, Told, Written, is_up, script, soon};

/// By a WebSocket, and by SPDY as older clients have it.
const WAYS: [&str; 2] = ["true", "false"];

fn uid(pod: &Value) -> String {
    pod["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Waits until so many processes of a pod run.
async fn processes(pod: &str, count: usize) {
    soon(async {
        while process_count(pod).unwrap() != count {
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_runs_as_its_container_does_and_its_exit_code_is_told() {
    let Some(harbour) = Harbour::open().await else { return };
    let mut container = script("a", "echo here > /v/f; exec sleep infinity");
    container["env"] = json!([{"name": "COLOUR", "value": "red"}]);
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let pod = harbour.run(json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}), is_up).await;
    let work = "cat /v/f; echo $COLOUR; id -u; pwd; echo wrong >&2; exit 7";
    let inside = std::fs::canonicalize(harbour.home.path()).unwrap();

    for way in WAYS {
        let mut command = harbour.command(&["exec", "web", "--", "sh", "-c", work]);
        let told: Told = soon(command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", way).output()).await.unwrap().into();
        assert_eq!(told.status.code(), Some(7), "{told:?}");
        let lines: Vec<&str> = told.output.lines().collect();
        assert_eq!(lines[..2], ["here", "red"], "{told:?}");
        assert!(lines[3].starts_with(&*inside.to_string_lossy()), "{told:?}");
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(is_root, lines[2] != rustix::process::geteuid().as_raw().to_string(), "{told:?}");
        assert_eq!(told.errors, "wrong\ncommand terminated with exit code 7\n");
    }
    // The container's own program is all that is left.
    processes(&uid(&pod), 1).await;
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_goes_in_and_output_comes_out_whole_however_long() {
    let Some(harbour) = Harbour::open().await else { return };
    harbour.run(json!({"containers": [script("a", "exec sleep infinity")]}), is_up).await;
    let text: Vec<u8> = (0..300_000_u32).map(|index| b'a' + u8::try_from(index % 23).unwrap()).collect();

    for way in WAYS {
        let mut command = harbour.command(&["exec", "-i", "web", "--", "cat"]);
        command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", way).stdin(Stdio::piped());
        let mut exec = command.spawn().unwrap();
        let mut input = exec.stdin.take().unwrap();
        let sent = text.clone();
        let writing = tokio::spawn(async move { input.write_all(&sent).await });
        let told = soon(exec.wait_with_output()).await.unwrap();
        writing.await.unwrap().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        assert!(told.stdout == text, "{} of {} bytes came back", told.stdout.len(), text.len());
    }
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_program_of_the_table_is_refused_with_what_there_is() {
    let Some(harbour) = Harbour::open().await else { return };
    harbour.run(json!({"containers": [script("a", "exec sleep infinity")]}), is_up).await;

    let (_, refused) = harbour.kubectl(&["exec", "web", "--", "curl", "example.com"]).await.failed();
    assert!(refused.contains("\"curl\": the program for this image is tools, which has no such command"), "{refused}");
    assert!(refused.contains("there is sh, ash, sleep"), "{refused}");
    let (_, unknown) = harbour.kubectl(&["exec", "web", "-c", "b", "--", "true"]).await.failed();
    assert!(unknown.contains("container b is not valid for pod web"), "{unknown}");
    let (_, absent) = harbour.kubectl(&["exec", "other", "--", "true"]).await.failed();
    assert!(absent.contains("pods \"other\" not found"), "{absent}");
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_ends_its_program_and_everything_that_it_started() {
    let Some(harbour) = Harbour::open().await else { return };
    let pod = harbour.run(json!({"containers": [script("a", "exec sleep infinity")]}), is_up).await;

    for way in WAYS {
        let mut command = harbour.command(&["exec", "web", "--", "sh", "-c", "sleep 1000 & echo up; sleep 1000"]);
        let mut exec = command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", way).spawn().unwrap();
        assert_eq!(Written::by(exec.stdout.take().unwrap()).line().await.as_deref(), Some("up"));
        processes(&uid(&pod), 4).await;

        exec.kill().await.unwrap();

        processes(&uid(&pod), 1).await;
    }
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_with_the_container_that_it_runs_beside() {
    let Some(harbour) = Harbour::open().await else { return };
    let spec = json!({"containers": [script("a", "exec sleep infinity")], "terminationGracePeriodSeconds": 1});
    harbour.run(spec, is_up).await;
    let mut exec = harbour.start(&["exec", "web", "--", "sh", "-c", "echo up; sleep 1000"]);
    assert_eq!(Written::by(exec.stdout.take().unwrap()).line().await.as_deref(), Some("up"));

    harbour.pods.delete("web", &kube::api::DeleteParams::default()).await.unwrap();

    assert_eq!(soon(exec.wait()).await.unwrap().code(), Some(137));
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_is_one_for_the_program_and_has_the_size_of_the_clients() {
    let Some(harbour) = Harbour::open().await else { return };
    let pod = harbour.run(json!({"containers": [script("a", "exec sleep infinity")]}), is_up).await;
    let terminal = Terminal::open().unwrap();
    terminal.resize(97, 31).unwrap();
    let end = || std::fs::File::options().read(true).write(true).open(terminal.path()).unwrap();
    let mut command = harbour.command(&["exec", "-it", "web", "--", "sh"]);
    let mut exec = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    drop(command);
    let mut typed = tokio::fs::File::from_std(terminal.file().unwrap());
    let mut shown = tokio::fs::File::from_std(terminal.file().unwrap());

    // What is typed is shown as well, so that what is waited for must not stand in it.
    let question =
        "while ! stty size | grep -q 31; do sleep 0.1; done; stty size; test -t 1 && echo termi''nal; exit 3\n";
    typed.write_all(question.as_bytes()).await.unwrap();
    typed.flush().await.unwrap();
    let (mut screen, mut part) = (String::new(), vec![0; 4096]);
    soon(async {
        while !screen.contains("terminal\r\n") {
            let count = shown.read(&mut part).await.unwrap();
            screen.push_str(&String::from_utf8_lossy(&part[..count]));
        }
    })
    .await;

    assert!(screen.contains("31 97\r\n"), "{screen}");
    assert_eq!(soon(exec.wait()).await.unwrap().code(), Some(3));
    processes(&uid(&pod), 1).await;
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_attaches_sees_what_the_container_writes_from_then_on() {
    let Some(harbour) = Harbour::open().await else { return };
    let mut container = script("a", "while [ ! -e /v/end ]; do echo tick; sleep 0.05; done; echo last");
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "gate"}});
    let gate = harbour.put_claim("gate").await;
    harbour.run(json!({"containers": [container], "volumes": [volume], "restartPolicy": "Never"}), is_up).await;

    let mut attach = harbour.start(&["attach", "web"]);
    let mut written = Written::by(attach.stdout.take().unwrap());
    assert_eq!(written.line().await.as_deref(), Some("tick"));
    std::fs::write(gate.join("end"), "").unwrap();

    let mut last = String::new();
    while let Some(line) = written.line().await {
        last = line;
    }
    assert_eq!(last, "last");
    assert!(soon(attach.wait()).await.unwrap().success());
    harbour.close().await;
}
