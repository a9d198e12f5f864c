//! A run.

use super::{Row, attributes, progress, row};
use crate::samples;
use flotilla_engine::definition::{BuiltInTerminal, StepIndex, Target, TerminalStatus};
use flotilla_engine::ids::{ActionRunNumber, ConcurrencyKeyNumber, LockNumber, RunNumber};
use flotilla_engine::rows::{
    AttemptChain, CompensationCounts, CompensationProgress, ConcurrencyPlace, Continuation, Cursor,
    DefinitionNumber, End, Exclusion, FixedEnd, FormerDefinition, HistoryCursor, InfoRecord,
    InfoTask, Infos, LockPlace, ParentLink, Phase, Resumption, RunConcurrency, RunCursor,
    RunRecord, RunStatus, RunTimers, RunUsageRecord, RunUsages, ScopeCounts, ScopeId, SignalCounts,
    StartLimits, StepUsages, TriggeredBy, Trimming,
};

/// Where it continues.
fn cursor() -> RunCursor {
    RunCursor {
        at: Cursor::Step {
            step: StepIndex(1),
            visits_count: 2,
            is_entered: true,
        },
        is_after_success: true,
    }
}

/// A run that has been through everything.
pub(super) fn record() -> RunRecord {
    let payload = samples::payload();
    RunRecord {
        timers: RunTimers {
            starts_at_ms: Some(2_000),
            times_out_at_ms: Some(60_000),
        }
        .into(),
        looping_step: Some(StepIndex(1)),
        namespace: samples::namespace(),
        id: samples::run_id(),
        definition: DefinitionNumber(4),
        resumption: resumption().into(),
        hops: 3,
        status: RunStatus::Ended(TerminalStatus::TimedOut),
        end: Some(End {
            error: Some(Box::new(samples::payload())),
            terminal: Target::BuiltIn(BuiltInTerminal::TimedOut),
        }),
        fixed_end: Some(Box::new(fixed_end())),
        compensations: compensations().into(),
        detail: Some("too late".to_owned()),
        triggered_by: TriggeredBy::Parent,
        parent: Some(ParentLink {
            run: RunNumber(6),
            activation: 1,
            is_detached: true,
        }),
        chain: Some(chain()),
        start_limits: start_limits().into(),
        began_at_ms: Some(1_200),
        nesting: 1,
        trace: Some(samples::trace()),
        idempotency_key: Some(samples::key()),
        active_count: 2,
        activations_count: 7,
        left_count: 5,
        scopes: ScopeCounts {
            opened_count: 4,
            state_writes_bytes: 11,
            has_unrecorded_writes: true,
        }
        .into(),
        unwaited_steps_count: 6,
        progress: progress(),
        continuation: Some(Continuation {
            due_ms: 1_500,
            next: 2,
            next_again: 1,
        }),
        attributes: attributes(),
        input: payload,
        metadata: Some(payload),
        output: Some(payload),
        payloads_count: 3,
        infos_count: 2,
        signals: signals().into(),
        history: history(),
        started_at_ms: 1_000,
        completed_at_ms: Some(9_000),
    }
}

fn resumption() -> Resumption {
    Resumption {
        former_definitions: vec![FormerDefinition {
            definition: DefinitionNumber(3),
            last_event: 8,
        }],
        cursor: Some(cursor()),
        resumes_count: 1,
    }
}

fn start_limits() -> StartLimits {
    StartLimits {
        concurrency: Some(concurrency()),
        bound_keys_count: 1,
        exclusion: Some(Exclusion::Held {
            locks: vec![LockPlace {
                lock: LockNumber(4),
                position: 6,
            }],
        }),
    }
}

fn history() -> HistoryCursor {
    HistoryCursor {
        events_count: 20_000,
        trimming: Trimming {
            until: 10_100,
            after: 100,
            swept_until: 9_900,
            head_payloads_count: 40,
            payloads_count: 2_100,
            swept_payloads_count: 2_000,
            swept_action_runs: 70,
        }
        .into(),
    }
}

fn compensations() -> CompensationCounts {
    CompensationCounts {
        entered_count: 3,
        open_count: 2,
        progress: CompensationProgress::Running,
        has_failed: true,
        dropped_failed_count: 2,
    }
}

fn signals() -> SignalCounts {
    SignalCounts {
        received_count: 4,
        kept_count: 1,
        kept_bytes: 20,
        ids_count: 2,
    }
}

fn concurrency() -> RunConcurrency {
    RunConcurrency {
        is_held: true,
        places: vec![ConcurrencyPlace {
            key: ConcurrencyKeyNumber(3),
            position: 5,
            limit: 2,
            is_replacing: true,
        }],
    }
}

fn chain() -> AttemptChain {
    AttemptChain {
        first: RunNumber(7),
        attempt: 2,
        previous: Some(RunNumber(8)),
        next: Some(RunNumber(10)),
        latest: RunNumber(11),
        has_waited: true,
        steps_before: 9,
    }
}

fn fixed_end() -> FixedEnd {
    FixedEnd {
        is_handler_over: true,
        terminal: Target::BuiltIn(BuiltInTerminal::Failed),
        reason: Some("because".to_owned()),
        phase: Phase::OnCancel,
        error: Some(Box::new(samples::payload())),
        cause: Some(samples::payload()),
        cancelling_count: 3,
        is_retried: true,
    }
}

/// What the tasks of a run and of one of its steps have used.
pub(super) fn usages() -> [Row; 2] {
    let sums = RunUsageRecord {
        own: samples::json(),
        below: samples::json(),
    };
    [
        row::<RunUsages>(RunNumber(7), sums),
        row::<StepUsages>((RunNumber(7), StepIndex(1)), samples::json()),
    ]
}

/// An info entry of a task.
pub(super) fn info() -> Row {
    let task = InfoTask {
        definition: DefinitionNumber(5),
        scope: ScopeId::default(),
        step: StepIndex(1),
        visit: 2,
        action_run: ActionRunNumber(7),
        attempt: 1,
    };
    let record = InfoRecord {
        at_ms: 60_000,
        task: Some(task),
        content: samples::json(),
    };
    row::<Infos>((RunNumber(7), 3), record)
}
