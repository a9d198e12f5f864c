//! Retrying a run as a whole: when it ends, another attempt begins from the start. To callers, the parent and the schedule,
//! all attempts are one run (W77).

use super::child::FIRST_WORK;
use super::create::{NewRun, Parent, create, next_number};
use super::{index, phase};
use crate::definition::{BuiltInTerminal, Target, TerminalStatus};
use crate::ids::RunNumber;
use crate::run::outcome_name;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{AttemptChain, EndCause, Ending, EventKind};
use crate::turn::{Abort, LoadedRun, Turn, TurnResult};

/// The code of an end at which no attempt is left.
const EXHAUSTED: &str = "retry_exhausted";

/// The last attempt so far of the run of which `number` is one attempt.
pub(crate) fn latest(turn: &mut Turn<'_, '_>, number: RunNumber) -> Result<RunNumber, StoreError> {
    let Some(chain) = turn.run_record(number)?.and_then(|run| run.chain) else {
        return Ok(number);
    };
    // The first one is kept as long as the last one is open; after that, an attempt stands for itself.
    let first = turn.run_record(chain.first)?;
    let chain = first.and_then(|first| first.chain);
    Ok(chain.map_or(number, |chain| chain.latest))
}

/// Whether the run is the first of several attempts of which the last one is open.
pub(crate) fn is_first_of_open(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
) -> Result<bool, StoreError> {
    let latest = latest(turn, number)?;
    if latest == number {
        return Ok(false);
    }
    let is_first = turn
        .run_record(number)?
        .is_some_and(|run| run.first_attempt(number) == number);
    let latest = turn.run_record(latest)?;
    Ok(is_first && latest.is_some_and(|run| run.status.is_open()))
}

/// Decides whether another attempt follows the run that is about to end like this; returns its reserved number.
pub(super) fn reserve(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    ending: &mut Ending,
) -> Option<RunNumber> {
    let definition = &run.definition.definition;
    let retry = definition.retry_run.as_ref()?;
    let status = definition.status_at(ending.terminal);
    let is_asked = is_asked(&ending.cause);
    let has_failed = matches!(
        status,
        Some(TerminalStatus::Failed | TerminalStatus::TimedOut)
    );
    // A run that has not begun has not failed.
    let is_wanted = has_failed && (is_asked || retry.on_failure);
    if !is_wanted || run.record.activations_count == 0 {
        return None;
    }
    if attempt_of(run) >= retry.max_attempts {
        if is_asked {
            EXHAUSTED.clone_into(&mut ending.cause.code);
            let detail = ending.detail.get_or_insert_default();
            detail.push_str(", but none is left");
        }
        return None;
    }
    if let Target::BuiltIn(_) = ending.terminal {
        ending.terminal = Target::BuiltIn(BuiltInTerminal::Failed);
    }
    Some(next_number(turn))
}

/// Whether a step has asked for another attempt.
fn is_asked(cause: &EndCause) -> bool {
    let outcome = cause.outcome.as_ref().map(|outcome| outcome.as_str());
    outcome == Some(outcome_name::RETRY_RUN)
}

fn attempt_of(run: &LoadedRun) -> u32 {
    run.record.chain.map_or(1, |chain| chain.attempt)
}

/// Prevents the next attempt: the run is cancelled before it ends. False if none was to follow.
pub(super) fn prevent(run: &mut LoadedRun) -> bool {
    let next = run.record.fixed_end.as_mut();
    let is_prevented = next.is_some_and(|end| end.next_attempt.take().is_some());
    if is_prevented {
        phase::add_note(run, "no further attempt: the run was cancelled");
    }
    is_prevented
}

/// Begins the attempt with the reserved number, after the run, which has ended.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    number: RunNumber,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let retry = definition.definition.retry_run;
    let retry = retry.expect("only such a definition retries runs");
    let attempt = attempt_of(run);
    let own = run.record.chain.unwrap_or(AttemptChain {
        first: run.number,
        attempt,
        previous: None,
        next: None,
        latest: run.number,
    });
    let delay_ms = retry.delay_ms(attempt);
    let starts_at_ms = (delay_ms > 0).then(|| turn.now_ms().saturating_add(delay_ms));
    let chain = AttemptChain {
        first: own.first,
        attempt: attempt + 1,
        previous: Some(run.number),
        next: None,
        latest: number,
    };
    let parent = match run.record.parent {
        Some(link) => turn.run_record(link.run)?.map(|parent| Parent {
            link,
            id: parent.id.clone(),
        }),
        None => None,
    };
    let new_run = NewRun {
        namespace: run.record.namespace.clone(),
        run_id: None,
        definition: run.record.definition,
        input: turn.payload(run.record.input)?,
        idempotency_key: None,
        triggered_by: run.record.triggered_by.clone(),
        parent,
        nesting: run.record.nesting,
        hops: run.record.hops,
        trace: run.record.trace,
        starts_at_ms,
        attempt: Some((number, chain)),
    };
    let next = match create(turn, new_run) {
        Ok(next) => next,
        Err(Abort::Rejected(rejection)) => panic!("an input is accepted again, but {rejection}"),
        Err(Abort::Store(error)) => return Err(Abort::Store(error)),
    };
    run.record.chain = Some(AttemptChain {
        next: Some(next.number),
        latest: next.number,
        ..own
    });
    run.note_run(EventKind::RunRetried { next: next.id });
    if own.first != run.number
        && let Some(mut first) = turn.load_run_if_kept(own.first)?
    {
        first.record.chain = first.record.chain.map(|chain| AttemptChain {
            latest: next.number,
            ..chain
        });
        turn.put_back_run(first);
    }
    if starts_at_ms.is_none() {
        queue.push(next.number, FIRST_WORK);
    }
    Ok(())
}

/// The last attempt has ended: the first one is no longer kept for it.
pub(super) fn end(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> TurnResult<()> {
    let first = run.record.first_attempt(run.number);
    match first == run.number {
        true => Ok(()),
        false => index::expire_child(turn, first),
    }
}
