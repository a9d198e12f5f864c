//! Reads what a retry of a run begins with (W90).

use super::payload;
use super::run::{definition_of, find_run};
use crate::ids::{Namespace, RunId, RunNumber, WorkflowName};
use crate::json::Json;
use crate::store::{Reader, StoreError};
use crate::tables::{DefinitionNumber, Exclusions, read};

/// What a run began with.
#[derive(Clone, Debug)]
pub struct RunOrigin {
    /// Its number.
    pub number: RunNumber,
    /// The workflow.
    pub workflow: WorkflowName,
    /// The revision to which it is pinned.
    pub definition: DefinitionNumber,
    /// The input, with the defaults of the definition.
    pub input: Json,
    /// The metadata.
    pub metadata: Option<Json>,
    /// What it works on, if its start gave it (W85).
    pub target: Option<String>,
    /// The patterns of its locks, if its start gave them (W85).
    pub locks: Vec<String>,
}

/// What a run began with; `None` if it does not exist.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn run_origin(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
) -> Result<Option<RunOrigin>, StoreError> {
    let Some((number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(None);
    };
    let definition = definition_of(reader, &run)?.definition;
    let metadata = run.metadata.map(|metadata| payload(reader, metadata));
    let exclusion = read::<Exclusions>(reader, &number)?;
    let target = exclusion.as_ref().filter(|own| own.is_target_given);
    let target = target.and_then(|own| own.target.clone());
    let locks = exclusion.filter(|own| own.are_locks_given);
    Ok(Some(RunOrigin {
        number,
        definition: run.definition,
        input: payload(reader, run.input)?,
        metadata: metadata.transpose()?,
        target: target.map(|target| target.text),
        locks: locks.map_or_else(Vec::new, |own| own.patterns),
        workflow: definition.name,
    }))
}
