//! Reads dead letters (A6).

use super::page::{Page, PageRange, Scope, page, prefix};
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::json::Json;
use crate::store::{Reader, StoreError};
use crate::tables::{
    DeadLetterInputs, DeadLetterPlaces, DeadLetterQueueRecord, DeadLetterQueues, DeadLetterRecord,
    DeadLetters, read,
};

/// A dead letter; its id is that of the action run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterView {
    /// The action run that failed.
    pub action_run: ActionRunNumber,
    /// Its place in the queue: dead letters that come later have higher ones.
    pub place: u64,
    /// The stored dead letter.
    pub record: DeadLetterRecord,
}

/// How many dead letters an action has, and how many were dropped.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn dead_letter_queue(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
) -> Result<DeadLetterQueueRecord, StoreError> {
    let queue = (namespace.clone(), action.clone());
    Ok(read::<DeadLetterQueues>(reader, &queue)?.unwrap_or_default())
}

/// The dead letters of an action, newest first. The first one's place is what
/// [`DeadLetterSelector::UpTo`](crate::DeadLetterSelector) names for all.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn dead_letters(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
    range: PageRange<'_>,
) -> Result<Page<DeadLetterView>, StoreError> {
    let prefix = prefix::<DeadLetters>(&(namespace.clone(), action.clone()));
    let scope = Scope::new(&prefix, range).descending();
    page::<DeadLetters, _>(reader, &scope, |_, (_, _, place), record| {
        Ok(Some(view(place, record)))
    })
}

/// The dead letter of an action run, with its input.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn dead_letter(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
    action_run: ActionRunNumber,
) -> Result<Option<(DeadLetterView, Json)>, StoreError> {
    let key = (namespace.clone(), action.clone(), action_run);
    let Some(place) = read::<DeadLetterPlaces>(reader, &key)? else {
        return Ok(None);
    };
    let key = (key.0, key.1, place);
    let record = read::<DeadLetters>(reader, &key)?;
    let input = read::<DeadLetterInputs>(reader, &key)?;
    let dead_letter = record.zip(input);
    Ok(dead_letter.map(|(record, input)| (view(place, record), input)))
}

fn view(place: u64, record: DeadLetterRecord) -> DeadLetterView {
    DeadLetterView {
        action_run: record.action_run,
        place,
        record,
    }
}
