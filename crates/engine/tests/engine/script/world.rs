//! A replica that a script drives.

use super::damage::{self, Damage};
use super::line::Line;
use super::{command, question, show};
use crate::invariants;
use flotilla_engine::ids::{ActionName, ActionRunNumber, RunNumber, WorkerId};
use flotilla_engine::rows::{
    Activations, Cluster, RunRecord, Runs, Table, TimerKey, Timers, encode_key, encode_record,
};
use flotilla_engine::store::{MemoryStore, Writes};
use flotilla_engine::{
    Applied, Body, Command, CommandEnvelope, ENGINE_VERSION, Effect, Engine, Entry, NodeId, Offer,
    Stamp, TaskToken,
};
use std::collections::BTreeMap;

pub(super) struct World {
    engine: Engine,
    pub(super) store: MemoryStore,
    raft_index: u64,
    stamp: Stamp,
    offers: Vec<Offer>,
    /// The tokens of each action run that were delivered, in order.
    pub(super) tokens: BTreeMap<ActionRunNumber, Vec<TaskToken>>,
    /// The timers that the last `fire` named.
    pub(super) fired: Vec<TimerKey>,
    /// How many events of each run were shown.
    shown: BTreeMap<RunNumber, u64>,
    /// Whether the tables may disagree.
    is_damaged: bool,
    was_damaged: bool,
    /// The encoded entries, up to the first damage: from there on they do not tell everything.
    log: Vec<Vec<u8>>,
    pub(super) damages: Vec<Damage>,
    /// Rows that the last entry wrote, the cluster's own apart.
    pub(super) writes_count: usize,
}

/// Scripts begin at this time, in milliseconds.
const BEGINNING_MS: u64 = 1_000;

impl World {
    pub(super) fn new() -> Self {
        let store = MemoryStore::default();
        Self {
            engine: Engine::open(&store, ENGINE_VERSION).expect("memory does not fail"),
            store,
            raft_index: 0,
            stamp: Stamp {
                now_ms: BEGINNING_MS,
                seed: 1,
                node: NodeId(1),
            },
            offers: Vec::new(),
            tokens: BTreeMap::new(),
            fired: Vec::new(),
            shown: BTreeMap::new(),
            is_damaged: false,
            was_damaged: false,
            log: Vec::new(),
            damages: Vec::new(),
            writes_count: 0,
        }
    }

    /// The encoded entries, up to the first damage.
    pub(super) fn into_log(self) -> Vec<Vec<u8>> {
        self.log
    }

    /// The place of the last entry in the log.
    pub(super) fn raft_index(&self) -> u64 {
        self.raft_index
    }

    /// The time of the next entry, in milliseconds.
    pub(super) fn now_ms(&self) -> u64 {
        self.stamp.now_ms
    }

    /// Carries out a paragraph of a script: its commands are one entry.
    pub(super) fn entry(&mut self, input: &str) -> String {
        let mut out = String::new();
        let mut commands = Vec::new();
        for line in logical_lines(input) {
            if looks_back(&line) {
                self.apply_shown(std::mem::take(&mut commands), &mut out);
            }
            if self.set(&line, &mut out) {
                continue;
            }
            if question::is_question(&line) {
                self.apply_shown(std::mem::take(&mut commands), &mut out);
                out.push_str(&question::answer(self, &line));
            } else {
                commands.extend(command::parse(self, &line));
            }
        }
        self.apply_shown(commands, &mut out);
        out
    }

    /// The timers in the order in which they are stored.
    pub(super) fn timers(&self) -> Vec<TimerKey> {
        let timers = self.rows::<Timers>();
        timers.into_iter().map(|(timer, ())| timer).collect()
    }

    /// What a leader's driver would fire now.
    pub(super) fn due_timers(&self) -> Vec<TimerKey> {
        let grace_until_ms = self
            .read::<Cluster>(&())
            .map_or(0, |cluster| cluster.grace_until_ms);
        let is_due = |timer: &TimerKey| {
            let grace_ms = if timer.kind.is_graced() {
                grace_until_ms
            } else {
                0
            };
            timer.due_ms.max(grace_ms) <= self.stamp.now_ms
        };
        self.timers().into_iter().filter(is_due).collect()
    }

    /// The number of the run that is published as `id`.
    pub(super) fn run_number(&self, id: &str) -> RunNumber {
        let mut runs = self.rows::<Runs>().into_iter();
        let found = runs.find(|(_, run)| run.id.as_str() == id);
        found.unwrap_or_else(|| panic!("there is no run {id}")).0
    }

    /// The action run that the run `id` waits for.
    pub(super) fn awaited_action(&self, id: &str) -> ActionRunNumber {
        let active = invariants::rows::<Activations>(&self.store, &self.run_number(id));
        let mut active = active.into_iter();
        let awaited = active.find_map(|(_, active)| active.state.action_run());
        awaited.unwrap_or_else(|| panic!("{id} waits for no action"))
    }

    /// One record.
    pub(super) fn read<T: Table>(&self, key: &T::Key) -> Option<T::Record> {
        invariants::read::<T>(&self.store, key)
    }

    /// All records of a table.
    pub(super) fn rows<T: Table>(&self) -> Vec<(T::Key, T::Record)> {
        invariants::rows::<T>(&self.store, &())
    }

    /// The time of the last entry.
    pub(super) fn last_ms(&self) -> u64 {
        self.read::<Cluster>(&())
            .map_or(0, |cluster| cluster.now_ms)
    }

