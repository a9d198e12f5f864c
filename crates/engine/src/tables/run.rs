//! Workflow runs: the engine's hottest record.

use super::{
    CompensationCounts, Continuation, DefinitionNumber, PayloadRef, RunCursor, ScopeProgress,
    SignalCounts, tables,
};
use crate::definition::{StepIndex, Target, TerminalStatus, TriggerIndex};
use crate::ids::{
    ConcurrencyKeyNumber, IdempotencyKey, LockNumber, Namespace, RunId, RunNumber, StepName,
    WorkflowName,
};
use crate::json::Json;
use crate::mostly_default::{ConstDefault, MostlyDefault};
use crate::stream::RecordId;
use crate::trace::TraceContext;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By number. Live until retention ends.
    6 Runs(RunNumber) -> RunRecord, HOT while |run| run.status.is_open() => RunRecord::content_bytes;
    /// Runs whose caller chose the id (W20). Live as long as the run.
    7 RunNames((Namespace, RunId)) -> RunNumber;
    /// Runs by idempotency key (W20). Live as long as the run.
    8 IdempotencyKeys((Namespace, WorkflowName, IdempotencyKey)) -> RunNumber;
    /// Activations that wait for the check of a child's input (W4) or of their output (W67) against a schema, and, as
    /// activation 0, runs whose locks are to be compiled (W85), or, as the greatest activation, whose output is checked (W67). Live until the result arrives.
    25 SchemaChecks((RunNumber, u64)) -> ();
}

/// A workflow run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Where it belongs.
    pub namespace: Namespace,
    /// Its published id.
    pub id: RunId,
    /// The revision that it is pinned to (W5).
    pub definition: DefinitionNumber,
    /// Where it stands.
    pub status: RunStatus,
    /// How it ended; `None` while it is open.
    pub end: Option<End>,
    /// How it will end; `None` before that is decided, and once it has ended.
    pub fixed_end: Option<Box<FixedEnd>>,
    /// What earlier and later resumes need (W89).
    pub resumption: MostlyDefault<Resumption>,
    /// Why it waits or how it failed (W21a).
    pub detail: Option<String>,
    /// What started it.
    pub triggered_by: TriggeredBy,
    /// The run that waits for it (W17).
    pub parent: Option<ParentLink>,
    /// Its place among the attempts at a run that is retried; `None` if it is the only one (W77).
    pub chain: Option<AttemptChain>,
    /// What it holds or waits for while the number of runs is limited (W84, W85).
    pub start_limits: MostlyDefault<StartLimits>,
    /// How many runs are above it (W17).
    pub nesting: u16,
    /// The trace that it was started in, by its caller or its parent's.
    pub trace: Option<TraceContext>,
    /// The caller's key, so that it is forgotten with the run (W20).
    pub idempotency_key: Option<IdempotencyKey>,
    /// How many runs led to it, each started by a record that the one before it had emitted: those of the records that
    /// started it, or that of its parent (W62).
    pub hops: u8,
    /// The number of open activations; their rows are in [`Activations`](super::Activations) (design rule 7).
    pub active_count: u32,
    /// Activations so far: the last one's number.
    pub activations_count: u64,
    /// Steps left so far: the [order](super::StepResult::order) of the last one.
    pub left_count: u64,
    /// The counts of the scopes below it.
    pub scopes: MostlyDefault<ScopeCounts>,
    /// Steps entered or retried immediately, in any scope, since one of them last waited for something from outside (W16).
    pub unwaited_steps_count: u32,
    /// How far the run itself has come, without the scopes below it.
    pub progress: ScopeProgress,
    /// The step that was first visited so often that the run warns of it (W78).
    pub looping_step: Option<StepIndex>,
    /// Present while work is deferred to a later entry (design rule 13).
    pub continuation: Option<Continuation>,
    /// Search attributes by their position in the definition; absent ones are missing (W22).
    pub attributes: BTreeMap<u16, AttributeValue>,
    /// Its timers.
    pub timers: MostlyDefault<RunTimers>,
    /// The input.
    pub input: PayloadRef,
    /// The metadata that it was started with (W91).
    pub metadata: Option<PayloadRef>,
    /// The output; set when the run ends with one.
    pub output: Option<PayloadRef>,
    /// Payloads so far; the next one's position.
    pub payloads_count: u64,
    /// The counts of its signals (W19).
    pub signals: MostlyDefault<SignalCounts>,
    /// Its info entries: the number of the last one (W92).
    pub infos_count: u32,
    /// What it can undo (W82).
    pub compensations: MostlyDefault<CompensationCounts>,
    /// The state of its history.
    pub history: HistoryCursor,
    /// When it was created, in milliseconds.
    pub started_at_ms: u64,
    /// When it entered its first step, in milliseconds.
    pub began_at_ms: Option<u64>,
    /// In milliseconds; set when the run ends.
    pub completed_at_ms: Option<u64>,
}

