//! Checks the compensations and handlers in the history of a run (W80–W83) against what its tasks have done.

use super::player::Player;
use crate::invariants::{read, rows};
use flotilla_engine::definition::{
    Definition, Join, Step, StepIndex, StepKind, Target, TerminalStatus,
};
use flotilla_engine::ids::{OutcomeName, RunNumber, ScopeNumber, StepName};
use flotilla_engine::rows::{
    ActionRunOwner, ActionRuns, Activations, Compensations, Definitions, Event, EventKind, History,
    PayloadRef, Phase, RunStatus, Runs, ScopeStep, Scopes, UndoOwner,
};
use flotilla_engine::{TaskToken, view};
use std::collections::BTreeMap;

/// What was seen of the tasks of runs, from outside.
#[derive(Default)]
pub(super) struct Observations {
    /// The successes of calls that have a compensation, in their order.
    successes: Vec<Success>,
    /// The number of the success that each compensation undoes, and for what; by run and activation.
    compensations: BTreeMap<(RunNumber, u64), (u64, UndoOwner)>,
    /// The entries in which runs were cancelled by force.
    forced: BTreeMap<RunNumber, u64>,
}

/// A call that has succeeded, and that can be undone.
pub(super) struct Success {
    /// Its output, which no other call has.
    number: u64,
    run: RunNumber,
    step: StepIndex,
    /// The blocks that contain it, the innermost first.
    blocks: Vec<OpenedBlock>,
    /// The entry in which its worker reported.
    raft_index: u64,
}

/// A block, and the step that has opened it.
struct OpenedBlock {
    own: ScopeNumber,
    parent: ScopeNumber,
    down: ScopeStep,
}

impl Success {
    /// What a worker is about to report with the output `number`; `None` if there is nothing to undo.
    pub(super) fn of(player: &Player, token: TaskToken, number: u64) -> Option<Self> {
        let store = &player.store;
        let record = read::<ActionRuns>(store, &token.action_run)?;
        let ActionRunOwner::Step { run, activation } = record.owner else {
            return None;
        };
        let active = read::<Activations>(store, &(run, activation))?;
        let definition = definition_of(player, run);
        definition.step(active.step).compensation(active.call)?;
        let mut blocks = Vec::new();
        let mut around = active.scope;
        while around != ScopeNumber::ROOT {
            let scope = read::<Scopes>(store, &(run, around)).expect("an open scope");
            blocks.push(OpenedBlock {
                own: around,
                parent: scope.parent,
                down: *scope.id.path.0.last().expect("below the run"),
            });
            around = scope.parent;
        }
        Some(Self {
            number,
            run,
            step: active.step,
            blocks,
            raft_index: player.raft_index + 1,
        })
    }
}

impl Observations {
    pub(super) fn add(&mut self, success: Success) {
        self.successes.push(success);
    }

    /// Notes that the next entry cancels a run by force, with its open children.
    pub(super) fn add_forced(&mut self, player: &Player, run: RunNumber) {
        let entry = player.raft_index + 1;
        self.forced.entry(run).or_insert(entry);
        for (number, record) in rows::<Runs>(&player.store, &()) {
            // A child is younger than its parent.
            let parent = record.parent.map(|parent| parent.run);
            let is_below = parent.is_some_and(|parent| self.forced.contains_key(&parent));
            if is_below && record.status.is_open() {
                self.forced.entry(number).or_insert(entry);
            }
        }
    }

    pub(super) fn is_forced(&self, run: RunNumber) -> bool {
        self.forced.contains_key(&run)
    }

    /// Notes which compensations are being executed.
    pub(super) fn note_compensations(&mut self, player: &Player) {
        for ((run, activation), active) in rows::<Activations>(&player.store, &()) {
            if active.call.is_compensation() {
                let undone = undone_by(player, active.input);
                let owner = active.undoes_for().expect("it undoes for something");
                // The end of the run takes over what is being undone for a step that is cancelled.
                let compensation = self.compensations.entry((run, activation));
                compensation.or_insert((undone, owner));
            }
        }
    }

    /// For what something was undone.
    pub(super) fn owners(&self) -> impl Iterator<Item = UndoOwner> {
        self.compensations.values().map(|(_, owner)| *owner)
    }

    /// Whether anything was undone in a run.
    pub(super) fn has_undone(&self, run: RunNumber) -> bool {
        self.compensations.keys().any(|(of, _)| *of == run)
    }

