//! Tests of nodes in this process, driven over gRPC as by any client.

#![allow(
    clippy::unwrap_used,
    reason = "clippy knows helpers of tests only inside a cfg(test) module"
)]

mod access;
mod actions;
mod dead_letters;
mod drain;
mod embedded;
mod groups;
mod http_api;
mod inspect;
mod keys;
mod large_reads;
mod matrix;
mod member_secret;
mod members;
mod node;
mod observing;
mod payloads;
mod quotas;
mod reports;
mod retention;
mod runs;
mod schedules;
mod schemas;
mod serving;
mod standstill;
mod strangers;
mod streams;
mod triggers;
mod wait;
mod watching;
mod web;
mod workers;
mod workflows;
