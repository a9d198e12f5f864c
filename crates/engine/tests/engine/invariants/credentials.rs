//! Tokens, bindings and blocks agree with their indexes and counts (X7, X12, X17).

use super::{read, rows};
use flotilla_engine::CommandScope;
use flotilla_engine::rows::{
    BindingCounts, Bindings, BindingsByScope, BlockedSubjectCount, BlockedSubjects, BlocksEnding,
    TokenCounts, Tokens, TokensByScope,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

/// Panics unless the tables of credentials agree.
pub(super) fn check(store: &MemoryStore) {
    let tokens = rows::<Tokens>(store, &()).into_iter();
    let tokens: BTreeSet<_> = tokens.map(|(id, record)| (record.scope, id)).collect();
    let listed = rows::<TokensByScope>(store, &()).into_iter();
    assert_eq!(tokens, listed.map(|(key, ())| key).collect());
    let counts: BTreeMap<_, _> = rows::<TokenCounts>(store, &()).into_iter().collect();
    assert_eq!(counts, counted(tokens.into_iter().map(|(scope, _)| scope)));

    let bindings = rows::<Bindings>(store, &()).into_iter();
    let bindings: BTreeSet<_> = bindings
        .map(|((subject, scope), _)| (scope, subject))
        .collect();
    let listed = rows::<BindingsByScope>(store, &()).into_iter();
    assert_eq!(bindings, listed.map(|(key, ())| key).collect());
    let counts: BTreeMap<_, _> = rows::<BindingCounts>(store, &()).into_iter().collect();
    // That of the cluster includes those of the namespaces.
    let scopes = bindings.into_iter().flat_map(|(scope, _)| {
        let of_namespace = scope.namespace().is_some().then(|| scope.clone());
        of_namespace.into_iter().chain([CommandScope::Cluster])
    });
    assert_eq!(counts, counted(scopes));

    let blocks = rows::<BlockedSubjects>(store, &());
    let count = read::<BlockedSubjectCount>(store, &()).unwrap_or_default();
    assert_eq!(blocks.len() as u64, count, "blocked subjects");
    let ending: BTreeSet<_> = blocks
        .into_iter()
        .filter_map(|(subject, record)| Some((record.ends_at_ms?, subject)))
        .collect();
    let listed = rows::<BlocksEnding>(store, &()).into_iter();
    assert_eq!(ending, listed.map(|(key, ())| key).collect());
}

/// How often each scope occurs.
fn counted(scopes: impl Iterator<Item = CommandScope>) -> BTreeMap<CommandScope, u64> {
    let mut counts = BTreeMap::new();
    for scope in scopes {
        *counts.entry(scope).or_default() += 1;
    }
    counts
}
