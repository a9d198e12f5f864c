//! What a node tells about itself to Prometheus.
//!
//! `catalogue` lists every metric. What happens is counted where it happens, in [`Metrics`], with
//! atomics alone: nothing is allocated or locked for a command. What merely is, such as the log's last
//! index or the tasks that wait, is looked up when somebody asks: `scrape` does so, from the replica's
//! gauges, from the `state` and from the `process`. `usage` is the part of it that says what a load costs. All of it belongs to one node: a process that has
//! several has several of each (design rule 15).

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
