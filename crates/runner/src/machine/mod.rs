//! What is done on this machine for pods: files, processes, their output, and what a killed runner left.

pub mod files;
pub mod init;
pub mod leftovers;
pub mod logs;
pub mod processes;
pub mod run_notes;
pub mod terminal;
