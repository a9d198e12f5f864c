//! Reads the info entries of a run (W92).

use super::page::PageBudget;
use super::run::{find_run, revision_of};
use crate::ids::{ActionRunNumber, Namespace, RunId};
use crate::json::Json;
use crate::scope_path;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{Infos, encode_key, visit};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// An info entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoView {
    /// Its number among those of the run, from 1.
    pub number: u32,
    /// When it was added, in milliseconds.
    pub at_ms: u64,
    /// The task that added it; `None` if a caller did.
    pub task: Option<InfoTaskView>,
    /// A JSON object.
    pub content: Json,
}

/// A task that added an info entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoTaskView {
    /// The path of its step's scope; empty for the run itself (W53).
    pub scope: String,
    /// Its step.
    pub step: String,
    /// The visit to the step in its scope, from 1.
    pub visit: u32,
    /// Its action run.
    pub action_run: ActionRunNumber,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// Some info entries of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoPage {
    /// Oldest first.
    pub entries: Vec<InfoView>,
    /// Whether there are more behind the last one.
    pub has_more: bool,
}

/// The part of the info entries that a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoRange {
    /// The number after which it begins; 0 for the first entry.
    pub after: u32,
    /// The maximum number of entries.
    pub limit: usize,
}

/// The info entries of a run that the range has, as many as fit into a page; `None` if there is no such run.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn infos(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
    range: InfoRange,
) -> Result<Option<InfoPage>, StoreError> {
    let Some((run_number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(None);
    };
    let InfoRange { after, limit } = range;
    let mut definitions = BTreeMap::new();
    for number in run.definition_numbers() {
        definitions.insert(number, revision_of(reader, &run, number)?.definition);
    }
    let mut page = InfoPage {
        entries: Vec::new(),
        has_more: false,
    };
    let mut budget = PageBudget::new(limit);
    let range = KeyRange {
        from: encode_key::<Infos>(&(run_number, after.saturating_add(1))),
        to: encode_key::<Infos>(&(run_number, u32::MAX)),
    };
    visit::<Infos>(reader, &range, Order::Ascending, |(_, number), record| {
        page.has_more = !budget.take(record.content.as_str().len() as u64);
        if page.has_more {
            return ControlFlow::Break(());
        }
        let task = record.task.and_then(|task| {
            let definition = definitions.get(&task.definition)?;
            Some(InfoTaskView {
                scope: scope_path::to_text(definition, &task.scope.path),
                step: definition.step(task.step).name.to_string(),
                visit: task.visit,
                action_run: task.action_run,
                attempt: task.attempt,
            })
        });
        page.entries.push(InfoView {
            number,
            at_ms: record.at_ms,
            task,
            content: record.content,
        });
        ControlFlow::Continue(())
    })?;
    Ok(Some(page))
}