    /// Checks the histories of all runs: they have ended.
    pub(super) fn check(&self, player: &Player) {
        for (number, _) in rows::<Runs>(&player.store, &()) {
            PastRun::of(player, self, number).check();
        }
    }
}

/// The number of the success in the input of its compensation.
fn undone_by(player: &Player, input: PayloadRef) -> u64 {
    let input = view::payload(&player.store, input).expect("memory does not fail");
    let (_, output) = input.as_str().split_once("\"output\":").expect("an output");
    let digits = output.split([',', '}']).next().expect("a value");
    digits.parse().expect("the number of a success")
}

pub(super) fn definition_of(player: &Player, run: RunNumber) -> Definition {
    let run = read::<Runs>(&player.store, &run).expect("the run");
    let record = read::<Definitions>(&player.store, &run.definition);
    record.expect("its definition").definition
}

/// A run that has ended.
struct PastRun<'o> {
    definition: Definition,
    terminal: Target,
    status: TerminalStatus,
    /// The entry in which it was cancelled by force.
    forced_by: Option<u64>,
    /// Each with the index of its entry.
    events: Vec<(u64, Event)>,
    successes: Vec<&'o Success>,
    /// In the order in which they were started.
    undoings: Vec<CompensationSpan>,
    /// The numbers of the successes that were never undone, the newest first.
    kept: Vec<u64>,
}

/// The execution of a compensation.
struct CompensationSpan {
    success: u64,
    owner: UndoOwner,
    /// The positions of the events.
    start: usize,
    end: Option<usize>,
}

/// What happens to the work of a block.
enum Disposition {
    /// Its work is undone before this event, if the history has the event.
    Dropped(Option<usize>),
    Kept,
    /// The history does not determine it: the step was cancelled, or is in an iteration.
    Unknown,
}

impl<'o> PastRun<'o> {
    fn of(player: &Player, observed: &'o Observations, number: RunNumber) -> Self {
        let store = &player.store;
        let run = read::<Runs>(store, &number).expect("the run");
        let RunStatus::Ended(status) = run.status else {
            panic!("{} has not ended", run.id);
        };
        let records = rows::<History>(store, &number).into_iter();
        let events = records.flat_map(|(_, record)| {
            let raft_index = record.raft_index;
            record
                .events
                .into_iter()
                .map(move |event| (raft_index, event))
        });
        let kept = rows::<Compensations>(store, &number).into_iter();
        let kept = kept.map(|(_, record)| undone_by(player, record.input.expect("an input")));
        let mut past = Self {
            definition: definition_of(player, number),
            terminal: run.end.expect("it has ended").terminal,
            status,
            forced_by: observed.forced.get(&number).copied(),
            events: events.collect(),
            successes: observed
                .successes
                .iter()
                .filter(|success| success.run == number)
                .collect(),
            undoings: Vec::new(),
            kept: kept.collect(),
        };
        past.undoings = past.undoings_of(observed, number);
        past
    }

    fn undoings_of(&self, observed: &Observations, run: RunNumber) -> Vec<CompensationSpan> {
        let mut undoings = Vec::new();
        for (start, (_, event)) in self.events.iter().enumerate() {
            if event.kind != EventKind::CompensationStarted {
                continue;
            }
            let activation = event.activation.expect("it has begun");
            let (success, owner) = observed.compensations[&(run, activation)];
            let is_end = |(_, other): &(u64, Event)| {
                let is_end = matches!(
                    other.kind,
                    EventKind::CompensationCompleted | EventKind::CompensationFailed { .. }
                );
                is_end && other.activation == event.activation
            };
            let ends: Vec<usize> = self.positions(is_end).collect();
            assert!(ends.len() <= 1, "a compensation ends once");
            let end = ends.first().copied();
            undoings.push(CompensationSpan {
                success,
                owner,
                start,
                end,
            });
        }
        undoings
    }

    /// The positions of the events that satisfy a condition.
    fn positions(&self, holds: impl Fn(&(u64, Event)) -> bool) -> impl Iterator<Item = usize> {
        let events = self.events.iter().enumerate();
        events
            .filter(move |(_, event)| holds(event))
            .map(|(position, _)| position)
    }

    fn check(&self) {
        self.check_order();
        match self.forced_by {
            Some(forced_by) => self.check_nothing_begins(forced_by),
            None => {
                self.check_kept_and_dropped();
                self.check_phases();
                self.check_handlers();
            }
        }
    }

