//! One node in this process, driven over gRPC as any client would.

mod actions;
mod members;
mod node;
mod runs;
mod schemas;
mod serving;
mod watching;
mod workflows;
