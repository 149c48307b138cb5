//! The data directory: who may read it, what happens to files that are not ours, and a clean stop.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{Run, Server, apiserver, config_map};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The one file that holds all objects.
fn data_file(data: &Path) -> PathBuf {
    data.join("portolan.sqlite")
}

/// Stops the server and brings everything it wrote into the one file.
fn stopped(mut server: Server) -> PathBuf {
    assert_eq!(server.terminate(), Some(0));
    let file = data_file(server.data());
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    connection.close().unwrap();
    file
}

/// Tries to start on `data`, which must fail.
fn refused(data: &Path) -> String {
    let run: Run = apiserver(data).output().unwrap().into();
    run.failed()
}

#[test]
fn only_the_owner_can_read_the_data_and_the_kubeconfig() {
    let server = Server::start();

    assert_eq!(mode(server.data()), 0o700);
    assert_eq!(mode(&server.kubeconfig()), 0o600);
    for entry in std::fs::read_dir(server.data()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{} can be read by others", path.display());
    }
}

#[test]
fn a_server_that_is_asked_to_stop_stops_cleanly_and_keeps_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut server = Server::start_on(&data);
    server.run_with_input(&["apply", "-f", "-"], &config_map("a", "1")).succeeded();

    assert_eq!(server.terminate(), Some(0));

    assert!(!data.join("portolan.sqlite-wal").exists(), "everything is in the one file");
    let again = Server::start_on(&data);
    assert_eq!(again.run(&["get", "cm", "a", "-o", "name"]).succeeded(), "configmap/a\n");
}

#[test]
fn a_file_of_another_program_is_refused_and_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let file = stopped(Server::start_on(&data));
    for foreign in [b"These are my holiday notes.".repeat(100), database_of_another_program()] {
        std::fs::write(&file, &foreign).unwrap();

        let error = refused(&data);

        assert!(error.contains("is not a Portolan data file; it was left untouched"), "{error}");
        assert!(error.contains("--data-dir"), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), foreign, "{error}");
    }
}

fn database_of_another_program() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("theirs.sqlite");
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup');").unwrap();
    connection.close().unwrap();
    std::fs::read(&file).unwrap()
}

#[test]
fn a_damaged_file_is_refused_and_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start_on(&data);
    let many: Vec<String> = (0..50).map(|number| config_map(&format!("a{number}"), &"x".repeat(2_000))).collect();
    server.run_with_input(&["apply", "-f", "-"], &many.join("---\n")).succeeded();
    let file = stopped(server);
    let mut bytes = std::fs::read(&file).unwrap();
    let (from, to) = (bytes.len() / 4, bytes.len() / 2);
    bytes[from..to].fill(0xA5);
    std::fs::write(&file, &bytes).unwrap();

    let error = refused(&data);

    assert!(error.contains("damaged"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "the damaged file must stay as it is for a rescue");
}

#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let server = Server::start();

    let error = refused(server.data());

    assert!(error.contains("in use") || error.contains("another"), "{error}");
    server.run(&["get", "ns"]).succeeded();
}

#[test]
fn an_address_that_is_taken_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");

    let run: Run = crate::support::portolan()
        .args(["apiserver", "--listen", &address, "--data-dir", data.to_str().unwrap()])
        .output()
        .unwrap()
        .into();

    let error = run.failed();
    assert!(error.contains(&address) && error.contains("--listen"), "{error}");
}
