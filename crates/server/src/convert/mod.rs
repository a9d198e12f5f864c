//! Converts the engine's views to gRPC messages, with one file per noun.

pub(crate) mod access;
pub(crate) mod action;
pub(crate) mod action_run;
pub(crate) mod cluster;
pub(crate) mod dead_letter;
pub(crate) mod event;
pub(crate) mod finding;
pub(crate) mod group;
pub(crate) mod kv;
pub(crate) mod plan;
pub(crate) mod quarantine;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schedule;
mod scope;
pub(crate) mod stream;
pub(crate) mod trigger;
pub(crate) mod workflow;

use bytes::Bytes;
use flotilla_engine::json::Json;

/// JSON text as bytes.
pub(crate) fn json(json: &Json) -> Bytes {
    Bytes::copy_from_slice(json.as_str().as_bytes())
}
