//! Judges whether an actor may have a command carried out (X20).

use super::actor::Actor;
use super::authority::Authority;
use super::judge::{Needed, judge, judge_turn};
use crate::command::Command;
use crate::envelope::CommandEnvelope;
use crate::rejection::Rejection;
use crate::store::{Reader, StoreError};
use crate::turn::{Turn, TurnResult};

/// As [`judge`], for what a command needs.
pub(crate) fn judge_command(
    reader: &dyn Reader,
    now_ms: u64,
    envelope: &CommandEnvelope,
) -> Result<Result<(), Rejection>, StoreError> {
    let actor = &envelope.actor;
    match needed(actor, &envelope.command) {
        Err(rejection) => Ok(Err(rejection)),
        Ok(None) => Ok(Ok(())),
        Ok(Some(needed)) => judge(reader, now_ms, actor, needed),
    }
}

/// Checks that the turn's actor may have the command carried out, by the rows at this entry.
pub(crate) fn authorize(turn: &mut Turn<'_, '_>, command: &Command) -> TurnResult<()> {
    match needed(&turn.actor(), command)? {
        None => Ok(()),
        Some(needed) => judge_turn(turn, needed.permissions, needed.scope),
    }
}

/// What the actor needs to have the command carried out; `None` if it needs nothing.
fn needed<'c>(actor: &Actor, command: &'c Command) -> Result<Option<Needed<'c>>, Rejection> {
    match (command.body.authority(&command.scope), actor) {
        (Authority::TaskToken, _)
        | (Authority::System | Authority::CallerOrSystem(..), Actor::System) => Ok(None),
        (Authority::System, Actor::Anonymous | Actor::Token(_) | Actor::Bound(_))
        | (Authority::Caller(..), Actor::System) => {
            let kind = command.body.kind().as_str();
            let message = format!("expected another actor for `{kind}`, but it is {actor}");
            Err(Rejection::Internal(message))
        }
        (
            Authority::Caller(permissions, scope) | Authority::CallerOrSystem(permissions, scope),
            Actor::Anonymous | Actor::Token(_) | Actor::Bound(_),
        ) => Ok(Some(Needed { permissions, scope })),
    }
}
