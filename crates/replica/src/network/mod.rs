//! What members say to each other, and how.
//!
//! [`calls::PeerCalls`] is one member as another sees it: the client of a transport implements it by
//! sending, [`handler`] by answering. So a transport is what lies between two implementations of one
//! trait, and a simulation can put anything there.

pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod convert;
pub(crate) mod forward;
pub(crate) mod handler;
pub(crate) mod links;
pub mod protocol;
pub(crate) mod server;
pub(crate) mod snapshots;
pub(crate) mod sockets;
pub(crate) mod transport;
