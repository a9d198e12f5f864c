//! A bug in one run must not stop the cluster (design rule 10).
//!
//! A panic drops the turn's overlay. What the command names is then set aside in a turn of its own,
//! the same on every replica: later commands for it are refused, its timers are taken back. `retry` takes
//! it up again.

mod retry;

pub use retry::RetryQuarantined;

use crate::command::{Command, Subject};
use crate::effect::Effect;
use crate::ids::{GroupNumber, RunNumber, StreamNumber};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRuns, Cluster, DefinitionNumber, EventKind, Quarantine, QuarantineRecord,
    Quarantined, QuarantinedKind, RunNames, Runs, TimerKey, TimerKind,
};
use crate::turn::{EntryState, Halt, Turn};
use crate::{group, ids, run, schedule, stream, trigger};
use std::any::Any;

/// What is left to say after a panic was contained.
pub(crate) struct Contained {
    /// The answer to the command. It alone has the panic's words: they may differ between builds, so
    /// no row may hold them (design rule 1).
    pub(crate) rejection: Rejection,
    /// For those who watch the run that was set aside.
    pub(crate) effects: Vec<Effect>,
}

/// Sets aside whose work `command` was doing, else what it names, and answers `internal`.
pub(crate) fn contain(
    state: &mut EntryState<'_>,
    command: &Command,
    panic: &(dyn Any + Send),
) -> Result<Contained, StoreError> {
    let detail = message(panic);
    let suspect = state.take_suspect();
    let named = command.body.subject();
    let mut turn = Turn::new(state, 0);
    let mut cluster = turn.cluster()?;
    cluster.panics_count += 1;
    turn.put::<Cluster>(&(), cluster);
    let culprit = locate(&mut turn, command, suspect.unwrap_or_else(|| named.clone()))?;
    // The run of a firing is gone with the turn, and the firing would be tried for ever.
    let culprit = match (culprit, &named) {
        (None, Subject::Schedule(definition)) => Some((QuarantinedKind::Schedule, definition.0)),
        (None, Subject::Trigger(definition)) => Some((QuarantinedKind::Trigger, definition.0)),
        (culprit, _) => culprit,
    };
    match culprit {
        Some((QuarantinedKind::Schedule, number)) => {
            schedule::set_aside(&mut turn, DefinitionNumber(number))?;
        }
        Some((QuarantinedKind::Trigger, number)) => {
            trigger::set_aside(&mut turn, DefinitionNumber(number))?;
        }
        Some((QuarantinedKind::Stream, number)) => {
            stream::set_aside(&mut turn, StreamNumber(number))?;
        }
        Some((QuarantinedKind::Group, number)) => {
            group::set_aside(&mut turn, GroupNumber(number))?;
        }
        Some(_) | None => {}
    }
    if let Subject::Timer(timer) = named {
        // Somebody else's bug is no reason to lose the timer: it fires again.
        if culprit.is_none() || culprit == of_timer(&mut turn, timer)? {
            turn.clear_timer(timer);
        }
    }
    if let Some((kind, number)) = culprit {
        let at_ms = turn.now_ms();
        let raft_index = turn.raft_index();
        let record = QuarantineRecord { at_ms, raft_index };
        turn.put::<Quarantine>(&(kind, number), record);
        if kind == QuarantinedKind::Run {
            note_quarantine(&mut turn, RunNumber(number))?;
        }
    }
    let effects = turn.commit();
    if let Some(culprit) = culprit {
        state.quarantine(culprit);
    }
    Ok(Contained {
        rejection: Rejection::Internal(detail),
        effects,
    })
}

/// Says in the run's history that it was set aside.
fn note_quarantine(turn: &mut Turn<'_, '_>, number: RunNumber) -> Result<(), StoreError> {
    let noted =
        run::note(turn, number, EventKind::RunQuarantined).and_then(|()| run::write_all(turn));
    match noted {
        Ok(()) => Ok(()),
        Err(Halt::Store(error)) => Err(error),
        Err(Halt::Rejected(rejection)) => {
            panic!("expected a run's history to take an event, but {rejection}")
        }
    }
}

/// What is to be set aside, as far as it exists.
fn locate(
    turn: &mut Turn<'_, '_>,
    command: &Command,
    subject: Subject,
) -> Result<Option<Quarantined>, StoreError> {
    match subject {
        Subject::Run(run_id) => {
            let number = match run_id.generated_number() {
                Some(number) => Some(number),
                None => turn
                    .get::<RunNames>(&(command.namespace.clone(), run_id))?
                    .map(|number| *number),
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
            let is_set_aside = turn.get::<Quarantine>(&subject)?.is_some();
            Ok(is_set_aside.then_some(subject))
        }
        Subject::Worker(_) | Subject::Nothing => Ok(None),
    }
}

fn existing_run(
    turn: &mut Turn<'_, '_>,
    number: Option<RunNumber>,
) -> Result<Option<Quarantined>, StoreError> {
    let Some(number) = number else {
        return Ok(None);
    };
    let exists = turn.get::<Runs>(&number)?.is_some();
    Ok(exists.then_some((QuarantinedKind::Run, number.0)))
}

fn of_action_run(
    turn: &mut Turn<'_, '_>,
    number: ids::ActionRunNumber,
) -> Result<Option<Quarantined>, StoreError> {
    Ok(turn
        .get::<ActionRuns>(&number)?
        .map(|record| match record.owner {
            ActionRunOwner::Step { run, .. } => (QuarantinedKind::Run, run.0),
            ActionRunOwner::Caller => (QuarantinedKind::ActionRun, number.0),
        }))
}

fn of_timer(turn: &mut Turn<'_, '_>, timer: TimerKey) -> Result<Option<Quarantined>, StoreError> {
    match timer.kind {
        TimerKind::StepWake | TimerKind::SignalTimeout | TimerKind::Continuation => {
            existing_run(turn, Some(RunNumber(timer.subject)))
        }
        TimerKind::TaskReady | TimerKind::LeaseExpiry | TimerKind::ReportExpiry => {
            of_action_run(turn, ids::ActionRunNumber(timer.subject))
        }
        TimerKind::WorkerSilence => Ok(Some((QuarantinedKind::Worker, timer.subject))),
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

/// The beginning of `text`, at most `MESSAGE_BYTES_MAX` bytes, cut between characters.
pub(crate) fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(MESSAGE_BYTES_MAX);
    text[..end].to_owned()
}
