//! What drives the binary `flo` from outside: real processes on loopback ports, in temporary folders.
//!
//! The tests themselves are in `tests/black_box`. They know no more of Flotilla than a user does: the
//! command line and, where a test needs many calls at once, the public gRPC protocol.
//!
//! A process of its own tells nothing unless it is asked, so waiting means asking again
//! ([`wait_until`]), within a generous bound and never for a fixed time. Everything that was started
//! is ended when its owner is dropped, by process id; when a test panics, the logs of its processes
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
mod node;
mod patience;
mod ports;
mod process;
mod room;
mod scratch;
mod shell;
mod status;

pub use answer::{Answer, Refusal};
pub use certificates::Certificates;
pub use cluster::Cluster;
pub use command_worker::CommandWorker;
pub use dev_node::DevNode;
pub use flo::Flo;
pub use host::Host;
pub use http::{HttpAnswer, post};
pub use node::Node;
pub use patience::{PATIENCE, wait_until};
pub use process::Process;
pub use scratch::Scratch;
pub use shell::Shell;
pub use status::{ClusterStatus, Digest, NodeStatus};
