//! The connections that others open to a node: how many there may be, and how they are accepted.
//!
//! [`admission`] counts the connections of a port, in total and by address, and chooses which of those whose callers have not
//! been admitted is closed for a new one. [`acceptor`] accepts connections within these bounds. [`sockets`] does so for gRPC,
//! and also connects to other nodes. [`serve_http`] serves one connection over HTTP, and [`stalling`] ends those whose clients do
//! not read. [`suspensions`] notices that the process was suspended: what its connections have received is then too old.

mod acceptor;
mod admission;
mod io_deadline;
mod serve_http;
mod sockets;
mod stalling;
mod suspensions;

pub(crate) use acceptor::next;
pub(crate) use admission::{Admission, Admitted, Bounds, Busy, NodeConnections, Usage};
pub(crate) use serve_http::{Http2Bounds, serve_http};
pub(crate) use sockets::NodeSockets;
