//! The connections that others open to a node: how many there may be, and how they are accepted.
//!
//! [`admission`] counts the connections of a port, in total and by address, and chooses which of those without a finished
//! TLS handshake is stopped for a new one. [`acceptor`] accepts connections within these bounds. [`sockets`] does so for gRPC,
//! and also connects to other nodes.

mod acceptor;
mod admission;
mod sockets;

pub(crate) use acceptor::next;
pub(crate) use admission::{Admission, Bounds};
pub(crate) use sockets::NodeSockets;
