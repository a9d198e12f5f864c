//! Reads workflows and their definitions.

use super::page::{Page, PageRange, Scope, page, prefix};
use crate::ids::{Namespace, WorkflowName, WorkflowVersion};
use crate::store::{Reader, StoreError};
use crate::tables::{
    DefinitionNumber, DefinitionRecord, DefinitionSources, Definitions, Versions, WorkflowRecord,
    Workflows, read,
};

/// One revision, and the state of its workflow.
#[derive(Clone, Debug)]
pub struct WorkflowView {
    /// The revision's number.
    pub number: DefinitionNumber,
    /// The revision.
    pub definition: DefinitionRecord,
    /// Whether starts use it when they name no version.
    pub is_latest: bool,
    /// Whether new starts are allowed.
    pub is_enabled: bool,
}

/// The newest revision of `version`, or the latest of all, with its source.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn workflow(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &WorkflowName,
    version: Option<&WorkflowVersion>,
) -> Result<Option<(WorkflowView, String)>, StoreError> {
    let Some(view) = resolve_definition(reader, namespace, name, version)? else {
        return Ok(None);
    };
    let source = read::<DefinitionSources>(reader, &view.number)?.unwrap_or_default();
    Ok(Some((view, source)))
}

/// The newest revision of `version`, or the latest of all: what a start would use now (W5).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn resolve_definition(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &WorkflowName,
    version: Option<&WorkflowVersion>,
) -> Result<Option<WorkflowView>, StoreError> {
    let key = (namespace.clone(), name.clone());
    let Some(record) = read::<Workflows>(reader, &key)? else {
        return Ok(None);
    };
    match definition_number(reader, namespace, name, version)? {
        Some(number) => view(reader, &record, number),
        None => Ok(None),
    }
}

/// The number of the definition that [`resolve_definition`] would give. Its record, which can be large, is not read.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn definition_number(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &WorkflowName,
    version: Option<&WorkflowVersion>,
) -> Result<Option<DefinitionNumber>, StoreError> {
    let (namespace, name) = (namespace.clone(), name.clone());
    let Some(version) = version else {
        let record = read::<Workflows>(reader, &(namespace, name))?;
        return Ok(record.map(|record| record.latest));
    };
    let version = read::<Versions>(reader, &(namespace, name, version.clone()))?;
    Ok(version.map(|version| version.newest))
}

/// The definition `number`; `None` once it was deleted.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn definition(
    reader: &dyn Reader,
    number: DefinitionNumber,
) -> Result<Option<DefinitionRecord>, StoreError> {
    read::<Definitions>(reader, &number)
}

/// The workflows of a namespace by name, each with its latest revision.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn workflows(
    reader: &dyn Reader,
    namespace: &Namespace,
    range: PageRange<'_>,
) -> Result<Page<WorkflowView>, StoreError> {
    let prefix = prefix::<Workflows>(namespace);
    page::<Workflows, _>(reader, &Scope::new(&prefix, range), |_, record| {
        view(reader, &record, record.latest)
    })
}

fn view(
    reader: &dyn Reader,
    record: &WorkflowRecord,
    number: DefinitionNumber,
) -> Result<Option<WorkflowView>, StoreError> {
    let definition = read::<Definitions>(reader, &number)?;
    Ok(definition.map(|definition| WorkflowView {
        number,
        definition,
        is_latest: record.latest == number,
        is_enabled: record.is_enabled,
    }))
}
