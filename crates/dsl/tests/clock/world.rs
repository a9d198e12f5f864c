//! A replica, a clock that the test moves, and a leader's driver.

use chrono::{DateTime, Utc};
use flotilla_dsl::{parse, schedule};
use flotilla_engine::ids::{Namespace, StreamName, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{RunRecord, Runs, TriggeredBy, encode_prefix, visit};
use flotilla_engine::store::{KeyRange, MemoryStore, Order};
use flotilla_engine::view::{DueCursor, InputJudge, TimerCursor, payload, trigger_firings};
use flotilla_engine::{
    AppendRecords, Body, Command, CreateDefinition, ENGINE_VERSION, Engine, Entry, FireTimer,
    NewRecord, NodeId, Rejection, Reply, SetWorkflowEnabled, Stamp, TriggerKey,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Obligations that the driver reads in one batch.
const BATCH_MAX: usize = 64;

/// The only stream.
const STREAM: &str = "orders";

pub(super) struct World {
    engine: Engine,
    store: MemoryStore,
    raft_index: u64,
    now_ms: u64,
    /// What drivers have sent so far.
    sent: Vec<Command>,
}

impl World {
    pub(super) fn new(now: &str) -> Self {
        let store = MemoryStore::default();
        Self {
            engine: Engine::open(&store, ENGINE_VERSION).expect("memory does not fail"),
            store,
            raft_index: 0,
            now_ms: milliseconds(now),
            sent: Vec::new(),
        }
    }

    /// Creates a definition as a node does.
    pub(super) fn create(&mut self, text: &str) {
        let definition = parse(text).definition.expect("the text is valid");
        let create = CreateDefinition {
            definition,
            source: text.to_owned(),
            make_latest: false,
        };
        self.must(Body::CreateDefinition(Box::new(create)));
    }

    pub(super) fn enable(&mut self, is_enabled: bool) {
        let workflow = WorkflowName::new("sweep").expect("a name");
        self.must(Body::SetWorkflowEnabled(SetWorkflowEnabled {
            workflow,
            is_enabled,
        }));
    }

    /// Appends records, each a number.
    pub(super) fn append(&mut self, records: &[u64]) {
        let record = |number: &u64| NewRecord {
            payload: number.to_string().into_bytes().into(),
            headers: BTreeMap::new(),
            key: None,
            partition: None,
        };
        self.must(Body::AppendRecords(AppendRecords {
            stream: StreamName::new(STREAM).expect("a name"),
            records: records.iter().map(record).collect(),
        }));
    }

    /// Advances time while a leader drives what falls due.
    pub(super) fn run_for(&mut self, duration_ms: u64) {
        let until_ms = self.now_ms + duration_ms;
        while let Some(next_ms) = self.drive().filter(|next_ms| *next_ms <= until_ms) {
            // A driver never wakes exactly on time.
            self.now_ms = (next_ms + 3).clamp(self.now_ms, until_ms);
        }
        self.now_ms = until_ms;
        self.drive();
    }

    pub(super) fn run_until(&mut self, until: &str) {
        self.run_for(milliseconds(until) - self.now_ms);
    }

    /// Advances time without a leader.
    pub(super) fn stand_still(&mut self, duration_ms: u64) {
        self.now_ms += duration_ms;
    }

    /// Repeats the last commands of a former leader.
    pub(super) fn send_again(&mut self) {
        let last = self.sent.len().saturating_sub(10);
        for command in self.sent.split_off(last) {
            let reply = self.apply(command);
            assert!(
                matches!(
                    reply,
                    Err(Rejection::FiringStale(_)
                        | Rejection::TimerStale
                        | Rejection::TriggerFiringStale(_))
                ),
                "{reply:?}"
            );
        }
    }

    /// The firings that started runs, by time of day.
    pub(super) fn firings(&self) -> Vec<String> {
        let time = |firing_ms: &u64| {
            let time = DateTime::<Utc>::from_timestamp_millis(
                i64::try_from(*firing_ms).expect("it is soon"),
            );
            time.expect("it is a time").naive_utc().time().to_string()
        };
        self.firings_ms().iter().map(time).collect()
    }

    /// The firings that started runs, in milliseconds.
    pub(super) fn firings_ms(&self) -> Vec<u64> {
        let mut firings = Vec::new();
        self.visit_runs(|run| {
            if let TriggeredBy::Schedule { firing_ms } = run.triggered_by {
                assert!(run.started_at_ms >= firing_ms, "a run before its firing");
                firings.push(firing_ms);
            }
        });
        firings
    }

    /// The records that each run of a trigger was started with, in the order of the starts.
    pub(super) fn batches(&self) -> Vec<Vec<u64>> {
        let mut batches = Vec::new();
        self.visit_runs(|run| {
            assert!(matches!(run.triggered_by, TriggeredBy::Trigger { .. }));
            let input = payload(&self.store, run.input).expect("memory does not fail");
            let numbers = serde_json::from_str(input.as_str());
            batches.push(numbers.unwrap_or_else(|_| {
                vec![input.as_str().parse().expect("a number or a list of them")]
            }));
        });
        batches
    }

    fn visit_runs(&self, mut see: impl FnMut(&RunRecord)) {
        let all = KeyRange::prefix(&encode_prefix::<Runs>(&()));
        visit::<Runs>(&self.store, &all, Order::Ascending, |_, run| {
            see(&run);
            ControlFlow::Continue(())
        })
        .expect("memory does not fail");
    }

    /// Does what the leader's drivers do now; returns when they next read the state.
    fn drive(&mut self) -> Option<u64> {
        loop {
            let due = DueCursor::default()
                .due_schedules(&self.store, self.now_ms, BATCH_MAX)
                .expect("memory does not fail");
            let timers = TimerCursor::default()
                .due_timers(&self.store, self.now_ms, BATCH_MAX)
                .expect("memory does not fail");
            let triggers = DueCursor::default()
                .due_triggers(&self.store, self.now_ms, BATCH_MAX)
                .expect("memory does not fail");
            if due.schedules.is_empty() && timers.timers.is_empty() && triggers.triggers.is_empty()
            {
                let next = [due.next_due_ms, timers.next_due_ms, triggers.next_due_ms];
                return next.into_iter().flatten().min();
            }
            for key in &triggers.triggers {
                self.fire_trigger(key);
            }
            for due in &due.schedules {
                let body = schedule::command(due, self.now_ms).expect("the cron is valid");
                self.send(body.expect("a due schedule waits for something"));
            }
            for timer in timers.timers {
                self.send(Body::FireTimer(FireTimer { timer }));
            }
        }
    }

    fn fire_trigger(&mut self, key: &TriggerKey) {
        let firings = trigger_firings(&self.store, key, self.now_ms, BATCH_MAX)
            .expect("memory does not fail");
        let commands = firings
            .into_iter()
            .filter_map(|firing| firing.command(&Numbers));
        for fire in commands.collect::<Vec<_>>() {
            self.send(Body::FireTrigger(fire));
        }
    }

    fn send(&mut self, body: Body) {
        let command = body.into_command(Namespace::default_namespace());
        self.sent.push(command.clone());
        self.apply(command).expect("no other driver is active");
    }

    fn must(&mut self, body: Body) {
        self.apply(body.into_command(Namespace::default_namespace()))
            .expect("the command is valid");
    }

    fn apply(&mut self, command: Command) -> Result<Reply, Rejection> {
        self.raft_index += 1;
        let entry = Entry {
            stamp: Stamp {
                now_ms: self.now_ms,
                seed: self.raft_index,
                node: NodeId(1),
            },
            offers: Vec::new(),
            commands: vec![command.by_anyone()],
        };
        let mut applied = self
            .engine
            .apply(&self.store, self.raft_index, &entry)
            .expect("memory does not fail");
        self.store.write(&applied.writes);
        applied.replies.remove(0)
    }
}

/// Every record is a number, and there is no schema.
struct Numbers;

impl InputJudge for Numbers {
    fn is_json(&self, _: &[u8]) -> bool {
        true
    }

    fn refusal(&self, _: &Json) -> Option<String> {
        None
    }
}

fn milliseconds(text: &str) -> u64 {
    let time: DateTime<Utc> = text.parse().expect("a time");
    u64::try_from(time.timestamp_millis()).expect("after 1970")
}