    /// Each success is undone once at most. What is undone for the same step, or for the end of the run, is undone one at
    /// a time, the newest first.
    fn check_order(&self) {
        for (position, undoing) in self.undoings.iter().enumerate() {
            let success = self.success(undoing.success);
            for before in &self.undoings[..position] {
                assert_ne!(before.success, undoing.success, "it is undone once");
                // Nothing that was begun before is in progress when the end of the run undoes something.
                if before.owner == undoing.owner || undoing.owner == UndoOwner::Run {
                    let is_over = before.end.is_some_and(|end| end < undoing.start);
                    assert!(is_over, "{} waits for {}", undoing.success, before.success);
                }
                if before.owner == undoing.owner {
                    // A retried step may do more work and undo it, too.
                    let is_later = success.raft_index > self.events[before.start].0;
                    assert!(
                        undoing.success < before.success || is_later,
                        "{} is undone before {}",
                        before.success,
                        undoing.success
                    );
                }
            }
        }
    }

    fn success(&self, number: u64) -> &Success {
        let mut own = self
            .successes
            .iter()
            .filter(|success| success.number == number);
        own.next()
            .expect("what is undone has succeeded in this run")
    }

    /// No step and no compensation begins with a forced cancel, or after it.
    fn check_nothing_begins(&self, forced_by: u64) {
        let begins = |(raft_index, event): &(u64, Event)| {
            let begins = matches!(
                event.kind,
                EventKind::StepStarted | EventKind::CompensationStarted
            );
            begins && *raft_index >= forced_by
        };
        assert_eq!(self.positions(begins).next(), None, "nothing begins");
    }

    /// What is dropped is undone before its step continues. What is kept is undone at the end, unless the run has
    /// completed.
    fn check_kept_and_dropped(&self) {
        let mut kept = Vec::new();
        let phase = self.phase(Phase::Compensating);
        for success in self.successes.iter().rev() {
            let mut undoings = self.undoings.iter();
            let undoing = undoings.find(|undoing| undoing.success == success.number);
            let dispositions: Vec<Disposition> = success
                .blocks
                .iter()
                .map(|block| self.disposition(block))
                .collect();
            let is_dropped = dispositions
                .iter()
                .any(|disposition| matches!(disposition, Disposition::Dropped(_)));
            let is_unknown = dispositions
                .iter()
                .any(|disposition| matches!(disposition, Disposition::Unknown));
            let is_undone_at_end =
                self.status != TerminalStatus::Completed && !self.is_of_handler(success);
            let Some(undoing) = undoing else {
                assert!(!is_dropped, "{} is dropped, but not undone", success.number);
                assert!(!is_undone_at_end, "{} is not undone", success.number);
                kept.push(success.number);
                continue;
            };
            assert!(
                is_dropped || is_unknown || is_undone_at_end,
                "{} is undone",
                success.number
            );
            let end = undoing.end.expect("a compensation ends");
            for disposition in &dispositions {
                if let Disposition::Dropped(Some(before)) = disposition {
                    assert!(end < *before, "{} is undone too late", success.number);
                }
            }
            if !is_unknown {
                let is_for_run = undoing.owner == UndoOwner::Run;
                assert_eq!(
                    is_for_run, !is_dropped,
                    "for what {} is undone",
                    success.number
                );
                let is_at_end = phase.is_some_and(|phase| phase < undoing.start);
                assert!(
                    is_at_end || !is_for_run,
                    "{} is undone too early",
                    success.number
                );
            }
        }
        assert_eq!(self.kept, kept, "what is never undone");
    }

    /// Whether the success belongs to a handler.
    fn is_of_handler(&self, success: &Success) -> bool {
        self.definition
            .is_handler(self.definition.outermost(success.step))
    }

