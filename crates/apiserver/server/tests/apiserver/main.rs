//! The API server as clients see it: in process, over TLS, and by bytes that no client should send.

mod access;
mod bad_input;
mod classes;
mod events;
mod garbage;
mod http2;
mod kube_runtime;
mod limits;
mod objects;
mod pod_logs;
mod pod_streams;
mod protobuf;
mod rollouts;
mod services;
mod snapshot;
mod support;
mod watch;
