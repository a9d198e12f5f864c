//! Retrying a run as a whole: when it ends, another attempt begins from the start. To callers, the parent and the schedule,
//! all attempts are one run (W77).

use super::child::{Above, metadata_of};
use super::create::{CreatedRun, Creation, NewRun, Parent, create, next_number};
use super::exclusion::{self, GivenExclusion};
use super::{concurrency, index, phase};
use crate::definition::{Definition, Step, StepKind, TerminalStatus};
use crate::ids::{OutcomeName, RunId, RunNumber};
use crate::run::outcome_name;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{AttemptChain, EndCause, Ending, RunRecord};
use crate::turn::{Abort, LoadedRun, Turn, TurnResult};

/// The code of an end at which no attempt is left.
const EXHAUSTED: &str = "retry_exhausted";

/// The last attempt so far of the run of which `number` is one attempt.
pub(crate) fn latest(turn: &mut Turn<'_, '_>, number: RunNumber) -> Result<RunNumber, StoreError> {
    let chain = turn.run_record(number)?.and_then(|run| run.chain);
    latest_in(turn, number, chain)
}

/// Like [`latest`], of a run with this place among the attempts.
pub(super) fn latest_in(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    chain: Option<AttemptChain>,
) -> Result<RunNumber, StoreError> {
    let first = match chain {
        None => return Ok(number),
        Some(chain) if chain.first == number => return Ok(chain.latest),
        Some(chain) => turn.run_record(chain.first)?,
    };
    // The first one is kept as long as the last one.
    let chain = first.and_then(|first| first.chain);
    Ok(chain.map_or(number, |chain| chain.latest))
}

/// Whether the run is the first of several attempts of which the last one is kept.
pub(crate) fn is_first_of_kept(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
) -> Result<bool, StoreError> {
    let chain = turn.run_record(number)?.and_then(|run| run.chain);
    let Some(chain) = chain.filter(|chain| chain.first == number && chain.latest != number) else {
        return Ok(false);
    };
    Ok(turn.run_record(chain.latest)?.is_some())
}

/// The last attempt is forgotten: the first one is no longer kept for it.
pub(crate) fn note_forgotten(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    run: &RunRecord,
) -> TurnResult<()> {
    let first = run.first_attempt(number);
    let is_last = run.chain.is_some_and(|chain| chain.next.is_none());
    match is_last && first != number {
        true => index::expire_child(turn, first),
        false => Ok(()),
    }
}

/// Decides whether another attempt follows the run that is about to end like this.
pub(super) fn follows(run: &LoadedRun, ending: &mut Ending) -> bool {
    let definition = &run.definition.definition;
    let Some(retry) = &definition.retry_run else {
        return false;
    };
    let status = definition.status_at(ending.terminal);
    let is_asked = is_asked(definition, &ending.cause);
    let has_failed = matches!(
        status,
        Some(TerminalStatus::Failed | TerminalStatus::TimedOut)
    );
    // A run that has not begun has not failed.
    let is_wanted = has_failed && (is_asked || retry.on_failure);
    if !is_wanted || !run.record.has_begun() || run.record.is_held_up() {
        return false;
    }
    let is_any_left = attempt_of(run) < retry.max_attempts;
    if is_asked && !is_any_left {
        EXHAUSTED.clone_into(&mut ending.cause.code);
        let detail = ending.detail.get_or_insert_default();
        detail.push_str(", but none is left");
    }
    is_any_left
}

/// Whether the step that led to the end has asked for another attempt.
fn is_asked(definition: &Definition, cause: &EndCause) -> bool {
    let step = cause.step.map(|step| definition.step(step));
    let exit = step.zip(cause.outcome.as_ref());
    exit.is_some_and(|(step, outcome)| asks(step, outcome))
}

/// Whether a step with this outcome asks for another attempt. The outcome of a switch is the name of its target (W60).
pub(super) fn asks(step: &Step, outcome: &OutcomeName) -> bool {
    outcome.as_str() == outcome_name::RETRY_RUN && !matches!(step.kind, StepKind::Switch(_))
}

fn attempt_of(run: &LoadedRun) -> u32 {
    run.record.chain.map_or(1, |chain| chain.attempt)
}

/// Prevents the next attempt: the run is cancelled before it ends. False if none was to follow.
pub(super) fn prevent(run: &mut LoadedRun, reason: Option<&str>) -> bool {
    let end = run.record.fixed_end.as_mut();
    let is_prevented = end.is_some_and(|end| std::mem::take(&mut end.is_retried));
    if is_prevented {
        let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        phase::add_note(
            run,
            &format!("no further attempt: the run was cancelled{why}"),
        );
    }
    is_prevented
}

/// Begins the next attempt after the run, which ends in this turn; returns its id.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<RunId> {
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
        has_waited: false,
        steps_before: 0,
    });
    let delay_ms = retry.delay_ms(attempt);
    let starts_at_ms = (delay_ms > 0).then(|| turn.now_ms().saturating_add(delay_ms));
    let progress = run.record.progress;
    let has_waited = own.has_waited || progress.has_waited || delay_ms > 0;
    let steps = own.steps_before.saturating_add(progress.steps_since_wait);
    let number = next_number(turn);
    let chain = AttemptChain {
        first: own.first,
        attempt: attempt + 1,
        previous: Some(run.number),
        next: None,
        latest: number,
        has_waited,
        steps_before: if has_waited { 0 } else { steps },
    };
    let next = create_next(
        turn,
        run,
        NextAttempt {
            number,
            chain,
            starts_at_ms,
        },
    )?;
    run.record.chain = Some(AttemptChain {
        next: Some(number),
        latest: number,
        ..own
    });
    if own.first != run.number
        && let Some(mut first) = turn.load_run_if_kept(own.first)?
    {
        first.record.chain = first.record.chain.map(|chain| AttemptChain {
            latest: number,
            ..chain
        });
        turn.put_back_run(first);
    }
    concurrency::hand_over(turn, run, number)?;
    exclusion::hand_over(turn, run, number)?;
    if let Some(work) = next.first_work {
        queue.push(number, work);
    }
    Ok(next.id)
}

/// An attempt that begins.
struct NextAttempt {
    number: RunNumber,
    chain: AttemptChain,
    starts_at_ms: Option<u64>,
}

fn create_next(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    next: NextAttempt,
) -> TurnResult<CreatedRun> {
    let record = &run.record;
    let parent = match record.parent {
        Some(link) => turn.run_record(link.run)?.map(|parent| Parent {
            link,
            id: parent.id.clone(),
            above: Above::default(),
        }),
        None => None,
    };
    let new_run = NewRun {
        namespace: record.namespace.clone(),
        run_id: None,
        definition: record.definition,
        input: turn.payload(record.input)?,
        metadata: metadata_of(turn, run)?,
        idempotency_key: None,
        triggered_by: record.triggered_by.beginning_at_first_step(),
        parent,
        nesting: record.nesting,
        hops: record.hops,
        trace: record.trace,
        starts_at_ms: next.starts_at_ms,
        attempt: Some((next.number, next.chain)),
        exclusion: GivenExclusion::default(),
        taken_over: None,
    };
    match create(turn, new_run) {
        Ok(Creation::Run(next)) => Ok(next),
        Ok(Creation::Existing(_)) => panic!("an attempt has the keys of the one before it"),
        Err(Abort::Rejected(rejection)) => panic!("an input is accepted again, but {rejection}"),
        Err(Abort::Store(error)) => Err(Abort::Store(error)),
    }
}
