//! Finds the search attributes of a query that no run has.

use super::condition::{Condition, RunQuery};
use crate::ids::{AttributeName, Namespace};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{RunsByAttribute, encode_prefix, visit};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The search attributes in the conditions that no run of the namespace has, by name.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn unknown_attributes(
    reader: &dyn Reader,
    namespace: &Namespace,
    query: &RunQuery,
) -> Result<Vec<AttributeName>, StoreError> {
    let mut unknown = BTreeSet::new();
    for condition in &query.conditions {
        if let Condition::Attribute { name, .. } = condition
            && !is_known(reader, namespace, name)?
        {
            unknown.insert(name.clone());
        }
    }
    Ok(unknown.into_iter().collect())
}

fn is_known(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &AttributeName,
) -> Result<bool, StoreError> {
    let rows = encode_prefix::<RunsByAttribute>(&(namespace.clone(), name.clone()));
    let mut is_known = false;
    visit::<RunsByAttribute>(
        reader,
        &KeyRange::prefix(&rows),
        Order::Ascending,
        |_, ()| {
            is_known = true;
            ControlFlow::Break(())
        },
    )?;
    Ok(is_known)
}
