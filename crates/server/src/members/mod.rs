//! The calls that members make for workers, at each other's peer ports: long polls that a node forwards to the leader, and
//! the streams of embedded workers (X15).
//!
//! Only members reach a peer port, so the caller of such a call needs no credential: it states on whose behalf it calls.
//! A client cannot state that.

mod forwarded_actor;
mod leaders;

pub(crate) use forwarded_actor::ForwardedActor;
pub(crate) use leaders::LeaderClients;
