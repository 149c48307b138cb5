//! Worlds on a real kube-apiserver, on the wall's clock.

mod fleet;
mod lifecycle;