/// A revision to which a run was pinned before it was resumed with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerDefinition {
    /// The revision.
    pub definition: DefinitionNumber,
    /// The number of the last event that the run had with it.
    pub last_event: u64,
}

/// What earlier and later resumes of a run need (W89).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    /// The revisions that it was pinned to before it was resumed with other ones, the oldest first.
    pub former_definitions: Vec<FormerDefinition>,
    /// Where it continues when it is resumed; `None` while it runs, once it has completed, and for its beginning.
    pub cursor: Option<RunCursor>,
    /// How often it was resumed.
    pub resumes_count: u32,
}

impl ConstDefault for Resumption {
    const DEFAULT: &'static Self = &Self {
        former_definitions: Vec::new(),
        cursor: None,
        resumes_count: 0,
    };
}

/// What a run holds or waits for while the number of runs is limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartLimits {
    /// The concurrency keys that it holds or waits for; `None` if it is not limited, or has not asked for them (W84).
    pub concurrency: Option<RunConcurrency>,
    /// How many other idempotency keys name it, since it held a concurrency key when they were given (W84).
    pub bound_keys_count: u32,
    /// Whether it keeps others from starting; `None` without a target and locks (W85).
    pub exclusion: Option<Exclusion>,
}

impl ConstDefault for StartLimits {
    const DEFAULT: &'static Self = &Self {
        concurrency: None,
        bound_keys_count: 0,
        exclusion: None,
    };
}

/// The counts of the scopes below a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeCounts {
    /// Scopes so far: the last one's number (W53).
    pub opened_count: u64,
    /// What the open ones have written to the state, in bytes (W58).
    pub state_writes_bytes: u64,
    /// Whether the state of the run has writes of a sequential loop that no event has (W90).
    pub has_unrecorded_writes: bool,
}

impl ConstDefault for ScopeCounts {
    const DEFAULT: &'static Self = &Self {
        opened_count: 0,
        state_writes_bytes: 0,
        has_unrecorded_writes: false,
    };
}

/// The timers of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimers {
    /// When it begins, in milliseconds; `None` once it has begun (W76).
    pub starts_at_ms: Option<u64>,
    /// When it times out, in milliseconds; `None` without a timeout, and before its first step (W73).
    pub times_out_at_ms: Option<u64>,
}

impl ConstDefault for RunTimers {
    const DEFAULT: &'static Self = &Self {
        starts_at_ms: None,
        times_out_at_ms: None,
    };
}

impl RunRecord {
    /// The definitions that it had, the current one last.
    pub(crate) fn definition_numbers(&self) -> impl Iterator<Item = DefinitionNumber> {
        let former = self.resumption.former_definitions.iter();
        let former = former.map(|former| former.definition);
        former.chain([self.definition])
    }

    /// Whether it has entered a step.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.began_at_ms.is_some()
    }

    /// Whether it has taken over results and a state from the run that it retries (W90).
    #[must_use]
    pub fn has_taken_over(&self) -> bool {
        matches!(self.triggered_by, TriggeredBy::Retry { from: Some(_), .. })
    }

    /// Whether it can enter a step again that no transition leads back to: it was resumed, or has taken over results.
    #[must_use]
    pub fn may_repeat_any_step(&self) -> bool {
        self.resumption.resumes_count > 0 || self.has_taken_over()
    }

    /// The first attempt, of the run with this number (W77).
    #[must_use]
    pub fn first_attempt(&self, number: RunNumber) -> RunNumber {
        self.chain.map_or(number, |chain| chain.first)
    }

    /// Its places at the concurrency keys that it waits for; `None` if it does not wait for any (W84).
    #[must_use]
    pub fn awaited_keys(&self) -> Option<&[ConcurrencyPlace]> {
        let waiting = self
            .start_limits
            .concurrency
            .as_ref()
            .filter(|own| !own.is_held);
        waiting.map(|own| &own.places[..])
    }

    /// Whether it cannot begin before its locks are compiled (W85).
    #[must_use]
    pub fn awaits_locks(&self) -> bool {
        self.start_limits.exclusion == Some(Exclusion::Compiling)
    }

    /// Whether it cannot begin or continue now: it waits for its concurrency keys or its locks.
    #[must_use]
    pub fn is_held_up(&self) -> bool {
        self.awaited_keys().is_some() || self.awaits_locks()
    }

    /// The size of what the definition takes from payloads, in bytes.
    fn content_bytes(&self) -> usize {
        self.attributes.values().map(AttributeValue::bytes).sum()
    }

    /// Changes the status.
    ///
    /// # Panics
    /// If the transition to `next` is not allowed.
    pub(crate) fn become_status(&mut self, next: RunStatus) {
        let status = self.status;
        assert!(
            status.may_become(next),
            "expected a status that may follow {status:?}, but {next:?} may not"
        );
        self.status = next;
    }
}

