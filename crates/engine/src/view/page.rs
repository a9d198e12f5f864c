//! Pagination of lists.

use crate::limits::PAGE_ROWS_LOOKED_AT_MAX;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{Key, Table, encode_key, encode_prefix, visit};
use std::ops::ControlFlow;

/// A piece of a list, and where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items in order.
    pub items: Vec<T>,
    /// Names the next piece: the key that it continues behind. `None` on the last one.
    pub next: Option<Vec<u8>>,
}

/// Which part of a table a page is taken from.
pub(super) struct Scope<'a> {
    /// The first key parts.
    pub(super) prefix: &'a [u8],
    /// The page token: the last key that the page before looked at.
    pub(super) after: Option<&'a [u8]>,
    /// Which way.
    pub(super) order: Order,
    /// Items at most.
    pub(super) limit: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(prefix: &'a [u8], after: Option<&'a [u8]>, limit: usize) -> Self {
        Self {
            prefix,
            after,
            order: Order::Ascending,
            limit,
        }
    }

    pub(super) fn descending(self) -> Self {
        Self {
            order: Order::Descending,
            ..self
        }
    }

    /// The keys that are left. A token of another scope leaves none: it is the caller's own text.
    fn range(&self) -> KeyRange {
        let whole = KeyRange::prefix(self.prefix);
        let Some(after) = self.after else {
            return whole;
        };
        match self.order {
            Order::Ascending => {
                let mut from = after.to_vec();
                from.push(0);
                KeyRange {
                    from: from.max(whole.from),
                    to: whole.to,
                }
            }
            Order::Descending => KeyRange {
                from: whole.from,
                to: after.to_vec().min(whole.to),
            },
        }
    }
}

/// Takes a page of the rows that `select` gives an item for.
pub(super) fn page<T: Table, I>(
    reader: &dyn Reader,
    scope: &Scope<'_>,
    mut select: impl FnMut(T::Key, T::Record) -> Result<Option<I>, StoreError>,
) -> Result<Page<I>, StoreError> {
    let mut items = Vec::new();
    let mut last_key = None;
    let mut looked_at = 0;
    let mut has_more = false;
    let mut failure = None;
    let range = scope.range();
    if range.is_empty() {
        return Ok(Page { items, next: None });
    }
    visit::<T>(reader, &range, scope.order, |key, record| {
        if items.len() == scope.limit || looked_at == PAGE_ROWS_LOOKED_AT_MAX {
            has_more = true;
            return ControlFlow::Break(());
        }
        looked_at += 1;
        last_key = Some(encode_key::<T>(&key));
        match select(key, record) {
            Ok(item) => {
                items.extend(item);
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    match failure {
        Some(error) => Err(error),
        None => Ok(Page {
            items,
            next: last_key.filter(|_| has_more),
        }),
    }
}

/// The prefix of the rows of `T` whose keys begin with `parts`.
pub(super) fn prefix<T: Table>(parts: &impl Key) -> Vec<u8> {
    encode_prefix::<T>(parts)
}
