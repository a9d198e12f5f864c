//! Finding the scope that a caller names (W61a).

use super::resumable;
use crate::ids::{ScopeNumber, ScopePathText};
use crate::rejection::Rejection;
use crate::scope_path;
use crate::store::StoreError;
use crate::tables::{ActivationState, ScopePath, ScopeStep, StepResults};
use crate::turn::{LoadedRun, Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use std::cmp::Ordering;

/// A scope that has not ended.
pub(super) struct NamedScope {
    pub(super) path: ScopePath,
    /// `None` if it has not begun.
    pub(super) number: Option<ScopeNumber>,
}

/// The path that `text` names, which the run's workflow must have.
pub(super) fn parse(run: &LoadedRun, text: &ScopePathText) -> Result<ScopePath, Rejection> {
    let may_repeat_any = run.record.may_repeat_any_step();
    let path = scope_path::parse(&run.definition.definition, text.as_str(), may_repeat_any);
    path.ok_or_else(|| missing(run, text))
}

fn missing(run: &LoadedRun, text: &ScopePathText) -> Rejection {
    Rejection::from(Undeliverable::ScopeNotFound {
        run_id: run.record.id.clone(),
        scope: text.clone(),
    })
}

/// The scope that `text` names, below the run.
pub(super) fn find(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    text: &ScopePathText,
) -> TurnResult<NamedScope> {
    let path = parse(run, text)?;
    let mut scope = ScopeNumber::ROOT;
    for down in &path.0 {
        match below(turn, run, scope, *down)? {
            Found::Open(number) => scope = number,
            Found::NotBegun => return Ok(NamedScope { path, number: None }),
            Found::Missing => return Err(missing(run, text).into()),
            Found::Ended => {
                let ended = Undeliverable::ScopeEnded {
                    run_id: run.record.id.clone(),
                    scope: text.clone(),
                };
                return Err(Rejection::from(ended).into());
            }
        }
    }
    Ok(NamedScope {
        path,
        number: Some(scope),
    })
}

/// What one step of a path leads to.
enum Found {
    NotBegun,
    Open(ScopeNumber),
    Ended,
    /// Its step has no such item.
    Missing,
}

/// Looks below an open scope.
fn below(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    down: ScopeStep,
) -> Result<Found, StoreError> {
    let Some((visit, state)) = active_in(turn, run, scope, down)? else {
        let result = turn.get::<StepResults>(&(run.number, scope, down.step))?;
        let is_past = result.is_some_and(|result| result.visit >= down.visit);
        return Ok(if is_past {
            Found::Ended
        } else {
            Found::NotBegun
        });
    };
    let (number, has_begun, is_decided, may_continue) = match (visit.cmp(&down.visit), &state) {
        (Ordering::Greater, _) => return Ok(Found::Ended),
        (Ordering::Equal, ActivationState::Branches(branches)) => (
            branches.scope(down.position),
            down.position < branches.begun_count,
            branches.decision.is_some(),
            false,
        ),
        (Ordering::Equal, ActivationState::Iterations(iterations)) => {
            if down.position >= iterations.total_count {
                return Ok(Found::Missing);
            }
            (
                iterations.scope(down.position),
                down.position < iterations.begun_count,
                iterations.is_stopped,
                iterations.may_continue(down.position),
            )
        }
        // The step has not opened its scopes, or will open them again with its next attempt.
        (Ordering::Less | Ordering::Equal, _) => return Ok(Found::NotBegun),
    };
    Ok(match (has_begun, is_decided) {
        (true, _) if run.is_scope_live(turn, number)? => Found::Open(number),
        // After a resume, it has not continued yet.
        (true, false) if may_continue && resumable::is_kept(turn, run, number)? => Found::NotBegun,
        (true, _) | (false, true) => Found::Ended,
        (false, false) => Found::NotBegun,
    })
}

/// The visit and state of a step that is active in `scope`.
fn active_in(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    down: ScopeStep,
) -> Result<Option<(u32, ActivationState)>, StoreError> {
    for number in run.active(turn)? {
        if let Some(active) = run.activation(turn, number)?
            && active.scope == scope
            && active.step == down.step
        {
            return Ok(Some((active.visit, active.state.clone())));
        }
    }
    Ok(None)
}
