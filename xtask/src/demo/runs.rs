//! Starts runs of orders, and reads their status.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use super::order::Order;
use crate::client::{Client, list, text};

/// An acknowledged start.
pub(super) struct Started {
    pub(super) run_id: String,
    /// Whether the run existed before.
    pub(super) is_existing: bool,
}

/// Starts a run of the order. The client retries until a leader has acknowledged it.
pub(super) fn start(client: &Client<'_>, order: &Order) -> Result<Started> {
    let input = order.input();
    let call = ["workflow", "start", order.workflow, &input];
    let options = ["--idempotency-key", order.id, "--timeout", "60s"];
    let started = client.object(&[call, options].concat())?;
    Ok(Started {
        run_id: text(&started, "run_id")?.to_owned(),
        is_existing: started["existing"] == true,
    })
}

/// The run's current step; null for an ended run.
pub(super) fn current_step(client: &Client<'_>, run_id: &str) -> Result<Value> {
    let run = client.object(&["workflow", "status", run_id])?;
    let steps = list(&run, "current_steps")?;
    Ok(steps.first().cloned().unwrap_or_default())
}

/// The status of every run, by run id.
pub(super) fn statuses(client: &Client<'_>) -> Result<BTreeMap<String, String>> {
    let page = client.object(&["workflow", "runs", "--limit", "1000"])?;
    let runs = list(&page, "items")?.iter();
    runs.map(|run| {
        let status = text(run, "status")?;
        Ok((text(run, "run_id")?.to_owned(), status.to_owned()))
    })
    .collect()
}
