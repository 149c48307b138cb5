//! The simulator from outside: its answers, its socket, its edge.

mod edge;
mod simulator;
mod simulator_socket;
