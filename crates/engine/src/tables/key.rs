//! Order-preserving encoding of keys.

use crate::access::BindingSubject;
use crate::command_scope::CommandScope;
use crate::definition::{StepIndex, TriggerIndex};
use crate::ids::{
    ActionName, ActionRunNumber, AttributeName, ConcurrencyKeyNumber, ConcurrencyName,
    ConsumerName, EventName, ExecutorName, GroupName, GroupNumber, IdempotencyKey, KvKey,
    LockNumber, Namespace, PlanName, PlanNumber, RunId, RunNumber, ScopeNumber, SignalId,
    SignalType, StreamName, StreamNumber, TokenId, TreeName, WorkerId, WorkerNumber, WorkflowName,
    WorkflowVersion,
};
use crate::quota::{QuotaDimension, QuotaScope};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::io::Write;

/// The inline capacity of a key. Most keys fit and need no allocation. In bytes.
pub(crate) const KEY_BYTES_COMMON: usize = 40;

/// The bytes of a whole key, its table's number first.
pub(crate) type KeyBytes = SmallVec<[u8; KEY_BYTES_COMMON]>;

/// A full key that is compared often. Mostly its head decides, which is one integer comparison.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    /// The first bytes, padded with zeros, in the order of the bytes.
    head: u128,
    bytes: KeyBytes,
}

impl RowKey {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            head: leading(bytes),
            bytes: KeyBytes::from_slice(bytes),
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The first bytes after the table's number, padded with zeros, in the order of the bytes: the whole key of a table
    /// whose keys are two 64-bit numbers.
    pub(crate) fn in_table(&self) -> u128 {
        let last = self.bytes.get(size_of::<u128>()).copied();
        self.head << u8::BITS | u128::from(last.unwrap_or_default())
    }

    /// The number of the key's table.
    pub(crate) fn table(&self) -> usize {
        usize::from(self.head.to_be_bytes()[0])
    }

    pub(crate) fn bytes(&self) -> &KeyBytes {
        &self.bytes
    }
}

impl Hash for RowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Most keys are not longer than their head.
        state.write_u128(self.head);
        if let Some(rest) = self.bytes.get(size_of::<u128>()..) {
            state.write(rest);
        }
    }
}

/// The first bytes, padded with zeros, as a number: numbers have the order of the bytes.
fn leading(bytes: &[u8]) -> u128 {
    match bytes.first_chunk() {
        Some(leading) => u128::from_be_bytes(*leading),
        None => {
            let mut leading = [0; size_of::<u128>()];
            leading[..bytes.len()].copy_from_slice(bytes);
            u128::from_be_bytes(leading)
        }
    }
}

impl Clone for RowKey {
    fn clone(&self) -> Self {
        Self {
            head: self.head,
            // Not `clone`, which copies byte by byte.
            bytes: KeyBytes::from_slice(&self.bytes),
        }
    }
}

/// A key or a part of one. The encoding preserves order, and no encoded key is a prefix of another key of the same
/// table.
pub trait Key: Sized + Clone {
    /// Appends the ordered bytes.
    fn encode(&self, out: &mut Vec<u8>);
    /// Decodes the key from the front of `bytes`; `None` if they are not such a key.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(front)
}

impl Key for () {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

macro_rules! integer_keys {
    ($($integer:ty),*) => {$(
        impl Key for $integer {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                let front = take(bytes, size_of::<Self>())?;
                front.try_into().ok().map(Self::from_be_bytes)
            }
        }
    )*};
}
integer_keys!(u8, u16, u32, u64, u128);

/// A digest.
impl Key for [u8; 32] {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes, size_of::<Self>())?.try_into().ok()
    }
}

macro_rules! index_keys {
    ($($index:ident),*) => {$(
        impl Key for $index {
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                u16::decode(bytes).map(Self)
            }
        }
    )*};
}
index_keys!(StepIndex, TriggerIndex);

/// Short, since most rows belong to the run itself: the number of bytes, then the bytes without leading zeros.
impl Key for ScopeNumber {
    fn encode(&self, out: &mut Vec<u8>) {
        let bytes = self.0.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let significant = &bytes[zeros..];
        out.push(u8::try_from(significant.len()).expect("a number has at most 8 bytes"));
        out.extend_from_slice(significant);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let count = usize::from(u8::decode(bytes)?);
        let significant = take(bytes, count)?;
        let mut number = [0; size_of::<u64>()];
        let zeros = number.len().checked_sub(count)?;
        // One number has one encoding.
        if significant.first() == Some(&0) {
            return None;
        }
        number[zeros..].copy_from_slice(significant);
        Some(Self(u64::from_be_bytes(number)))
    }
}

macro_rules! number_keys {
    ($($number:ident),*) => {$(
        impl Key for $number {
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                u64::decode(bytes).map(Self)
            }
        }
    )*};
}
number_keys!(
    RunNumber,
    ActionRunNumber,
    WorkerNumber,
    PlanNumber,
    StreamNumber,
    GroupNumber,
    ConcurrencyKeyNumber,
    LockNumber
);

