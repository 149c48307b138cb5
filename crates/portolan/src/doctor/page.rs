//! The table of checks → its part of `docs/doctor.md`, held by a test.

use std::fmt::Write as _;
use std::path::Path;

use super::check;
use super::permission::{PERMISSIONS, PermissionScope};

const BEGIN: &str = "<!-- checks: written from the table by `PORTOLAN_WRITE_DOCS=1 cargo test -p portolan --bin portolan doctor::page` -->\n";
const END: &str = "<!-- end of checks -->\n";

fn checks() -> String {
    let mut text =
        String::from("| check | what it means that it is ok | what to do where it is not |\n|---|---|---|\n");
    for check in check::all() {
        writeln!(text, "| `{}` {} | {} | {} |", check.id, check.title, check.meaning, cell(check.remedy))
            .expect("a String takes everything");
    }
    text
}

/// Pipes end a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn the_page_tells_every_check_as_the_table_does() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md"));
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();

    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", checks());

    if std::env::var_os("PORTOLAN_WRITE_DOCS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert_eq!(
            page, wanted,
            "docs/doctor.md is out of date: PORTOLAN_WRITE_DOCS=1 cargo test -p portolan --bin portolan doctor::page"
        );
    }
}

#[test]
fn the_page_names_every_permission_as_the_dashboard_does() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md")).unwrap();

    for permission in &PERMISSIONS {
        assert!(page.contains(permission.name), "{}", permission.name);
        let scope = match permission.scope {
            PermissionScope::Account => ["Account ·", "Zone · Zone ·"],
            PermissionScope::Zone => ["Zone ·", "Zone ·"],
        };
        assert!(scope.iter().any(|start| permission.name.starts_with(start)), "{}", permission.name);
    }
}
