//! Reads actions and action runs.

use super::page::{MeteredReader, Page, PageBudget, PageRange, Scope, page, prefix};
use super::payload;
use super::run_definitions::KnownDefinitions;
use crate::ids::{ActionName, ActionRunNumber, Namespace, RunId, StepName};
use crate::json::Json;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ActionRecord, ActionRunBlock, ActionRunOwner, ActionRunRecord, ActionRuns, ActionRunsByAction,
    ActionType, Actions, Activations, ModuleRecord, Modules, Runs, encode_key, encode_prefix, read,
    visit,
};
use std::ops::ControlFlow;

/// An action with its name.
#[derive(Clone, Debug)]
pub struct ActionView {
    /// Its name.
    pub name: ActionName,
    /// Its settings.
    pub record: ActionRecord,
    /// The size of its module in bytes, for a WASM action.
    pub module_bytes: Option<u64>,
}

/// An action run with its payloads.
#[derive(Clone, Debug)]
pub struct ActionRunView {
    /// What lists show.
    pub row: ActionRunRow,
    /// Its input.
    pub input: Json,
    /// Its output.
    pub output: Option<Json>,
}

/// An action run's row in a list.
#[derive(Clone, Debug)]
pub struct ActionRunRow {
    /// Its number.
    pub number: ActionRunNumber,
    /// Its state.
    pub record: ActionRunRecord,
    /// The workflow run and step that it belongs to.
    pub step: Option<(RunId, Option<StepName>)>,
}

/// The action `name`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn action(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &ActionName,
) -> Result<Option<ActionView>, StoreError> {
    let Some(record) = action_record(reader, namespace, name)? else {
        return Ok(None);
    };
    let module_bytes = module(reader, namespace, name)?.map(|module| module.bytes.len() as u64);
    Ok(Some(ActionView {
        name: name.clone(),
        record,
        module_bytes,
    }))
}

/// The settings of the action `name`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn action_record(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &ActionName,
) -> Result<Option<ActionRecord>, StoreError> {
    read::<Actions>(reader, &(namespace.clone(), name.clone()))
}

/// The WASM actions of all namespaces, by namespace and name.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn wasm_actions(reader: &dyn Reader) -> Result<Vec<(Namespace, ActionName)>, StoreError> {
    let mut found = Vec::new();
    let range = KeyRange::prefix(&encode_prefix::<Actions>(&()));
    visit::<Actions>(reader, &range, Order::Ascending, |key, record| {
        if matches!(record.kind, ActionType::Wasm { .. }) {
            found.push(key);
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The actions of a namespace by name.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn actions(
    reader: &dyn Reader,
    namespace: &Namespace,
    range: PageRange<'_>,
) -> Result<Page<ActionView>, StoreError> {
    let prefix = prefix::<Actions>(namespace);
    page::<Actions, _>(
        reader,
        &Scope::new(&prefix, range),
        |_, (_, name), record| {
            Ok(Some(ActionView {
                name,
                record,
                module_bytes: None,
            }))
        },
    )
}

/// The module of a WASM action.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn module(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &ActionName,
) -> Result<Option<ModuleRecord>, StoreError> {
    read::<Modules>(reader, &(namespace.clone(), name.clone()))
}

/// The action run `number` of `namespace`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn action_run(
    reader: &dyn Reader,
    namespace: &Namespace,
    number: ActionRunNumber,
) -> Result<Option<ActionRunView>, StoreError> {
    let Some(row) = action_run_row(reader, namespace, number)? else {
        return Ok(None);
    };
    let input = payload(reader, row.record.input)?;
    let output = match row.record.output {
        Some(output) => Some(payload(reader, output)?),
        None => None,
    };
    Ok(Some(ActionRunView { row, input, output }))
}

/// The action run `number` of `namespace`, without its payloads.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn action_run_row(
    reader: &dyn Reader,
    namespace: &Namespace,
    number: ActionRunNumber,
) -> Result<Option<ActionRunRow>, StoreError> {
    find_row(reader, namespace, number, &mut KnownDefinitions::default())
}

fn find_row(
    reader: &dyn Reader,
    namespace: &Namespace,
    number: ActionRunNumber,
    definitions: &mut KnownDefinitions,
) -> Result<Option<ActionRunRow>, StoreError> {
    let record = read::<ActionRuns>(reader, &number)?;
    let Some(record) = record.filter(|record| record.namespace == *namespace) else {
        return Ok(None);
    };
    let step = owner_of(reader, &record, definitions)?;
    Ok(Some(ActionRunRow {
        number,
        record,
        step,
    }))
}

/// The runs of an action, newest first, without their payloads.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn action_runs(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &ActionName,
    range: PageRange<'_>,
) -> Result<Page<ActionRunRow>, StoreError> {
    let prefix = prefix::<ActionRunsByAction>(&(namespace.clone(), name.clone()));
    let mut blocks = KeyRange::prefix(&prefix);
    let mut before = None;
    if let Some(after) = range.after {
        let Some(number) = named_by_token(&prefix, after) else {
            return Ok(Page {
                items: Vec::new(),
                next: None,
            });
        };
        let block = ActionRunBlock::of(number);
        blocks.to = encode_key::<ActionRunsByAction>(&(namespace.clone(), name.clone(), block));
        blocks.to.push(0);
        before = Some(number);
    }
    let mut numbers = Vec::new();
    visit::<ActionRunsByAction>(reader, &blocks, Order::Descending, |(.., block), set| {
        let members = set.of_block(block).rev();
        numbers.extend(members.filter(|number| before.is_none_or(|before| *number < before)));
        if numbers.len() > range.limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    let mut has_more = numbers.len() > range.limit;
    numbers.truncate(range.limit);
    let metered = MeteredReader::new(reader);
    let mut definitions = KnownDefinitions::default();
    let mut budget = PageBudget::new(range.limit);
    let (mut items, mut last) = (Vec::new(), None);
    for number in numbers {
        let bytes_before = metered.bytes();
        let row = find_row(&metered, namespace, number, &mut definitions)?;
        if row.is_some() && !budget.take(metered.bytes() - bytes_before) {
            has_more = true;
            break;
        }
        items.extend(row);
        last = Some(number);
    }
    let last = last.filter(|_| has_more);
    Ok(Page {
        items,
        next: last.map(|last| page_token(&prefix, last)),
    })
}

/// The token of the page after the action run `last`: the prefix of its index, and its number.
fn page_token(prefix: &[u8], last: ActionRunNumber) -> Vec<u8> {
    [prefix, &last.0.to_be_bytes()].concat()
}

/// The last action run of the previous page; `None` if the token belongs to another list.
fn named_by_token(prefix: &[u8], token: &[u8]) -> Option<ActionRunNumber> {
    let number = token.strip_prefix(prefix)?.try_into().ok()?;
    Some(ActionRunNumber(u64::from_be_bytes(number)))
}

/// The run id and step name that an action run belongs to.
pub(super) fn owner_of(
    reader: &dyn Reader,
    record: &ActionRunRecord,
    definitions: &mut KnownDefinitions,
) -> Result<Option<(RunId, Option<StepName>)>, StoreError> {
    let ActionRunOwner::Step { run, activation } = record.owner else {
        return Ok(None);
    };
    let active = read::<Activations>(reader, &(run, activation))?;
    let Some(run) = read::<Runs>(reader, &run)? else {
        return Ok(None);
    };
    let name = match active {
        Some(active) => {
            let definition = &definitions.of(reader, &run)?.definition;
            Some(definition.step(active.step).name.clone())
        }
        None => None,
    };
    Ok(Some((run.id, name)))
}
