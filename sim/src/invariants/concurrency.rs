//! Never more runs than the limit hold a concurrency key, and they begin in the order of their starts (W84).

use super::rows::rows;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{ConcurrencyKeys, EventKind, History, Runs, TriggeredBy};
use flotilla_engine::store::MemoryStore;

/// The limit of the workflow that clients start.
const LIMIT: i32 = 6;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let orders = rows::<Runs>(store, &())
        .into_iter()
        .filter(|(_, run)| run.triggered_by == TriggeredBy::Caller);
    let orders: Vec<Span> = orders.map(|(number, _)| Span::of(store, number)).collect();
    let mut broken = exceeded(&orders);
    broken.extend(overtaken(&orders));
    let is_all_ended = orders.iter().all(|order| order.ended.is_some());
    if is_all_ended && !rows::<ConcurrencyKeys>(store, &()).is_empty() {
        broken.push("expected no concurrency key, since all runs have ended".to_owned());
    }
    broken
}

/// The entries of the log in which a run began and ended.
struct Span {
    number: RunNumber,
    began: Option<u64>,
    ended: Option<u64>,
}

impl Span {
    fn of(store: &MemoryStore, number: RunNumber) -> Self {
        let first = |is_wanted: fn(&EventKind) -> bool| {
            let mut records = rows::<History>(store, &number).into_iter();
            let record = records.find(|(_, record)| {
                let mut events = record.events.iter();
                events.any(|event| is_wanted(&event.kind))
            });
            record.map(|(_, record)| record.raft_index)
        };
        Self {
            number,
            began: first(|kind| matches!(kind, EventKind::StepStarted)),
            ended: first(super::histories::is_end),
        }
    }
}

fn exceeded(runs: &[Span]) -> Vec<String> {
    let began = runs.iter().filter_map(|run| Some((run.began?, 1)));
    let ended = runs.iter().filter_map(|run| {
        run.began?;
        Some((run.ended?, -1))
    });
    let mut changes: Vec<(u64, i32)> = began.chain(ended).collect();
    // Of the changes of an entry, the ends come first.
    changes.sort_unstable();
    let mut holders = 0;
    let mut broken = Vec::new();
    for (index, change) in changes {
        holders += change;
        if holders > LIMIT {
            broken.push(format!(
                "expected at most {LIMIT} runs with a key at index {index}, but there are {holders}"
            ));
        }
    }
    broken
}

/// Runs have numbers in the order of their starts.
fn overtaken(runs: &[Span]) -> Vec<String> {
    let begun: Vec<_> = runs.iter().filter(|run| run.began.is_some()).collect();
    let pairs = begun.windows(2);
    let overtaken = pairs.filter(|pair| pair[0].began > pair[1].began);
    overtaken
        .map(|pair| {
            let (first, second) = (pair[0].number.0, pair[1].number.0);
            format!("expected run {first} to begin before run {second}, but it did not")
        })
        .collect()
}
