//! Moves on what callers keep: keys, and the namespaces around them.

use super::player::pick;
use flotilla_engine::bytes::Bytes;
use flotilla_engine::ids::KvKey;
use flotilla_engine::{
    Body, CreateNamespace, DeleteKey, DeleteNamespace, SetCondition, SetKey, SweepKeys,
};
use proptest::prelude::*;
use std::num::NonZeroU64;

const KEYS: [&str; 4] = ["k", "k/1", "k/2", "other"];

/// A command on data.
#[derive(Clone, Debug)]
pub(in crate::property) enum DataIntent {
    Set {
        key: u8,
        ttl_ms: u64,
        condition: SetCondition,
    },
    Delete {
        key: u8,
    },
    Sweep,
    CreateNamespace,
    DeleteNamespace,
}

pub(super) fn intents() -> impl Strategy<Value = DataIntent> {
    let condition = prop_oneof![
        3 => Just(SetCondition::Always),
        2 => Just(SetCondition::IfAbsent),
        1 => (0..8_u64).prop_map(SetCondition::IfVersion),
    ];
    prop_oneof![
        4 => (0..4_u8, 0..600_u64, condition)
            .prop_map(|(key, ttl_ms, condition)| DataIntent::Set { key, ttl_ms, condition }),
        1 => (0..4_u8).prop_map(|key| DataIntent::Delete { key }),
        1 => Just(DataIntent::Sweep),
        1 => Just(DataIntent::CreateNamespace),
        1 => Just(DataIntent::DeleteNamespace),
    ]
}

/// The command that an intent stands for.
pub(super) fn body(intent: &DataIntent) -> Body {
    match intent {
        DataIntent::Set {
            key,
            ttl_ms,
            condition,
        } => Body::SetKey(SetKey {
            key: name(*key),
            value: Bytes::from("v"),
            ttl_ms: NonZeroU64::new(ttl_ms / 2),
            condition: *condition,
        }),
        DataIntent::Delete { key } => Body::DeleteKey(DeleteKey { key: name(*key) }),
        DataIntent::Sweep => Body::SweepKeys(SweepKeys {}),
        DataIntent::CreateNamespace => Body::CreateNamespace(CreateNamespace {}),
        DataIntent::DeleteNamespace => Body::DeleteNamespace(DeleteNamespace {}),
    }
}

fn name(position: u8) -> KvKey {
    KvKey::new(pick(&KEYS, position)).expect("a key")
}