/// The manual's run statuses, those of an open run (W21); an ended one has its [`End`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RunStatus {
    /// Created but not yet started.
    Pending,
    /// Between two waits.
    Running,
    /// Waits for a signal, an action, a child or a timer.
    Waiting,
    /// Reached a terminal.
    Ended(TerminalStatus),
}

impl RunStatus {
    /// All statuses, in the manual's order.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::Ended(TerminalStatus::Completed),
        Self::Ended(TerminalStatus::Failed),
        Self::Ended(TerminalStatus::Cancelled),
        Self::Ended(TerminalStatus::TimedOut),
    ];

    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Ended(status) => status.name(),
        }
    }

    /// Whether a run may go from this status to `next` within a turn: never back to pending, and out of an end only when it
    /// is resumed, which a completed run is not.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Pending, Self::Pending | Self::Running | Self::Waiting | Self::Ended(_))
            | (Self::Running | Self::Waiting, Self::Running | Self::Waiting | Self::Ended(_)) => {
                true
            }
            (Self::Running | Self::Waiting, Self::Pending) => false,
            (Self::Ended(status), Self::Pending) => status != TerminalStatus::Completed,
            (Self::Ended(status), next) => next == Self::Ended(status),
        }
    }

    /// Whether the run has not ended.
    #[must_use]
    pub fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::Waiting => true,
            Self::Ended(_) => false,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The terminal: never [`Target::Step`].
    pub terminal: Target,
    /// Why it failed or timed out, an object (W80); `None` for another end.
    pub error: Option<Box<PayloadRef>>,
}

/// The end that an open run will have: it is final (W83).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedEnd {
    /// The terminal: never [`Target::Step`].
    pub terminal: Target,
    /// Why, where the terminal does not say.
    pub reason: Option<String>,
    /// What the run does before it ends.
    pub phase: Phase,
    /// As in [`End`].
    pub error: Option<Box<PayloadRef>>,
    /// What the handler reads, an object; `None` if none is executed.
    pub cause: Option<PayloadRef>,
    /// Whether the handler has ended or was stopped.
    pub is_handler_over: bool,
    /// How many cancelled steps have not ended yet (W54).
    pub cancelling_count: u32,
    /// Whether another attempt begins when this one ends (W77).
    pub is_retried: bool,
}

/// The place of a run among its attempts: each but the first begins when the one before it ends (W77).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptChain {
    /// The first one, which callers and the parent know. It is kept as long as the last one.
    pub first: RunNumber,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The one before it.
    pub previous: Option<RunNumber>,
    /// The one after it.
    pub next: Option<RunNumber>,
    /// Of the first one: the last one so far.
    pub latest: RunNumber,
    /// Whether one of those before it has waited for something from outside, or for its beginning.
    pub has_waited: bool,
    /// If none has: how many steps those before it have taken (W16).
    pub steps_before: u32,
}

/// The concurrency keys of a run (W84): it holds all of them, or waits until it can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunConcurrency {
    /// Whether it holds them.
    pub is_held: bool,
    /// Its place at each key, in the order of the definition; never empty.
    pub places: Vec<ConcurrencyPlace>,
}

/// A run's place at a concurrency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyPlace {
    /// The key.
    pub key: ConcurrencyKeyNumber,
    /// The position among those that hold it, or among those that wait for it.
    pub position: u64,
    /// Runs that hold the key at a time, at most, by this run's definition.
    pub limit: u32,
    /// Whether it replaces the run that has held the key for the longest time.
    pub is_replacing: bool,
}

/// Whether the target and the locks of a run keep others from starting (W85). What they are is in
/// [`Exclusions`](super::Exclusions).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exclusion {
    /// It holds its target, and waits until its locks are compiled.
    Compiling,
    /// It holds its target and its locks.
    Held {
        /// Its place at each lock.
        locks: Vec<LockPlace>,
    },
    /// It has ended, or its next attempt holds them.
    Released,
}

