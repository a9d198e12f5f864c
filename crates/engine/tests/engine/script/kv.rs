//! Parses commands on keys, namespaces and settings, and renders them.

use super::line::Line;
use super::quota;
use super::show::{option, text};
use super::world::World;
use flotilla_engine::ids::KvKey;
use flotilla_engine::rows::{KeyExpiries, KeyRecord};
use flotilla_engine::view::{self, KeyCursor, KeySelection, PageRange};
use flotilla_engine::{
    Body, CreateNamespace, DeleteKey, DeleteNamespace, SetClusterSettings, SetCondition, SetKey,
    SweepKeys,
};
use std::num::NonZeroU64;

/// `set K VALUE ttl=MS if-absent if-version=N`, `delete-key K`, `sweep-keys from=MS`; `create-namespace` and
/// `delete-namespace` act on the one that `namespace=` names; `set-cluster max-request-ids=N`
pub(super) fn command(verb: &str, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "set" => Body::SetKey(SetKey {
            key: key(line.word()),
            ttl_ms: line.number("ttl").and_then(NonZeroU64::new),
            condition: match (line.flag("if-absent"), line.number("if-version")) {
                (true, _) => SetCondition::IfAbsent,
                (false, Some(version)) => SetCondition::IfVersion(version),
                (false, None) => SetCondition::Always,
            },
            value: line.payload(),
        }),
        "delete-key" => Body::DeleteKey(DeleteKey {
            key: key(line.word()),
        }),
        "sweep-keys" => Body::SweepKeys(SweepKeys {
            from_ms: line.number("from").unwrap_or_default(),
        }),
        "create-namespace" => Body::CreateNamespace(CreateNamespace::default()),
        "delete-namespace" => Body::DeleteNamespace(DeleteNamespace {}),
        "set-cluster" => Body::SetClusterSettings(SetClusterSettings {
            requests_max: line.number("max-request-ids"),
        }),
        _ => return None,
    })
}

pub(super) fn deleted(is_found: bool, has_more: bool) -> String {
    let deleted = if is_found {
        "deleted"
    } else {
        "nothing to delete"
    };
    let more = if has_more { ", with more to go" } else { "" };
    format!("{deleted}{more}")
}

pub(super) const QUESTIONS: [&str; 4] = ["get", "scan", "expiries", "namespaces"];

/// `get K`, `scan PREFIX limit=N`, `expiries`, `namespaces`
pub(super) fn answer(world: &World, verb: &str, line: &mut Line) -> Option<String> {
    Some(match verb {
        "get" => {
            let (namespace, key) = (line.namespace(), key(line.word()));
            let found = view::key(&world.store, &namespace, &key, world.last_ms())
                .expect("memory does not fail");
            found.map_or_else(|| "none\n".to_owned(), |record| describe(&key, &record))
        }
        "scan" => scan(world, line),
        "expiries" => expiries(world),
        "namespaces" => namespaces(world),
        _ => return quota::answer(world, verb, line),
    })
}

fn expiries(world: &World) -> String {
    let first_ms = KeyCursor::default().first_expired_ms(&world.store);
    let is_due = first_ms.expect("memory does not fail").is_some();
    let rows = world.rows::<KeyExpiries>();
    let rows = rows
        .iter()
        .map(|((at_ms, _, key), _)| format!("{key} at {at_ms}\n"));
    let rows: String = rows.collect();
    format!("due {is_due}\n{rows}")
}

fn namespaces(world: &World) -> String {
    let page =
        view::namespaces(&world.store, PageRange::first(5_000)).expect("memory does not fail");
    let lines = page
        .items
        .iter()
        .map(|(name, record)| format!("{name} since {}\n", record.created_at_ms));
    match lines.len() {
        long if long > 10 => format!("{long} namespaces\n"),
        _ => lines.collect(),
    }
}

/// All pages, one behind the other.
fn scan(world: &World, line: &mut Line) -> String {
    let namespace = line.namespace();
    let limit = line.number("limit").unwrap_or(100);
    let prefix = line.next().unwrap_or_default();
    let mut out = String::new();
    let mut after = None;
    loop {
        let selection = KeySelection {
            prefix: &prefix,
            now_ms: world.last_ms(),
        };
        let range = PageRange {
            after: after.as_deref(),
            limit,
        };
        let page =
            view::keys(&world.store, &namespace, selection, range).expect("memory does not fail");
        for item in page.items {
            out += &describe(&item.key, &item.record);
        }
        after = page.next;
        if after.is_none() {
            return if out.is_empty() {
                "none\n".to_owned()
            } else {
                out
            };
        }
        out += "-- page\n";
    }
}

fn describe(key: &KvKey, record: &KeyRecord) -> String {
    format!(
        "{key}={} version {} updated {}{}\n",
        text(&record.value),
        record.version,
        record.updated_at_ms,
        option(" until ", &record.expires_at_ms)
    )
}

fn key(text: String) -> KvKey {
    KvKey::new(text).expect("a key")
}