    /// Carries out a setting; false for any other line.
    fn set(&mut self, text: &str, out: &mut String) -> bool {
        let mut line = Line::parse(text);
        match line.word().as_str() {
            "now" => self.set_time(&line.word(), out),
            "seed" => self.stamp.seed = line.next_number(),
            "node" => self.stamp.node = NodeId(line.next_number()),
            "offer" => self.offers.push(offer(&mut line)),
            "reopen" => self.engine = self.cold_engine(),
            "sound" => self.is_damaged = false,
            "repeat" => {
                let times = line.next_number();
                let (_, command) = text.split_once(' ').expect("repeat TIMES COMMAND");
                let (_, command) = command.split_once(' ').expect("repeat TIMES COMMAND");
                self.repeat(times, command, out);
                return true;
            }
            verb => {
                if !damage::plant(self, verb, &mut line) {
                    return false;
                }
            }
        }
        line.end();
        true
    }

    fn set_time(&mut self, text: &str, out: &mut String) {
        let amount = |text: &str| text.parse::<u64>().expect("milliseconds");
        self.stamp.now_ms = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(forward), _) => self.stamp.now_ms + amount(forward),
            (_, Some(back)) => self.stamp.now_ms - amount(back),
            (None, None) => amount(text),
        };
        out.push_str(&format!("now {}\n", self.stamp.now_ms));
    }

    /// Applies a command in many entries, showing only how the last one ended; `%` in it stands for
    /// the number of the entry.
    fn repeat(&mut self, times: u32, command: &str, out: &mut String) {
        let mut last = String::new();
        for number in 1..=times {
            let commands = command::parse(self, &command.replace('%', &number.to_string()));
            let applied = self.apply(commands);
            last = show::replies(&applied.replies);
        }
        self.unshown_events();
        out.push_str(&format!("{times} times, at last {last}"));
    }

    fn apply_shown(&mut self, commands: Vec<CommandEnvelope>, out: &mut String) {
        if commands.is_empty() {
            return;
        }
        let applied = self.apply(commands);
        out.push_str(&show::replies(&applied.replies));
        for (number, run, first) in self.unshown_events() {
            out.push_str(&show::progress(self, number, &run, first));
        }
        for effect in &applied.effects {
            out.push_str(&show::effect(self, effect));
        }
    }

    /// One entry, on this replica and on one without caches: both must do the same.
    fn apply(&mut self, commands: Vec<CommandEnvelope>) -> Applied {
        let fired: Vec<TimerKey> = commands
            .iter()
            .filter_map(|envelope| fired_timer(&envelope.command))
            .collect();
        if !fired.is_empty() {
            self.fired = fired;
        }
        let entry = Entry {
            stamp: self.stamp,
            offers: std::mem::take(&mut self.offers),
            commands,
        };
        if !self.was_damaged {
            self.log.push(entry.encode());
        }
        self.raft_index += 1;
        self.stamp.seed += 1;
        let cold = self
            .cold_engine()
            .apply(&self.store, self.raft_index, &entry)
            .expect("memory does not fail");
        let applied = self
            .engine
            .apply(&self.store, self.raft_index, &entry)
            .expect("memory does not fail");
        assert_eq!(applied, cold, "a cache must change nothing");
        self.store.write(&applied.writes);
        self.writes_count = applied.writes.len() - 1;
        if !self.is_damaged {
            invariants::check(&self.store);
        }
        for effect in &applied.effects {
            if let Effect::DeliverTask { assignment, .. } = effect {
                let token = assignment.token;
                self.tokens.entry(token.action_run).or_default().push(token);
            }
        }
        applied
    }

    /// The runs whose history grew, with the first event that was not shown.
    fn unshown_events(&mut self) -> Vec<(RunNumber, RunRecord, u64)> {
        let mut grown = Vec::new();
        for (number, run) in self.rows::<Runs>() {
            let shown = self.shown.entry(number).or_default();
            if run.history.events_count > *shown {
                let first = *shown + 1;
                *shown = run.history.events_count;
                grown.push((number, run, first));
            }
        }
        grown
    }

    /// Stores what no command would have stored.
    pub(super) fn plant<T: Table>(&mut self, key: &T::Key, record: Option<&T::Record>) {
        let row = (encode_key::<T>(key), record.map(encode_record::<T>));
        self.store.write(&Writes::from([row]));
        self.engine = self.cold_engine();
        (self.is_damaged, self.was_damaged) = (true, true);
    }

    fn cold_engine(&self) -> Engine {
        Engine::open(&self.store, ENGINE_VERSION).expect("memory does not fail")
    }
}

/// Whether a line's meaning depends on what the lines above it have done.
fn looks_back(line: &str) -> bool {
    let command = line.lines().next().unwrap_or_default();
    command.split(' ').any(|word| {
        let is_own = matches!(
            word,
            "repeat"
                | "every"
                | "fire-trigger"
                | "answer-cancelled"
                | "mend"
                | "sound"
                | "release-quarantined"
        );
        // `damage` itself goes to the store before its entry, whose first commands made the run.
        is_own || (word != "damage" && damage::VERBS.contains(&word))
    })
}

/// Lines without comments; an indented line continues the one before.
fn logical_lines(input: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in input.lines().filter(|line| !line.starts_with('#')) {
        match lines.last_mut() {
            Some(last) if line.starts_with(' ') => {
                last.push('\n');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

fn fired_timer(command: &Command) -> Option<TimerKey> {
    match &command.body {
        Body::FireTimer(fire) => Some(fire.timer),
        _ => None,
    }
}

/// `offer w1 charge,ship slots=2 poll=7 gpu=yes`
fn offer(line: &mut Line) -> Offer {
    let name = |name: &str| ActionName::new(name).expect("an action name");
    Offer {
        namespace: line.namespace(),
        worker: WorkerId::new(line.word()).expect("a worker id"),
        actions: line.word().split(',').map(name).collect(),
        slots: line.number("slots").unwrap_or(1),
        poll: line.number("poll").unwrap_or(1),
        labels: command::labels(line),
    }
}
