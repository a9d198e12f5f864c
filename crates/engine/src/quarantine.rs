//! Contains panics: a bug in one run must not stop the cluster (design rule 10).
//!
//! A panic rolls back the turn. A separate turn then quarantines the subject, identically on every replica: later
//! commands for the subject are rejected, and its timers are cleared. `release` returns it to service.

mod release;

pub use release::ReleaseQuarantined;

use crate::command::Command;
use crate::effect::Effect;
use crate::ids::{GroupNumber, RunNumber, StreamNumber};
use crate::message::cut;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::subject::Subject;
use crate::tables::{
    ActionRunOwner, ActionRuns, DefinitionNumber, EventKind, Quarantine, QuarantineRecord,
    QuarantinedItem, QuarantinedKind, RunNames, Runs, TimerKey, TimerKind,
};
use crate::turn::{Abort, EntryState, Turn};
use crate::{group, ids, quota, run, schedule, stream, trigger};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of containing a panic.
pub(crate) struct ContainedPanic {
    /// The result of the command. Only the rejection contains the panic message: the message may differ between builds,
    /// so no row may store it (design rule 1).
    pub(crate) rejection: Rejection,
    /// Effects for the watchers of the quarantined run.
    pub(crate) effects: Vec<Effect>,
}

/// Quarantines the subject of the innermost work that still exists once the turn is rolled back, or else the command's
/// own, and rejects the command with `internal`.
pub(crate) fn contain(
    state: &mut EntryState<'_>,
    command: &Command,
    panic: &(dyn Any + Send),
) -> Result<ContainedPanic, StoreError> {
    let mut blamed = state.take_panic_subjects();
    blamed.push(command.body.subject());
    let noted = catch_unwind(AssertUnwindSafe(|| {
        quarantine(state, command, &blamed, Note::InHistory)
    }));
    let effects = match noted {
        Ok(effects) => effects?,
        // What panicked may be what writes the run's history. Without the note, nothing of the run is written.
        Err(_) => quarantine(state, command, &blamed, Note::Nowhere)?,
    };
    Ok(ContainedPanic {
        rejection: Rejection::Internal(message(panic)),
        effects,
    })
}

/// Where the quarantine of a run is noted.
#[derive(PartialEq, Eq)]
enum Note {
    InHistory,
    Nowhere,
}

/// Quarantines the first of the blamed subjects that exists; returns the effects. A run that the turn created was rolled
/// back with it, so the one that created it is to blame.
fn quarantine(
    state: &mut EntryState<'_>,
    command: &Command,
    blamed: &[Subject],
    note: Note,
) -> Result<Vec<Effect>, StoreError> {
    let named = command.body.subject();
    let mut turn = Turn::new(state, 0);
    turn.cluster_mut().panics_count += 1;
    let mut subject = None;
    for one in blamed {
        subject = locate(&mut turn, command, one.clone())?;
        if subject.is_some() {
            break;
        }
    }
    match subject {
        Some((QuarantinedKind::Schedule, number)) => {
            schedule::quarantine(&mut turn, DefinitionNumber(number))?;
        }
        Some((QuarantinedKind::Trigger, number)) => {
            trigger::quarantine(&mut turn, DefinitionNumber(number))?;
        }
        Some((QuarantinedKind::Stream, number)) => {
            stream::quarantine(&mut turn, StreamNumber(number))?;
        }
        Some((QuarantinedKind::Group, number)) => {
            group::quarantine(&mut turn, GroupNumber(number))?;
        }
        Some(_) | None => {}
    }
    if let Subject::Timer(timer) = named {
        // A bug in another subject must not lose the timer: it fires again.
        if subject.is_none() || subject == of_timer(&mut turn, timer)? {
            turn.clear_timer(timer);
        }
    }
    if let Some((kind, number)) = subject {
        let is_new = turn.get::<Quarantine>(&(kind, number))?.is_none();
        if kind == QuarantinedKind::Run && is_new {
            schedule::run_quarantined(&mut turn, RunNumber(number))?;
        }
        let at_ms = turn.now_ms();
        let raft_index = turn.raft_index();
        let record = QuarantineRecord { at_ms, raft_index };
        turn.put::<Quarantine>(&(kind, number), record);
        if kind == QuarantinedKind::Run && note == Note::InHistory {
            note_quarantine(&mut turn, RunNumber(number))?;
        }
    }
    quota::write_all(&mut turn)?;
    let effects = turn.commit();
    if let Some(subject) = subject {
        state.quarantine(subject);
    }
    Ok(effects)
}

