//! Pagination of lists.
//!
//! A page ends by rows or by bytes, whatever comes first. What counts for an item are the bytes that were read for it: its
//! row, and every row that is read to describe it. So a page is bounded in what it returns and in what it holds in memory,
//! and a list needs no measure of its items. The first item of a page always fits, so each page continues the list.

use crate::limits::{PAGE_BYTES_LOOKED_AT_MAX, PAGE_ROWS_LOOKED_AT_MAX, READ_BYTES_MAX};
use crate::store::{KeyRange, Order, Reader, StoreError, Visitor};
use crate::tables::{Key, Table, encode_key, encode_prefix, visit};
use std::cell::Cell;
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

/// What a page may still take: a number of items, and [`READ_BYTES_MAX`] bytes, but at least one item.
pub(super) struct PageBudget {
    items_left: usize,
    bytes_left: u64,
    is_empty: bool,
}

impl PageBudget {
    /// The budget of a page of at most `limit` items.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            items_left: limit,
            bytes_left: READ_BYTES_MAX,
            is_empty: true,
        }
    }

    /// The budget of a page of at most `limit` items that has these bytes anyway: it may have no item at all.
    pub(super) fn beside(bytes: u64, limit: usize) -> Self {
        let mut budget = Self::new(limit);
        budget.bytes_left = budget.bytes_left.saturating_sub(bytes);
        budget.is_empty = false;
        budget
    }

    /// Whether no item fits, however small it is.
    pub(super) fn is_full(&self) -> bool {
        self.items_left == 0 || (self.bytes_left == 0 && !self.is_empty)
    }

    /// Takes an item. If it does not fit, the page ends before it: no later item fits, however small.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        if self.is_full() || (bytes > self.bytes_left && !self.is_empty) {
            self.items_left = 0;
            return false;
        }
        self.items_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.is_empty = false;
        true
    }
}

/// A reader that counts the bytes that are read through it.
pub(super) struct MeteredReader<'a> {
    reader: &'a dyn Reader,
    bytes: Cell<u64>,
}

impl<'a> MeteredReader<'a> {
    pub(super) fn new(reader: &'a dyn Reader) -> Self {
        Self {
            reader,
            bytes: Cell::new(0),
        }
    }

    /// The bytes that were read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }
}

impl Reader for MeteredReader<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.reader.get(key)?;
        self.add(value.as_ref().map_or(0, Vec::len));
        Ok(value)
    }

    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError> {
        self.reader.scan(range, order, &mut |key, value| {
            self.add(key.len() + value.len());
            visitor(key, value)
        })
    }
}

/// Takes a page of the rows that `select` gives an item for. It reads other rows through the reader that it is given.
pub(super) fn page<T: Table, I>(
    reader: &dyn Reader,
    scope: &Scope<'_>,
    mut select: impl FnMut(&dyn Reader, T::Key, T::Record) -> Result<Option<I>, StoreError>,
) -> Result<Page<I>, StoreError> {
    let mut items = Vec::new();
    let mut budget = PageBudget::new(scope.range.limit);
    let mut last_key = None;
    let (mut rows_looked_at, mut bytes_looked_at) = (0, 0);
    let mut has_more = false;
    let mut failure = None;
    let range = scope.keys();
    if range.is_empty() {
        return Ok(Page { items, next: None });
    }
    let metered = MeteredReader::new(reader);
    visit::<T>(&metered, &range, scope.order, |key, record| {
        has_more = budget.is_full()
            || rows_looked_at == PAGE_ROWS_LOOKED_AT_MAX
            || bytes_looked_at >= PAGE_BYTES_LOOKED_AT_MAX;
        if has_more {
            return ControlFlow::Break(());
        }
        let row_key = encode_key::<T>(&key);
        match select(&metered, key, record) {
            Ok(None) => {}
            Ok(Some(item)) => {
                has_more = !budget.take(metered.bytes() - bytes_looked_at);
                if has_more {
                    return ControlFlow::Break(());
                }
                items.push(item);
            }
            Err(error) => {
                failure = Some(error);
                return ControlFlow::Break(());
            }
        }
        last_key = Some(row_key);
        rows_looked_at += 1;
        bytes_looked_at = metered.bytes();
        ControlFlow::Continue(())
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
