//! A process that becomes a pod's user → one that may still listen on ports below 1024, as processes of containers may
//! (`net.ipv4.ip_unprivileged_port_start` is 0 in them).
//!
//! The one privilege is handed on to the program, and no other; where the runner does not have it, ports are as for any user.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities,
};

/// Privileges are kept when the user changes; [`hand_on`] gives up all but one of them.
pub(super) fn keep() -> io::Result<()> {
    Ok(set_keep_capabilities(true)?)
}

/// Gives up all privileges but that for low ports, which the program is started with. Root keeps what it has.
pub(super) fn hand_on() -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let ports = CapabilitySet::NET_BIND_SERVICE;
    let own = capabilities(None)?.permitted & ports;
    set_capabilities(None, CapabilitySets { effective: own, permitted: own, inheritable: own })?;
    if own == ports {
        configure_capability_in_ambient_set(ports, true)?;
    }
    Ok(())
}