/// A run's place among those that hold a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockPlace {
    /// The lock.
    pub lock: LockNumber,
    /// The position among those that hold it.
    pub position: u64,
}

/// What a run does between the decision about its end and the end (W83).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// What was open ends: tasks that workers hold, and children.
    Cancelling,
    /// It undoes what its steps have done.
    Compensating,
    /// It executes `onError`.
    OnError,
    /// It executes `onCancel`.
    OnCancel,
    /// Its output is checked against a schema (W67).
    CheckingOutput,
}

impl Phase {
    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelling => "cancelling",
            Self::Compensating => "compensating",
            Self::OnError => "on_error",
            Self::OnCancel => "on_cancel",
            Self::CheckingOutput => "checking_output",
        }
    }
}

/// What started a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TriggeredBy {
    /// A caller.
    Caller,
    /// A step of another run (W17).
    Parent,
    /// Its workflow's schedule (W40).
    Schedule {
        /// The firing, in milliseconds.
        firing_ms: u64,
    },
    /// A trigger of its workflow (W41).
    Trigger {
        /// The trigger.
        trigger: TriggerIndex,
        /// The first of the records that it began with.
        first: RecordId,
    },
    /// A caller, to replace an ended run (W90).
    Retry {
        /// The run that has ended.
        of: RunId,
        /// The step with which it begins, if that is not the first one.
        from: Option<StepName>,
    },
}

impl TriggeredBy {
    /// The published name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Caller => "api",
            Self::Parent => "child",
            Self::Schedule { .. } => "schedule",
            Self::Trigger { .. } => "trigger",
            Self::Retry { .. } => "retry",
        }
    }

    /// That of a further attempt, which begins with the first step (W77).
    pub(crate) fn beginning_at_first_step(&self) -> Self {
        match self {
            Self::Retry { of, .. } => Self::Retry {
                of: of.clone(),
                from: None,
            },
            other => other.clone(),
        }
    }

    /// Whether a run that exists already can be used instead of a new one (W84). Parents and schedules wait for the run that
    /// they start, and a retry repeats a certain run.
    pub(crate) fn may_use_existing(&self) -> bool {
        match self {
            Self::Caller | Self::Trigger { .. } => true,
            Self::Parent | Self::Schedule { .. } | Self::Retry { .. } => false,
        }
    }
}

/// The run and activation that wait for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    /// The parent.
    pub run: RunNumber,
    /// Its waiting activation.
    pub activation: u64,
    /// Whether the child was resumed by itself, after its parent had ended: no parent awaits it (W89).
    pub is_detached: bool,
}

/// A search attribute's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttributeValue {
    /// A text.
    String(String),
    /// A JSON number, as it was written.
    Number(Json),
    /// Milliseconds since the Unix epoch.
    Timestamp(i64),
}

impl AttributeValue {
    fn bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Number(number) => number.as_str().len(),
            Self::Timestamp(_) => size_of::<i64>(),
        }
    }
}

/// The state of a run's history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryCursor {
    /// Events so far: the last one's sequence number.
    pub events_count: u64,
    /// What was trimmed.
    pub trimming: MostlyDefault<Trimming>,
}

/// What was trimmed from a run's history; all zero as long as nothing was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trimming {
    /// The events after `after` up to and including this one were trimmed.
    pub until: u64,
    /// See `until`.
    pub after: u64,
    /// Up to this event, the rows that only trimmed events refer to were deleted.
    pub swept_until: u64,
    /// Payloads that were stored by the end of the events before the trimmed ones: all of them are kept.
    pub head_payloads_count: u64,
    /// Payloads that were stored by the end of the trimmed events.
    pub payloads_count: u64,
    /// Payloads at the positions below were dropped, or are held by a row.
    pub swept_payloads_count: u64,
    /// Action runs up to this number were dropped, or are kept for an event before the trimmed ones.
    pub swept_action_runs: u64,
}

impl ConstDefault for Trimming {
    const DEFAULT: &'static Self = &Self {
        until: 0,
        after: 0,
        swept_until: 0,
        head_payloads_count: 0,
        payloads_count: 0,
        swept_payloads_count: 0,
        swept_action_runs: 0,
    };
}

impl HistoryCursor {
    /// Whether the event `seq` is kept.
    #[must_use]
    pub fn keeps(&self, seq: u64) -> bool {
        seq <= self.trimming.after || seq > self.trimming.until
    }
}
