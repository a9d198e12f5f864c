//! One node in this process, driven over gRPC as any client would.

#![allow(
    clippy::unwrap_used,
    reason = "clippy knows helpers of tests only inside a cfg(test) module"
)]

mod actions;
mod dead_letters;
mod embedded;
mod groups;
mod keys;
mod members;
mod node;
mod observing;
mod patience;
mod reports;
mod retention;
mod runs;
mod schedules;
mod schemas;
mod serving;
mod streams;
mod triggers;
mod watching;
mod web;
mod workers;
mod workflows;
