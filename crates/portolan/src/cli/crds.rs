//! `portolan crds`: the definitions of Portolan's own kinds.

/// Prints them as one YAML stream. There are none in this version, which is said on standard error.
pub(crate) fn run() {
    eprintln!("portolan has no kinds of its own yet: there is nothing to install");
}
