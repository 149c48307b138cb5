//! Bytes as Go writes them: samples, and random objects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod encoder;
mod properties;
mod samples;
