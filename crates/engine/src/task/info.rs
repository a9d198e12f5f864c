//! Progress: a task adds info entries to its run (W92).

use super::lease::find_open;
use super::token::TaskToken;
use crate::ids::Namespace;
use crate::json::Json;
use crate::rejection::Rejection;
use crate::reply::InfoAdded;
use crate::run::add_info;
use crate::tables::{ActionRunOwner, EventKind, InfoTask};
use crate::turn::{Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use serde::{Deserialize, Serialize};

/// Adds an info entry to the run of a task that a worker holds or has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddTaskInfo {
    /// The attempt's token.
    pub token: TaskToken,
    /// A JSON object of at most [`INFO_BYTES_MAX`](crate::limits::INFO_BYTES_MAX) bytes.
    pub content: Json,
}

impl AddTaskInfo {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<InfoAdded> {
        let task = find_open(turn, Some(namespace), self.token.action_run)?;
        let proof = task.record.report_proof();
        let attempt = task.record.attempt;
        if !proof.is_some_and(|proof| self.token.is_of(attempt, proof)) {
            return Err(Rejection::LeaseLost(task.number).into());
        }
        let ActionRunOwner::Step { run, activation } = task.record.owner else {
            return Err(Rejection::from(Undeliverable::TaskWithoutRun(task.number)).into());
        };
        let mut run = turn.load_run(run)?;
        let active = run.activation(turn, activation)?.cloned();
        // A step that was abandoned has left its scope.
        let task = active.map(|active| InfoTask {
            definition: run.record.definition,
            scope: run.shown_scope(&active),
            step: active.step,
            visit: active.visit,
            action_run: task.number,
            attempt,
        });
        let number = add_info(turn, &mut run, task, &self.content)?;
        run.note_of(turn, activation, EventKind::Info { number })?;
        turn.put_back_run(run);
        Ok(InfoAdded { number })
    }
}
