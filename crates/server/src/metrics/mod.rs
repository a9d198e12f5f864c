//! A node's Prometheus metrics.
//!
//! `catalogue` lists every metric. Events are counted where they happen, in [`Metrics`], with
//! atomics only: no command costs an allocation or a lock. Current values, such as the log's last
//! index or the waiting tasks, are read at scrape time: `scrape` takes them from the replica's
//! gauges, from the `state` and from the `process`. `usage` is the part that shows what a load
//! costs. All of it belongs to one node: a process with several nodes has several of each (design
//! rule 15).

mod catalogue;
mod counters;
mod folder;
mod histogram;
mod page;
mod process;
mod requests;
mod scrape;
mod state;
mod usage;
mod wasm;

pub use catalogue::{METRICS, Metric, MetricKind};
pub(crate) use counters::Metrics;
pub(crate) use page::CONTENT_TYPE;
pub(crate) use requests::Requests;
pub(crate) use scrape::scrape;
pub(crate) use usage::usage;