/// Records the quarantine in the run's history.
fn note_quarantine(turn: &mut Turn<'_, '_>, number: RunNumber) -> Result<(), StoreError> {
    let noted = turn
        .note_run(number, EventKind::RunQuarantined)
        .and_then(|()| run::write_all(turn));
    match noted {
        Ok(()) => Ok(()),
        Err(Abort::Store(error)) => Err(error),
        Err(Abort::Rejected(rejection)) => {
            panic!("expected a run's history to take an event, but {rejection}")
        }
    }
}

/// The item to quarantine, if it exists.
fn locate(
    turn: &mut Turn<'_, '_>,
    command: &Command,
    subject: Subject,
) -> Result<Option<QuarantinedItem>, StoreError> {
    match subject {
        Subject::Run(run_id) => {
            let number = match (run_id.generated_number(), command.scope.namespace()) {
                (Some(number), _) => Some(number),
                (None, Some(namespace)) => turn
                    .get::<RunNames>(&(namespace.clone(), run_id))?
                    .map(|number| *number),
                (None, None) => None,
            };
            existing_run(turn, number)
        }
        Subject::RunNumber(number) => existing_run(turn, Some(number)),
        Subject::ActionRun(number) => of_action_run(turn, number),
        Subject::Timer(timer) => of_timer(turn, timer),
        Subject::Schedule(definition) => Ok(Some((QuarantinedKind::Schedule, definition.0))),
        Subject::Trigger(definition) => Ok(Some((QuarantinedKind::Trigger, definition.0))),
        Subject::Stream(number) => Ok(Some((QuarantinedKind::Stream, number.0))),
        Subject::Quarantined(subject) => {
            let is_quarantined = turn.get::<Quarantine>(&subject)?.is_some();
            Ok(is_quarantined.then_some(subject))
        }
        Subject::Worker(_) | Subject::Nothing => Ok(None),
    }
}

fn existing_run(
    turn: &mut Turn<'_, '_>,
    number: Option<RunNumber>,
) -> Result<Option<QuarantinedItem>, StoreError> {
    let Some(number) = number else {
        return Ok(None);
    };
    let exists = turn.get::<Runs>(&number)?.is_some();
    Ok(exists.then_some((QuarantinedKind::Run, number.0)))
}

fn of_action_run(
    turn: &mut Turn<'_, '_>,
    number: ids::ActionRunNumber,
) -> Result<Option<QuarantinedItem>, StoreError> {
    Ok(turn
        .get::<ActionRuns>(&number)?
        .map(|record| match record.owner {
            ActionRunOwner::Step { run, .. } => (QuarantinedKind::Run, run.0),
            ActionRunOwner::Caller => (QuarantinedKind::ActionRun, number.0),
        }))
}

fn of_timer(
    turn: &mut Turn<'_, '_>,
    timer: TimerKey,
) -> Result<Option<QuarantinedItem>, StoreError> {
    match timer.kind {
        TimerKind::StepWake
        | TimerKind::StepDeadline
        | TimerKind::Continuation
        | TimerKind::RunTimeout
        | TimerKind::StepTotal
        | TimerKind::StepAttempt
        | TimerKind::RunStart => existing_run(turn, Some(RunNumber(timer.subject))),
        TimerKind::TaskReady | TimerKind::ReportExpiry | TimerKind::WaitExpiry => {
            of_action_run(turn, ids::ActionRunNumber(timer.subject))
        }
        TimerKind::LeaseExpiry | TimerKind::WorkerSilence | TimerKind::WorkerGone => {
            Ok(Some((QuarantinedKind::Worker, timer.subject)))
        }
        TimerKind::CacheExpiry => Ok(Some((QuarantinedKind::Plan, timer.subject))),
        TimerKind::StreamSweep => Ok(Some((QuarantinedKind::Stream, timer.subject))),
        TimerKind::GroupDue => Ok(Some((QuarantinedKind::Group, timer.subject))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message");
    cut(text)
}
