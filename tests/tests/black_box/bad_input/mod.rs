//! Bad input: each gets a clear error, and nothing is lost.

mod data_directory;
mod definitions;
mod lost_node;
mod modules;
mod no_quorum;
mod overload;
mod parked;
mod payloads;
mod reports;
mod vanished_worker;
