//! Keys as ordered bytes.

use crate::ids::{
    ActionName, ActionRunNumber, AttributeName, ConsumerName, ExecutorName, GroupName, GroupNumber,
    IdempotencyKey, KvKey, Namespace, PlanName, PlanNumber, RunId, RunNumber, SignalId, SignalType,
    StreamName, StreamNumber, WorkerId, WorkerNumber, WorkflowName, WorkflowVersion,
};

/// A key, or a part of one: encoding keeps the order, and one key's bytes are never a prefix of
/// another's of the same table.
pub trait Key: Sized + Clone {
    /// Appends the ordered bytes.
    fn encode(&self, out: &mut Vec<u8>);
    /// Takes the bytes from the front; `None` when they are no such key.
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
integer_keys!(u8, u32, u64, u128);

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
    GroupNumber
);

/// Texts end with a zero byte, which no name holds (names have no control characters).
macro_rules! name_keys {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_str().as_bytes());
                out.push(0);
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                let end = bytes.iter().position(|byte| *byte == 0)?;
                let text = take(bytes, end)?;
                take(bytes, 1)?;
                Self::new(std::str::from_utf8(text).ok()?).ok()
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
    ExecutorName,
    StreamName,
    GroupName,
    ConsumerName,
    KvKey
);

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
