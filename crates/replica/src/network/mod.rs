//! The network between members.
//!
//! [`calls::PeerCalls`] is the interface of one member to another: the client of a transport
//! implements it by sending, [`handler`] by serving. So a transport connects two implementations of
//! one trait, and a simulation can put anything between them.

pub(crate) mod caller;
pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod convert;
pub(crate) mod forward;
pub(crate) mod handler;
pub(crate) mod head;
pub(crate) mod host_services;
pub(crate) mod installs;
pub(crate) mod links;
pub(crate) mod local;
pub(crate) mod member_guard;
pub(crate) mod member_secret;
mod pipeline;
pub mod protocol;
pub(crate) mod refusal_log;
pub(crate) mod server;
pub(crate) mod snapshots;
pub(crate) mod sockets;
pub(crate) mod transport;
