//! What is done on this machine for pods: files, processes, their output, what they use, and what a killed runner left.

pub mod beneath;
pub mod cgroups;
pub mod files;
pub mod init;
pub mod leftovers;
pub mod logs;
pub mod measures;
pub mod processes;
pub mod programs;
pub mod reach;
pub mod run_notes;
pub mod usage;
