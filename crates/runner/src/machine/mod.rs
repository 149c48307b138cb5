//! What is done on this machine for pods: files, processes, their output, what they use, and what a killed runner left.

pub mod beneath;
pub mod cgroups;
pub mod files;
pub mod init;
pub mod leftovers;
pub mod logs;
mod low_ports;
pub mod measures;
pub mod pod_usage;
pub mod processes;
pub mod programs;
pub mod reach;
pub mod run_notes;
pub mod terminal;
