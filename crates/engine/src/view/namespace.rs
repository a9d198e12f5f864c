//! Reads namespaces (A41).

use super::page::{Page, PageRange, Scope, page, prefix};
use crate::ids::Namespace;
use crate::store::{Reader, StoreError};
use crate::tables::{NamespaceRecord, Namespaces, read};

/// A namespace; `None` when nothing was ever written to it.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn namespace(
    reader: &dyn Reader,
    name: &Namespace,
) -> Result<Option<NamespaceRecord>, StoreError> {
    read::<Namespaces>(reader, name)
}

/// The namespaces by name.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn namespaces(
    reader: &dyn Reader,
    range: PageRange<'_>,
) -> Result<Page<(Namespace, NamespaceRecord)>, StoreError> {
    let prefix = prefix::<Namespaces>(&());
    page::<Namespaces, _>(reader, &Scope::new(&prefix, range), |_, name, record| {
        Ok(Some((name, record)))
    })
}