    /// What becomes of the work of a block.
    fn disposition(&self, block: &OpenedBlock) -> Disposition {
        let is_of_opener = |(_, event): &(u64, Event)| {
            event.scope.number == block.parent
                && event.step == Some(block.down.step)
                && event.visit == block.down.visit
        };
        let of_opener: Vec<usize> = self.positions(is_of_opener).collect();
        let ended = self.positions(|(_, event)| {
            event.scope.number == block.own && matches!(event.kind, EventKind::ScopeEnded { .. })
        });
        let ended = ended.last();
        // The history has no events of iterations that ended well.
        let scope_outcome = ended.map(|ended| match &self.events[ended].1.kind {
            EventKind::ScopeEnded { outcome } => outcome,
            kind => panic!("{kind:?}"),
        });
        let is_scope_good = scope_outcome.is_none_or(is_good);
        let step = self.definition.step(block.down.step);
        let mut end = None;
        let mut was_to_be_retried = false;
        for position in &of_opener {
            let is_later = ended.is_some_and(|ended| ended < *position);
            match &self.events[*position].1.kind {
                EventKind::StepRetry { .. } if is_later => {
                    return Disposition::Dropped(Some(*position));
                }
                // A timeout after the end of the block comes after the decision to retry it, and prevents the retry.
                EventKind::StepTimeout { .. } => was_to_be_retried = is_later,
                EventKind::StepCancelled => return Disposition::Unknown,
                EventKind::StepCompleted { outcome, .. } => end = Some((*position, outcome)),
                _ => {}
            }
        }
        let is_step_good = end.is_none_or(|(_, outcome)| is_good(outcome));
        let is_dropped = match &step.kind {
            StepKind::Block(_) if was_to_be_retried => true,
            _ if !is_step_good && step.undoes_blocks() => true,
            StepKind::Parallel(parallel) if parallel.join == Join::First => {
                let outcome = end.map(|(_, outcome)| outcome);
                match self.is_loser(block, &of_opener, outcome) {
                    Some(is_loser) => is_loser,
                    None => return Disposition::Unknown,
                }
            }
            StepKind::Parallel(_) | StepKind::ForEach(_) => is_step_good && !is_scope_good,
            _ => false,
        };
        match is_dropped {
            true => Disposition::Dropped(end.map(|(position, _)| position)),
            false => Disposition::Kept,
        }
    }

    /// Whether a branch of a step with `join: first` was not the first one to end. `None` if the history does not say.
    fn is_loser(
        &self,
        block: &OpenedBlock,
        of_opener: &[usize],
        outcome: Option<&OutcomeName>,
    ) -> Option<bool> {
        let mut joined =
            of_opener
                .iter()
                .filter_map(|position| match &self.events[*position].1.kind {
                    EventKind::BranchJoined { position, outcome } => Some((*position, outcome)),
                    _ => None,
                });
        match joined.next() {
            Some((first, of_first)) if outcome == Some(of_first) => {
                Some(first != block.down.position)
            }
            // The step timed out, so there is no loser.
            Some(_) => Some(false),
            // The step is in an iteration, of which the history may lack events.
            None => None,
        }
    }

    /// The position at which a phase begins.
    fn phase(&self, phase: Phase) -> Option<usize> {
        self.positions(|(_, event)| event.kind == EventKind::PhaseChanged { phase })
            .next()
    }

    /// Once the end is decided, only steps of handlers begin.
    fn check_phases(&self) {
        let is_phase =
            |(_, event): &(u64, Event)| matches!(event.kind, EventKind::PhaseChanged { .. });
        let Some(decided) = self.positions(is_phase).next() else {
            return;
        };
        for (_, event) in &self.events[decided..] {
            if event.kind == EventKind::StepStarted {
                let step = event.step.expect("a step has started");
                let outermost = self.definition.outermost(step);
                assert!(
                    self.definition.is_handler(outermost),
                    "{} begins",
                    self.name(step)
                );
            }
        }
    }

    /// The handler for the end of the run is executed once, after the compensations, and no other one.
    fn check_handlers(&self) {
        let wanted = self.definition.handler_at(self.terminal);
        let handlers = [self.definition.on_error, self.definition.on_cancel];
        for handler in handlers.into_iter().flatten() {
            let starts = |(_, event): &(u64, Event)| {
                event.kind == EventKind::StepStarted && event.step == Some(handler)
            };
            let starts: Vec<usize> = self.positions(starts).collect();
            let expected_count = usize::from(wanted == Some(handler));
            assert_eq!(starts.len(), expected_count, "{}", self.name(handler));
            for undoing in &self.undoings {
                if !self.is_of_handler(self.success(undoing.success)) {
                    let is_before = starts.iter().all(|start| undoing.end < Some(*start));
                    assert!(
                        is_before,
                        "{} waits for {}",
                        self.name(handler),
                        undoing.success
                    );
                }
            }
        }
    }

    fn name(&self, step: StepIndex) -> &StepName {
        let step: &Step = self.definition.step(step);
        &step.name
    }
}

pub(super) fn is_good(outcome: &OutcomeName) -> bool {
    matches!(outcome.as_str(), "success" | "skipped" | "approved")
}
