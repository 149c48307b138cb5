//! The clients and the responder on real `named` processes, and the clients on servers that mean ill.

mod catalog;
mod facts;
mod hostile;
mod rndc;
mod seeding;
mod signatures;
mod support;
mod transfer;
mod update;
