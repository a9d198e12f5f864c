//! A machine with a member of the cluster: its process comes and goes, its disk and clocks stay.

mod gateway;
mod machine;
mod member_worker;
mod trace;
mod worker_stream;

pub(crate) use gateway::{Gateway, Submitted};
pub(crate) use machine::{Machine, MachineContext, simulated_runtime};
pub(crate) use member_worker::registration;
pub(crate) use worker_stream::{FromLeader, Link, ToLeader, serve_worker};
