//! Moves on what callers keep: keys, streams, and the namespaces around them.
//!
//! Those on consumer groups and triggers are in [`super::groups`] and [`super::triggers`].

use super::groups::{self, GroupIntent};
use super::player::pick;
use super::triggers::{self, TriggerIntent};
use flotilla_engine::bytes::Bytes;
use flotilla_engine::ids::{KvKey, Namespace, PartitionKey, StreamName};
use flotilla_engine::rows::{Retention, StreamSettings};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::view::KeyCursor;
use flotilla_engine::{
    AppendRecords, Body, CreateNamespace, CreateStream, DeleteKey, DeleteNamespace, DeleteStream,
    NewRecord, QuotaDimension, QuotaScope, SetClusterSettings, SetCondition, SetKey, SetQuota,
    SweepKeys, TrimStream, TrimTo,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

const STREAMS: [&str; 3] = ["s", "t", "u"];
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
    SetSettings {
        requests_max: u64,
    },
    SetQuota {
        scope: u8,
        dimension: u8,
        limit: Option<u64>,
    },
    CreateStream {
        stream: u8,
        count_max: u64,
    },
    Append {
        stream: u8,
        count: usize,
        partition: Option<u32>,
    },
    Trim {
        stream: u8,
        newest: u64,
    },
    DeleteStream {
        stream: u8,
    },
    Group(GroupIntent),
    Trigger(TriggerIntent),
}

pub(super) fn intents() -> impl Strategy<Value = DataIntent> {
    prop_oneof![
        2 => on_keys(),
        3 => on_streams(),
        6 => groups::intents().prop_map(DataIntent::Group),
        3 => triggers::intents().prop_map(DataIntent::Trigger),
    ]
}

fn on_streams() -> impl Strategy<Value = DataIntent> {
    prop_oneof![
        2 => (0..3_u8, 0..12_u64)
            .prop_map(|(stream, count_max)| DataIntent::CreateStream { stream, count_max }),
        6 => (0..3_u8, 0..4_usize, prop::option::weighted(0.6, 0..4_u32))
            .prop_map(|(stream, count, partition)| DataIntent::Append { stream, count, partition }),
        1 => (0..3_u8, 0..4_u64)
            .prop_map(|(stream, newest)| DataIntent::Trim { stream, newest }),
        1 => (0..3_u8).prop_map(|stream| DataIntent::DeleteStream { stream }),
    ]
}

fn on_keys() -> impl Strategy<Value = DataIntent> {
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
        1 => (99_999..100_009_u64).prop_map(|requests_max| DataIntent::SetSettings { requests_max }),
        1 => (0..3_u8, any::<u8>(), prop::option::weighted(0.7, 0..20_u64))
            .prop_map(|(scope, dimension, limit)| DataIntent::SetQuota { scope, dimension, limit }),
    ]
}

/// The command that an intent stands for now.
pub(super) fn body(store: &MemoryStore, intent: &DataIntent) -> Body {
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
        DataIntent::Sweep => Body::SweepKeys(SweepKeys {
            from_ms: first_ms(store),
        }),
        DataIntent::CreateNamespace => Body::CreateNamespace(CreateNamespace::default()),
        DataIntent::DeleteNamespace => Body::DeleteNamespace(DeleteNamespace {}),
        DataIntent::SetSettings { requests_max } => Body::SetClusterSettings(SetClusterSettings {
            requests_max: Some(*requests_max),
        }),
        DataIntent::SetQuota {
            scope,
            dimension,
            limit,
        } => set_quota(*scope, *dimension, *limit),
        DataIntent::CreateStream { stream, count_max } => Body::CreateStream(CreateStream {
            stream: stream_name(*stream),
            settings: settings(*stream, *count_max),
        }),
        DataIntent::Append {
            stream,
            count,
            partition,
        } => Body::AppendRecords(AppendRecords {
            stream: stream_name(*stream),
            records: vec![record(*partition); *count],
        }),
        DataIntent::Trim { stream, newest } => Body::TrimStream(TrimStream {
            stream: stream_name(*stream),
            to: TrimTo::Newest(*newest),
        }),
        DataIntent::DeleteStream { stream } => Body::DeleteStream(DeleteStream {
            stream: stream_name(*stream),
        }),
        DataIntent::Group(intent) => groups::body(store, intent),
        DataIntent::Trigger(intent) => triggers::body(store, intent),
    }
}

/// One limit, or none.
fn set_quota(scope: u8, dimension: u8, limit: Option<u64>) -> Body {
    let default = Namespace::default_namespace();
    let scopes = [
        QuotaScope::Namespace(default.clone()),
        QuotaScope::Tree(default.tree()),
        QuotaScope::Defaults,
    ];
    let all = QuotaDimension::ALL;
    let dimension = all[usize::from(dimension) % all.len()];
    let limits = limit.map(|limit| (dimension, limit));
    Body::SetQuota(Box::new(SetQuota {
        scope: scopes[usize::from(scope) % scopes.len()].clone(),
        expected_version: None,
        limits: limits.into_iter().collect(),
    }))
}

/// Where the driver's sweep begins.
fn first_ms(store: &MemoryStore) -> u64 {
    let first_ms = KeyCursor::default().first_expired_ms(store);
    first_ms.expect("memory does not fail").unwrap_or_default()
}

fn name(position: u8) -> KvKey {
    KvKey::new(pick(&KEYS, position)).expect("a key")
}

pub(super) fn stream_name(position: u8) -> StreamName {
    StreamName::new(pick(&STREAMS, position)).expect("a name")
}

/// The first stream has three partitions, the others one.
fn settings(stream: u8, count_max: u64) -> StreamSettings {
    StreamSettings {
        partitions: NonZeroU32::MIN.saturating_add(if stream == 0 { 2 } else { 0 }),
        retention: Retention {
            count_max: Some(count_max).filter(|max| *max > 8),
            max_age_ms: Some(20_000).filter(|_| count_max < 6),
            max_bytes: None,
        },
        bytes_limit: 600,
    }
}

fn record(partition: Option<u32>) -> NewRecord {
    NewRecord {
        payload: Bytes::from("p"),
        headers: BTreeMap::new(),
        key: Some(PartitionKey::new("k").expect("a key")),
        partition,
    }
}
