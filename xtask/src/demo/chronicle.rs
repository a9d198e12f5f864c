//! A run's history as a table, with the leader of each event.

use anyhow::Result;
use serde_json::Value;

use crate::client::{number, text};
use crate::cluster::NodeId;
use crate::table::Table;

/// The history of one run.
pub(super) struct Chronicle {
    events: Vec<Event>,
}

struct Event {
    at_ms: u64,
    leader: NodeId,
    name: String,
    step: String,
    detail: String,
}

impl Chronicle {
    /// Reads the output of `flo workflow history`.
    ///
    /// # Errors
    /// If an event does not have the published shape.
    pub(super) fn read(events: &[Value]) -> Result<Self> {
        let events = events.iter().map(Event::read);
        Ok(Self {
            events: events.collect::<Result<_>>()?,
        })
    }

    /// Each leader once, in order of their first event.
    pub(super) fn leaders(&self) -> Vec<NodeId> {
        let mut leaders = Vec::new();
        for event in &self.events {
            if !leaders.contains(&event.leader) {
                leaders.push(event.leader);
            }
        }
        leaders
    }

    /// The number of events.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// The table, with a remark at each change of leader.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(&["MS", "LEADER", "EVENT", "STEP", ""]);
        let began_at_ms = self.events.first().map_or(0, |event| event.at_ms);
        let mut leader = self.events.first().map(|event| event.leader);
        for event in &self.events {
            if let Some(before) = leader.replace(event.leader)
                && before != event.leader
            {
                table.remark(format!(
                    "node {before} is dead, node {} leads",
                    event.leader
                ));
            }
            let Event { at_ms, leader, .. } = event;
            table.add([
                at_ms.saturating_sub(began_at_ms).to_string(),
                format!("node {leader}"),
                event.name.clone(),
                event.step.clone(),
                event.detail.clone(),
            ]);
        }
        table
    }
}

impl Event {
    fn read(object: &Value) -> Result<Self> {
        let step = text(object, "step")?;
        Ok(Self {
            at_ms: number(object, "at_ms")?,
            leader: number(object, "node_id")?,
            name: text(object, "type")?.to_owned(),
            step: step.to_owned(),
            detail: detail(object, step)?,
        })
    }
}

/// The event's detail beyond its name and step.
fn detail(object: &Value, step: &str) -> Result<String> {
    let detail = text(object, "detail")?;
    if let Some(outcome) = object["outcome"].as_str() {
        return Ok(outcome.to_owned());
    }
    let detail = if detail == step { "" } else { detail };
    Ok(match object["attempt"].as_u64() {
        Some(attempt) if object["due_at_ms"].is_u64() => {
            format!("{detail}; attempt {attempt} will follow")
        }
        Some(attempt) if attempt > 1 => format!("{detail} (attempt {attempt})"),
        _ => detail.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chronicle() -> Chronicle {
        let event = |at_ms: u64, node_id: u64, name: &str, step: &str, detail: &str| {
            let mut event = json!({"at_ms": at_ms, "node_id": node_id});
            event["type"] = name.into();
            event["step"] = step.into();
            event["detail"] = detail.into();
            event
        };
        let mut left = event(1_950, 3, "step_completed", "charge", "charge");
        left["outcome"] = "success".into();
        let mut tried = event(1_300, 2, "action_started", "charge", "till");
        tried["attempt"] = 2.into();
        let mut failed = event(1_200, 2, "action_retry_scheduled", "charge", "no answer");
        failed["attempt"] = 2.into();
        failed["due_at_ms"] = 1_300.into();
        let events = [
            event(1_000, 2, "workflow_started", "", ""),
            failed,
            tried,
            left,
            event(1_950, 3, "workflow_completed", "", "flo.Completed"),
        ];
        Chronicle::read(&events).unwrap()
    }

    #[test]
    fn each_event_is_a_row_and_a_change_of_leader_a_remark() {
        assert_eq!(
            chronicle().table().render(),
            [
                " MS  LEADER  EVENT                   STEP",
                "  0  node 2  workflow_started",
                "200  node 2  action_retry_scheduled  charge  no answer; attempt 2 will follow",
                "300  node 2  action_started          charge  till (attempt 2)",
                "----------------------- node 2 is dead, node 3 leads ------------------------",
                "950  node 3  step_completed          charge  success",
                "950  node 3  workflow_completed              flo.Completed",
            ]
        );
    }

    #[test]
    fn leaders_are_listed_in_order() {
        assert_eq!(chronicle().leaders(), [2, 3]);
    }

    #[test]
    fn an_event_without_a_leader_is_refused() {
        let event = json!({"at_ms": 1, "type": "step_started", "step": "a", "detail": "a"});
        let error = Chronicle::read(&[event]).err().unwrap().to_string();
        assert!(error.contains("`node_id`"), "{error}");
    }
}
