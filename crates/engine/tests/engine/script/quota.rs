//! Parses changes of quotas, and renders quotas and what is used of them.

use super::line::Line;
use super::world::World;
use flotilla_engine::view::{self, DimensionUse};
use flotilla_engine::{Body, QuotaDimension, QuotaScope, SetQuota};
use std::collections::BTreeMap;

/// `set-quota SCOPE DIMENSION=N … version=N`; the scope is a namespace, `ROOT.*` or `*`
pub(super) fn command(verb: &str, line: &mut Line) -> Option<Body> {
    if verb != "set-quota" {
        return None;
    }
    let scope = scope(line);
    let dimensions = QuotaDimension::ALL.iter();
    let limits: BTreeMap<_, _> = dimensions
        .filter_map(|dimension| Some((*dimension, line.number(dimension.as_str())?)))
        .collect();
    Some(Body::SetQuota(Box::new(SetQuota {
        scope,
        expected_version: line.number("version"),
        limits,
    })))
}

fn scope(line: &mut Line) -> QuotaScope {
    QuotaScope::parse(&line.word()).expect("a scope")
}

pub(super) const QUESTIONS: [&str; 2] = ["quota", "usage"];

/// `quota SCOPE`, `usage SCOPE` (what is used or limited)
pub(super) fn answer(world: &World, verb: &str, line: &mut Line) -> Option<String> {
    let store = &world.store;
    Some(match verb {
        "quota" => {
            let quota = view::quota(store, &scope(line)).expect("memory does not fail");
            let limits = quota.limits.iter();
            let limits = limits.map(|(dimension, limit)| format!("{dimension} {limit}\n"));
            format!("version {}\n{}", quota.version, limits.collect::<String>())
        }
        "usage" => {
            let uses = view::usage(store, &scope(line)).expect("memory does not fail");
            let uses = uses.iter().filter_map(describe).collect::<String>();
            if uses.is_empty() {
                "nothing\n".to_owned()
            } else {
                uses
            }
        }
        _ => return None,
    })
}

fn describe(one: &DimensionUse) -> Option<String> {
    let DimensionUse {
        dimension, limit, ..
    } = one;
    let used = one.used.filter(|used| *used > 0 || limit.is_some());
    match (used, limit) {
        (None, None) => None,
        (Some(used), None) => Some(format!("{dimension} {used}\n")),
        (Some(used), Some(limit)) => Some(format!("{dimension} {used} of {limit}\n")),
        (None, Some(limit)) => Some(format!("{dimension} at most {limit}\n")),
    }
}
