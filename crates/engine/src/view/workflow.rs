//! Reads workflows and their definitions.

use super::page::{Page, PageRange, Scope, page, prefix};
use crate::ids::{Namespace, WorkflowName};
use crate::store::{Reader, StoreError};
use crate::tables::{
    DefinitionNumber, DefinitionRecord, DefinitionSources, Definitions, Revisions, Versions,
    WorkflowRecord, Workflows, read,
};
use crate::workflow::VersionChoice;

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

/// The revision that `choice` selects, with its source; `None` if it does not exist.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn workflow(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &WorkflowName,
    choice: &VersionChoice,
) -> Result<Option<(WorkflowView, String)>, StoreError> {
    let Some(view) = resolve_definition(reader, namespace, name, choice)? else {
        return Ok(None);
    };
    let source = read::<DefinitionSources>(reader, &view.number)?.unwrap_or_default();
    Ok(Some((view, source)))
}

/// The revision that a start with this `choice` would use now (W5), without its source.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn resolve_definition(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &WorkflowName,
    choice: &VersionChoice,
) -> Result<Option<WorkflowView>, StoreError> {
    let key = (namespace.clone(), name.clone());
    let Some(record) = read::<Workflows>(reader, &key)? else {
        return Ok(None);
    };
    let Some(number) = number_of(reader, &key, &record, choice)? else {
        return Ok(None);
    };
    let found = view(reader, &record, number)?;
    Ok(found.filter(|found| {
        // A definition that is chosen by its number alone can be of another workflow.
        let definition = &found.definition;
        definition.namespace == key.0 && definition.definition.name == key.1
    }))
}

/// The number of the definition that [`resolve_definition`] would give. Its record, which can be large, is not read: a
/// number that the caller has chosen is returned as it is.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn definition_number(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &WorkflowName,
    choice: &VersionChoice,
) -> Result<Option<DefinitionNumber>, StoreError> {
    let key = (namespace.clone(), name.clone());
    match read::<Workflows>(reader, &key)? {
        Some(record) => number_of(reader, &key, &record, choice),
        None => Ok(None),
    }
}

/// The number of a definition of a workflow that exists.
fn number_of(
    reader: &dyn Reader,
    key: &(Namespace, WorkflowName),
    record: &WorkflowRecord,
    choice: &VersionChoice,
) -> Result<Option<DefinitionNumber>, StoreError> {
    let (namespace, name) = key.clone();
    Ok(match choice {
        VersionChoice::Latest => Some(record.latest),
        VersionChoice::Version(version) => {
            let version = read::<Versions>(reader, &(namespace, name, version.clone()))?;
            version.map(|version| version.newest)
        }
        VersionChoice::Revision(version, revision) => {
            read::<Revisions>(reader, &(namespace, name, version.clone(), *revision))?
        }
        VersionChoice::Definition(number) => Some(*number),
    })
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

/// The workflows of a namespace by name, each with its latest revision, as `convert` gives them: only one definition, which
/// can be large, is in memory at a time.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn workflows<I>(
    reader: &dyn Reader,
    namespace: &Namespace,
    range: PageRange<'_>,
    convert: impl Fn(WorkflowView) -> I,
) -> Result<Page<I>, StoreError> {
    let prefix = prefix::<Workflows>(namespace);
    page::<Workflows, _>(reader, &Scope::new(&prefix, range), |reader, _, record| {
        Ok(view(reader, &record, record.latest)?.map(&convert))
    })
}

/// The revisions of a workflow by version and number, as `convert` gives them; `None` if the workflow does not exist.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn revisions<I>(
    reader: &dyn Reader,
    key: &(Namespace, WorkflowName),
    range: PageRange<'_>,
    convert: impl Fn(WorkflowView) -> I,
) -> Result<Option<Page<I>>, StoreError> {
    let Some(record) = read::<Workflows>(reader, key)? else {
        return Ok(None);
    };
    let prefix = prefix::<Revisions>(key);
    page::<Revisions, _>(reader, &Scope::new(&prefix, range), |reader, _, number| {
        Ok(view(reader, &record, number)?.map(&convert))
    })
    .map(Some)
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