impl Key for TokenId {
    fn encode(&self, out: &mut Vec<u8>) {
        self.number().encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let number = u64::decode(bytes)?;
        let id = Self::from_bits(number);
        // One id has one encoding.
        (id.number() == number).then_some(id)
    }
}

/// A text that ends with a zero byte, which no name contains (names have no control characters).
fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = take(bytes, end)?;
    take(bytes, 1)?;
    std::str::from_utf8(text).ok()
}

/// Texts that end with a zero byte.
macro_rules! name_keys {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_str().as_bytes());
                out.push(0);
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                Self::new(take_text(bytes)?).ok()
            }
        }
    )*};
}
name_keys!(
    Namespace,
    WorkflowName,
    WorkflowVersion,
    ActionName,
    AttributeName,
    WorkerId,
    RunId,
    SignalType,
    SignalId,
    IdempotencyKey,
    PlanName,
    EventName,
    ExecutorName,
    StreamName,
    GroupName,
    ConsumerName,
    KvKey,
    ConcurrencyName,
    TreeName
);

/// As the name of the namespace. No namespace has the empty name, which is the cluster's.
impl Key for CommandScope {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_str().as_bytes());
        out.push(0);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        if bytes.first() == Some(&0) {
            take(bytes, 1)?;
            return Some(Self::Cluster);
        }
        Namespace::decode(bytes).map(Self::Namespace)
    }
}

/// What is parsed from a text: that, ended by a zero byte.
macro_rules! text_keys {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                write!(out, "{self}").expect("a vector takes any bytes");
                out.push(0);
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                Self::parse(take_text(bytes)?).ok()
            }
        }
    )*};
}
text_keys!(BindingSubject, QuotaScope);

impl Key for QuotaDimension {
    fn encode(&self, out: &mut Vec<u8>) {
        self.code().encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_code(u8::decode(bytes)?)
    }
}

macro_rules! tuple_keys {
    ($($part:ident $position:tt),*) => {
        impl<$($part: Key),*> Key for ($($part,)*) {
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$position.encode(out);)*
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($part::decode(bytes)?,)*))
            }
        }
    };
}
tuple_keys!(A 0, B 1);
tuple_keys!(A 0, B 1, C 2);
tuple_keys!(A 0, B 1, C 2, D 3);
tuple_keys!(A 0, B 1, C 2, D 3, E 4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_keys_are_in_the_order_of_their_bytes() {
        let long = [1; 50];
        let mut keys: Vec<&[u8]> = vec![
            &[],
            &[0],
            &[0, 0],
            &[1],
            &long[..15],
            &long[..16],
            &long[..17],
            &long,
            &[1, 0],
            &[2],
            &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
        ];
        let mut row_keys: Vec<_> = keys.iter().map(|key| RowKey::new(key)).collect();
        keys.sort_unstable();
        row_keys.sort_unstable();
        assert!(row_keys.iter().map(RowKey::as_slice).eq(keys));
    }

    #[test]
    fn the_front_of_a_key_in_its_table_has_the_order_of_the_bytes() {
        let long = [1; 50];
        let mut other = long;
        other[16] = 0;
        let mut keys = vec![
            &long[..1],
            &long[..2],
            &long[..16],
            &long[..17],
            &long[..18],
        ];
        keys.extend([
            &other[..17],
            &other[..18],
            &[1, 0],
            &[1, 0, 0],
            &[1, 2],
            &[1, 255],
        ]);
        let mut row_keys: Vec<_> = keys.iter().map(|key| RowKey::new(key)).collect();
        keys.sort_unstable();
        let front = |key: &RowKey| (key.in_table(), key.clone());
        row_keys.sort_unstable_by_key(front);
        assert!(row_keys.iter().map(RowKey::as_slice).eq(keys));
    }

    #[test]
    fn bytes_sort_as_their_keys_do_and_come_back() {
        let key = |namespace: &str, id: &str, number| {
            let namespace = Namespace::new(namespace).expect("valid");
            (namespace, WorkerId::new(id).expect("valid"), number)
        };
        let keys = [
            key("a", "b", 1_u64),
            key("a", "b", 256),
            key("a", "ba", 0),
            key("a", "c", 0),
            key("aa", "a", 0),
        ];
        let encoded = keys.clone().map(|key| {
            let mut bytes = Vec::new();
            key.encode(&mut bytes);
            bytes
        });
        assert!(encoded.is_sorted());
        for (key, bytes) in keys.iter().zip(&encoded) {
            let mut rest = bytes.as_slice();
            assert_eq!(
                <(Namespace, WorkerId, u64)>::decode(&mut rest).as_ref(),
                Some(key)
            );
            assert!(rest.is_empty());
        }
    }
}
