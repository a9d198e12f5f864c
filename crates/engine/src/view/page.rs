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

/// The part of a list that a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange<'a> {
    /// The page token, [`Page::next`] of the previous page; `None` for the first page.
    pub after: Option<&'a [u8]>,
    /// The maximum number of items.
    pub limit: usize,
}

impl PageRange<'_> {
    /// The first page of a list, with at most `limit` items.
    #[must_use]
    pub fn first(limit: usize) -> Self {
        Self { after: None, limit }
    }
}

/// Which part of a table a page is taken from.
pub(super) struct Scope<'a> {
    /// The first key parts.
    prefix: &'a [u8],
    /// Which of the rows with the prefix.
    range: PageRange<'a>,
    /// Which way.
    order: Order,
}

impl<'a> Scope<'a> {
    pub(super) fn new(prefix: &'a [u8], range: PageRange<'a>) -> Self {
        Self {
            prefix,
            range,
            order: Order::Ascending,
        }
    }

    pub(super) fn descending(self) -> Self {
        Self {
            order: Order::Descending,
            ..self
        }
    }

    /// The keys that are left. A token of another scope leaves none: it is the caller's own text.
    fn keys(&self) -> KeyRange {
        let whole = KeyRange::prefix(self.prefix);
        let Some(after) = self.range.after else {
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
    let range = scope.keys();
    if range.is_empty() {
        return Ok(Page { items, next: None });
    }
    visit::<T>(reader, &range, scope.order, |key, record| {
        if items.len() == scope.range.limit || looked_at == PAGE_ROWS_LOOKED_AT_MAX {
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
