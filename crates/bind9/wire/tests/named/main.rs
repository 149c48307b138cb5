//! The clients and the responder on real `named` processes, and the clients on servers that mean ill.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod catalog;
mod facts;
mod hostile;
mod rndc;
mod seeding;
mod signatures;
mod support;
mod transfer;
mod update;
