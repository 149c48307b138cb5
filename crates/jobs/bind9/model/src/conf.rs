//! What holds for a server, its keys and whom it follows → the files that `named` and `rndc` read, checked before anybody gets them.
//!
//! ```text
//! ServerSettings + KeyRing + Following ─ files ─▶ clauses ─ check ─▶ findings, or texts and their digests
//! a user's own file ─ parse ─▶ clauses ─ check ─▶ findings
//! ```

mod check;
mod clause;
mod files;
mod key_files;
mod options;
mod parse;
mod zone_clauses;

pub use check::{check, check_text};
pub use clause::{Clause, ClausePart, render};
pub use files::{FileSet, Following, PodAddress, ServerFiles, files};
pub use key_files::{keys_conf, rndc_key};
pub use parse::{ParseError, parse};
pub use zone_clauses::{ZoneForm, zone_clauses, zone_file};
