//! Drives the binary `flo` from outside: real processes on loopback ports, in temporary folders.
//!
//! The tests themselves are in `tests/black_box`. They know no more of Flotilla than a user does: the
//! command line and, where a test needs many concurrent calls, the public gRPC protocol.
//!
//! A separate process does not notify a test, so waiting means polling
//! ([`wait_until`]), within a generous timeout and never for a fixed time. Every started process
//! is ended by its id when its owner is dropped; when a test panics, the logs of its processes
//! are printed and its folder is kept.

mod answer;
mod binary;
mod certificates;
mod cluster;
mod command_worker;
mod dev_node;
mod flo;
mod host;
mod http;
mod modules;
mod node;
mod ports;
mod process;
mod process_slots;
mod scratch;
mod shell;
mod status;
mod wait;

pub use answer::{Answer, Refusal};
pub use certificates::Certificates;
pub use cluster::Cluster;
pub use command_worker::{CommandWorker, RecordCommand};
pub use dev_node::DevNode;
pub use flo::Flo;
pub use host::Host;
pub use http::{HttpAnswer, get, post};
pub use modules::poisonous_module;
pub use node::Node;
pub use process::Process;
pub use scratch::Scratch;
pub use shell::Shell;
pub use status::{ClusterStatus, Digest, NodeStatus};
pub use wait::{TIMEOUT, wait_until};
