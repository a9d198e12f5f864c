//! Never more runs than the limit hold a concurrency key, and they begin in the order of their starts (W84).

use super::rows::{definition, rows};
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{ConcurrencyKeys, EventKind, History, Runs};
use flotilla_engine::store::MemoryStore;

/// The workflow with a limit.
const LIMITED: &str = "order";
/// Its limit.
const LIMIT: i32 = 6;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let orders = rows::<Runs>(store, &())
        .into_iter()
        .filter(|(_, run)| definition(store, run.definition).name.as_str() == LIMITED);
    let orders = orders.map(|(number, run)| Span::of(store, number, run.status.is_open()));
    let orders: Vec<Span> = orders.collect();
    let mut broken = exceeded(&orders);
    broken.extend(overtaken(&orders));
    let is_all_ended = orders.iter().all(|order| !order.is_open);
    if is_all_ended && !rows::<ConcurrencyKeys>(store, &()).is_empty() {
        broken.push("expected no concurrency key, since all runs have ended".to_owned());
    }
    broken
}

/// The entries of the log in which a run has held its key.
pub(super) struct Span {
    pub(super) number: RunNumber,
    /// The entry of its start.
    pub(super) started: u64,
    /// That of its last end; `None` if it has not ended.
    pub(super) ended: Option<u64>,
    /// From its begin, or its continuation after a resume, to its end; `None` while it is open.
    held: Vec<(u64, Option<u64>)>,
    /// Whether it was cancelled while it waited, and resumed: then it has left the order of the starts.
    is_requeued: bool,
    is_open: bool,
}

impl Span {
    pub(super) fn of(store: &MemoryStore, number: RunNumber, is_open: bool) -> Self {
        let history = rows::<History>(store, &number);
        let first = history.first().expect("a run has a history");
        let mut span = Self {
            number,
            started: first.1.raft_index,
            ended: None,
            held: Vec::new(),
            is_requeued: false,
            is_open,
        };
        for (_, record) in history {
            for event in &record.events {
                span.add(record.raft_index, &event.kind);
            }
        }
        span
    }

    fn add(&mut self, index: u64, kind: &EventKind) {
        let holds = self.held.last().is_some_and(|(_, end)| end.is_none());
        match kind {
            EventKind::StepStarted if !holds => self.held.push((index, None)),
            EventKind::RunResumed { .. } => self.is_requeued |= self.held.is_empty(),
            kind if super::histories::is_end(kind) => {
                self.ended = Some(index);
                if let Some((_, end)) = self.held.last_mut() {
                    end.get_or_insert(index);
                }
            }
            _ => {}
        }
    }

    fn began(&self) -> Option<u64> {
        self.held.first().map(|(began, _)| *began)
    }
}

fn exceeded(runs: &[Span]) -> Vec<String> {
    let held = runs.iter().flat_map(|run| &run.held);
    let began = held.clone().map(|(began, _)| (*began, 1));
    let ended = held.filter_map(|(_, ended)| Some(((*ended)?, -1)));
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
    let begun: Vec<_> = runs
        .iter()
        .filter(|run| run.began().is_some() && !run.is_requeued)
        .collect();
    let pairs = begun.windows(2);
    let overtaken = pairs.filter(|pair| pair[0].began() > pair[1].began());
    overtaken
        .map(|pair| {
            let (first, second) = (pair[0].number.0, pair[1].number.0);
            format!("expected run {first} to begin before run {second}, but it did not")
        })
        .collect()
}
