//! What differs between families of kinds, one family a file.

pub(crate) mod autoscaling;
pub(crate) mod batch;
pub mod class;
pub(crate) mod config;
pub(crate) mod endpoints;
pub(crate) mod event;
pub(crate) mod job;
pub(crate) mod lease;
pub(crate) mod limits;
pub(crate) mod namespace;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod persistent;
pub(crate) mod policy;
pub(crate) mod rbac;
pub(crate) mod scheduling;
pub mod service;
pub(crate) mod service_address;
pub(crate) mod storage;
pub(crate) mod webhook;
pub(crate) mod workload;
