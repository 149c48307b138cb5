//! Pods in, processes of this machine out: what a kubelet does for pods, for those of the embedded API.
//!
//! ```text
//! pod ─► references ─► environment, volumes ─► lifecycle: what is known + now → steps ─► processes and files
//!                                                 ▲                                        │
//!                                                 └── record: what became of them ◄────────┘─► status
//! ```
//!
//! [`pod`] is pure: values in, values out; no clock, no process, no file. [`machine`] does what was decided, [`network`] has
//! addresses, Services and names, and [`node`] sees each pod through. Where a kubelet's behaviour is odd, a comment names the
//! file of Kubernetes that has it (below `pkg/kubelet` where it begins with nothing else).

pub mod echo;
pub mod machine;
pub mod network;
pub mod node;
pub mod pod;
