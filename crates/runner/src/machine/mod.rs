//! What is done on this machine for pods: files, processes, their output, and what a killed runner left.

pub mod beneath;
pub mod cgroups;
pub mod files;
pub mod init;
pub mod leftovers;
pub mod logs;
mod low_ports;
pub mod measures;
pub mod processes;
pub mod run_notes;
