//! The writes of one entry, in one contiguous buffer.

use std::cmp::Ordering;

/// Writes in key order: a value for a key, or `None` to delete it.
///
/// An entry writes thousands of small rows. They share one buffer, which saves two allocations per row.
#[derive(Clone, Default)]
pub struct Writes {
    bytes: Vec<u8>,
    /// Ascending by key, each key once.
    rows: Vec<Row>,
}

/// The location of a row in the buffer: the key, followed by the value.
#[derive(Clone, Copy)]
struct Row {
    key_start: usize,
    key_end: usize,
    value_end: Option<usize>,
}

/// A key and its new value; `None` deletes.
pub type Write<'a> = (&'a [u8], Option<&'a [u8]>);

impl Writes {
    /// No writes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list with the given capacity.
    pub(crate) fn with_capacity(rows: usize, bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            rows: Vec::with_capacity(rows),
        }
    }

    /// Writes the value at `key`, replacing an earlier write to it.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.put_with(key, |bytes| bytes.extend_from_slice(value));
    }

    fn put_with(&mut self, key: &[u8], append: impl FnOnce(&mut Vec<u8>)) {
        let row = self.append(key, Some(append));
        self.place(row);
    }

    /// Writes the value that `append` adds to the buffer, at a key after all others; returns its length.
    pub(crate) fn push(&mut self, key: &[u8], append: impl FnOnce(&mut Vec<u8>)) -> usize {
        let row = self.append(key, Some(append));
        self.push_row(row);
        self.bytes.len() - row.key_end
    }

    /// Deletes `key`, which is after all others.
    pub(crate) fn push_deletion(&mut self, key: &[u8]) {
        let row = self.append(key, None::<fn(&mut Vec<u8>)>);
        self.push_row(row);
    }

    /// Deletes `key`, replacing an earlier write to it.
    pub fn delete(&mut self, key: &[u8]) {
        let row = self.append(key, None::<fn(&mut Vec<u8>)>);
        self.place(row);
    }

    /// Adds a key and its value to the buffer.
    fn append(&mut self, key: &[u8], value: Option<impl FnOnce(&mut Vec<u8>)>) -> Row {
        let key_start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        let value_end = value.map(|append| {
            append(&mut self.bytes);
            self.bytes.len()
        });
        Row {
            key_start,
            key_end,
            value_end,
        }
    }

    fn push_row(&mut self, row: Row) {
        debug_assert!(self.is_after_all(row), "rows are pushed in key order");
        self.rows.push(row);
    }

    fn is_after_all(&self, row: Row) -> bool {
        let key = self.write(row).0;
        let last = self.rows.last();
        last.is_none_or(|last| self.write(*last).0.cmp(key) == Ordering::Less)
    }

    /// Inserts a row in key order, mostly at the end. The bytes of a replaced row stay in the buffer.
    fn place(&mut self, row: Row) {
        if self.is_after_all(row) {
            self.rows.push(row);
            return;
        }
        match self.find(self.write(row).0) {
            Ok(position) => self.rows[position] = row,
            Err(position) => self.rows.insert(position, row),
        }
    }

    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.rows
            .binary_search_by(|row| self.write(*row).0.cmp(key))
    }

    fn write(&self, row: Row) -> Write<'_> {
        let value = row.value_end.map(|end| &self.bytes[row.key_end..end]);
        (&self.bytes[row.key_start..row.key_end], value)
    }

    /// The total size of keys and values, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The write at `key`: `None` if there is no write, `Some(None)` if it is a deletion.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let position = self.find(key).ok()?;
        Some(self.write(self.rows[position]).1)
    }

    /// All writes, in key order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        let rows = self.rows.iter();
        Iter { writes: self, rows }
    }

    /// The keys that are written or deleted, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.iter().map(|(key, _)| key)
    }

    /// The number of written or deleted keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Writes in key order.
pub struct Iter<'a> {
    writes: &'a Writes,
    rows: std::slice::Iter<'a, Row>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Write<'a>;

    fn next(&mut self) -> Option<Write<'a>> {
        let row = self.rows.next()?;
        Some(self.writes.write(*row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let row = self.rows.next_back()?;
        Some(self.writes.write(*row))
    }
}

impl<'a> IntoIterator for &'a Writes {
    type Item = Write<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl PartialEq for Writes {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Writes {}

impl std::fmt::Debug for Writes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(K, Option<V>)> for Writes {
    fn from_iter<I: IntoIterator<Item = (K, Option<V>)>>(rows: I) -> Self {
        let mut writes = Self::new();
        for (key, value) in rows {
            match value {
                Some(value) => writes.put(key.as_ref(), value.as_ref()),
                None => writes.delete(key.as_ref()),
            }
        }
        writes
    }
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>, const N: usize> From<[(K, Option<V>); N]> for Writes {
    fn from(rows: [(K, Option<V>); N]) -> Self {
        rows.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_come_in_key_order_and_the_last_one_at_a_key_counts() {
        let mut writes = Writes::from([("b", Some("1")), ("d", None), ("a", Some(""))]);
        writes.put(b"d", b"back");
        writes.delete(b"b");
        writes.put(b"c", b"3");
        let rows: Vec<_> = writes.iter().collect();
        assert_eq!(
            rows,
            [
                (b"a".as_slice(), Some(b"".as_slice())),
                (b"b", None),
                (b"c", Some(b"3")),
                (b"d", Some(b"back"))
            ]
        );
        assert_eq!(writes.len(), 4);
        assert_eq!(writes.get(b"b"), Some(None));
        assert_eq!(writes.get(b"c"), Some(Some(b"3".as_slice())));
        assert_eq!(writes.get(b"e"), None);
    }

    #[test]
    fn writes_are_equal_however_they_came_about() {
        let at_once = Writes::from([("a", Some("1")), ("b", None)]);
        let mut bit_by_bit = Writes::from([("b", Some("2")), ("a", Some("1"))]);
        assert_ne!(at_once, bit_by_bit);
        bit_by_bit.delete(b"b");
        assert_eq!(at_once, bit_by_bit);
    }
}
