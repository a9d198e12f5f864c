//! Dead letters, as callers see them (A6).

use super::page::{Page, Scope, page, prefix};
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::json::Json;
use crate::store::{Reader, StoreError};
use crate::tables::{
    DeadLetterInputs, DeadLetterQueueRecord, DeadLetterQueues, DeadLetterRecord, DeadLetters, read,
};

/// A dead letter; its id is that of the action run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterView {
    /// The action run that failed.
    pub action_run: ActionRunNumber,
    /// What is known of it.
    pub record: DeadLetterRecord,
}

/// How many dead letters an action has, and how many were dropped.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn dead_letter_queue(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
) -> Result<DeadLetterQueueRecord, StoreError> {
    let queue = (namespace.clone(), action.clone());
    Ok(read::<DeadLetterQueues>(reader, &queue)?.unwrap_or_default())
}

/// The dead letters of an action, newest first. The first one's action run is what
/// [`LetterChoice::UpTo`](crate::LetterChoice) names for all.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn dead_letters(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
    (after, limit): (Option<&[u8]>, usize),
) -> Result<Page<DeadLetterView>, StoreError> {
    let prefix = prefix::<DeadLetters>(&(namespace.clone(), action.clone()));
    let scope = Scope::new(&prefix, after, limit).descending();
    page::<DeadLetters, _>(reader, &scope, |(_, _, action_run), record| {
        Ok(Some(DeadLetterView { action_run, record }))
    })
}

/// The dead letter of an action run, with its input.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn dead_letter(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
    action_run: ActionRunNumber,
) -> Result<Option<(DeadLetterView, Json)>, StoreError> {
    let key = (namespace.clone(), action.clone(), action_run);
    let record = read::<DeadLetters>(reader, &key)?;
    let input = read::<DeadLetterInputs>(reader, &key)?;
    let letter = record.zip(input);
    Ok(letter.map(|(record, input)| (DeadLetterView { action_run, record }, input)))
}
