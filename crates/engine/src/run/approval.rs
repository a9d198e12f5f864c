//! Steps that ask people for a decision (W61).

use super::failure::failed;
use super::outcome::name;
use super::render::{self, BAD_APPROVERS, DataContext, Mapped};
use super::step_timer::set_deadline;
use crate::access::{Holder, holder_of};
use crate::access_rejection::AccessRejection;
use crate::definition::{ApprovalStep, StepKind};
use crate::ids::{Approver, Comment, Identity, Namespace};
use crate::json::{Json, as_string, elements, field, inside_array, quote};
use crate::limits::{APPROVERS_BYTES_MAX, APPROVERS_MAX, APPROVERS_SHOWN_MAX};
use crate::message::cut;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, DecisionRecord, Decisions, EventKind, OpenApproval, TargetResult,
};
use crate::turn::{ActivationRef, LoadedRun, Turn, TurnResult};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Begins to wait; returns what the step ends with if its approvers are not a list of approvers.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Activation,
    step: &ApprovalStep,
) -> Result<Option<TargetResult>, StoreError> {
    let context = DataContext::of(active.scope);
    let value = match render::text(turn, run, context, &step.approvers)? {
        Ok(value) => value,
        Err(refused) => return Ok(Some(refused.ends_step(turn, run, Mapped::Approvers))),
    };
    let approvers = match approvers(&value, step.quorum) {
        Ok(approvers) => approvers,
        Err(message) => return Ok(Some(failed(turn, run, BAD_APPROVERS, cut(&message)))),
    };
    let deadline_at_ms = set_deadline(turn, run.at(active), step.timeout_ms);
    let shown = approvers.iter().take(APPROVERS_SHOWN_MAX);
    let kind = EventKind::ApprovalOpened {
        approvers: shown.cloned().collect(),
        approvers_count: u16::try_from(approvers.len()).expect("a bounded number"),
        quorum: step.quorum,
        deadline_at_ms,
    };
    run.note(active, kind);
    active.state = ActivationState::Approval(OpenApproval {
        approvals_count: 0,
        deadline_at_ms,
        approvers,
    });
    Ok(None)
}

/// The approvers that a value lists.
fn approvers(value: &Json, quorum: u16) -> Result<Vec<Approver>, String> {
    let text = value.as_str();
    if inside_array(text).is_none() {
        return Err(format!(
            "expected `approvers` to be a list of approvers, but it is {text}"
        ));
    }
    let mut approvers = Vec::new();
    for element in elements(text) {
        if approvers.len() == APPROVERS_MAX {
            return Err(format!(
                "expected at most {APPROVERS_MAX} approvers, but there are more"
            ));
        }
        let not_text = || format!("expected an approver, but it is {element}");
        let approver = as_string(element).ok_or_else(not_text)?;
        approvers.push(Approver::new(approver).map_err(|invalid| invalid.to_string())?);
    }
    let bytes: usize = approvers.iter().map(|one| one.as_str().len()).sum();
    if bytes > APPROVERS_BYTES_MAX {
        return Err(format!(
            "expected approvers of at most {APPROVERS_BYTES_MAX} bytes together, but they have {bytes}"
        ));
    }
    let users: BTreeSet<&Approver> = approvers.iter().collect();
    let are_all_users = !users.is_empty() && users.iter().all(|approver| approver.is_user());
    if are_all_users && users.len() < usize::from(quorum) {
        return Err(format!(
            "expected at least {quorum} approvers, as many as the quorum, but the number is {}",
            users.len()
        ));
    }
    Ok(approvers)
}

/// Who decides: the identity of the turn's actor, or `None` for a caller without a credential, which only an open cluster serves.
///
/// # Errors
/// The identity is not among the approvers of the step.
pub(super) fn decider(
    turn: &mut Turn<'_, '_>,
    (namespace, open): (&Namespace, &OpenApproval),
) -> TurnResult<Option<Identity>> {
    let Some(holder) = holder_of(turn, &namespace.clone().into())? else {
        return Ok(None);
    };
    let Holder { identity, approves } = holder;
    let mut approvers = open.approvers.iter();
    let is_approver = open.approvers.is_empty()
        || approvers.any(|approver| approver.matches(&identity, &approves));
    match is_approver {
        true => Ok(Some(identity)),
        false => Err(AccessRejection::NotAnApprover(identity).into()),
    }
}

/// Adds a decision; returns what the step ends with, or `None` if it needs more approvals.
pub(super) fn decide(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Activation,
    decision: DecisionRecord,
) -> Result<Option<TargetResult>, StoreError> {
    let definition = run.definition.clone();
    let step = &definition.definition.step(active.step).kind;
    let (ActivationState::Approval(open), StepKind::Approval(step)) = (&active.state, step) else {
        panic!("the step waits for a decision")
    };
    let mut open = open.clone();
    let DecisionRecord {
        is_approved,
        ref actor,
        ..
    } = decision;
    let kind = EventKind::ApprovalDecided {
        is_approved,
        actor: actor.clone(),
    };
    run.note(active, kind);
    let at = run.at(active);
    let decisions_count = store(turn, at, decision)?;
    if is_approved && decisions_count < step.quorum {
        open.approvals_count = decisions_count;
        active.state = ActivationState::Approval(open);
        return Ok(None);
    }
    let outcome = if is_approved {
        name::APPROVED
    } else {
        name::REJECTED
    };
    let output = end(turn, at, outcome, None)?;
    Ok(Some(TargetResult {
        output: Some(run.store_payload(turn, output)),
        ..TargetResult::of_engine(name::of(outcome))
    }))
}

/// Stores a decision after the others, in place of an earlier one of the same identity. Returns how many there are: all before
/// this one are approvals.
fn store(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    decision: DecisionRecord,
) -> Result<u16, StoreError> {
    let mut decisions = take_decisions(turn, at)?;
    let is_of_other =
        |other: &DecisionRecord| other.actor.is_none() || other.actor != decision.actor;
    decisions.retain(|earlier| is_of_other(earlier));
    decisions.push(Arc::new(decision));
    let mut count = 0;
    for decision in decisions {
        let decision = Arc::unwrap_or_clone(decision);
        turn.put::<Decisions>(&(at.run, at.activation, count), decision);
        count += 1;
    }
    Ok(count)
}

/// Deletes the decisions about a step; returns the output of the step, which ends with `outcome`, and why it has failed, if
/// it has.
pub(super) fn end(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    outcome: &str,
    reason: Option<&str>,
) -> Result<Json, StoreError> {
    let decisions = take_decisions(turn, at)?;
    let last = match outcome {
        name::TIMEOUT => None,
        _ => decisions.last(),
    };
    let mut text = format!(
        "{{\"approved\":{},\"timed_out\":{},",
        outcome == name::APPROVED,
        outcome == name::TIMEOUT
    );
    write_decider(last.map(|decision| &**decision), &mut text);
    text.push_str(",\"decisions\":[");
    for (position, decision) in decisions.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        text.push('{');
        write_decider(Some(decision), &mut text);
        let DecisionRecord {
            is_approved, at_ms, ..
        } = **decision;
        text.push_str(&format!(",\"approved\":{is_approved},\"at_ms\":{at_ms}}}"));
    }
    text.push(']');
    if let Some(reason) = reason {
        let error = Json::error(outcome, reason);
        let error = field(error.as_str(), "error").expect("an error has this field");
        text.push_str(",\"error\":");
        text.push_str(error);
    }
    text.push('}');
    Ok(Json::from_checked(text))
}

/// Writes who decided and what they said.
fn write_decider(decision: Option<&DecisionRecord>, text: &mut String) {
    let actor = decision.and_then(|decision| decision.actor.as_ref());
    let comment = decision.and_then(|decision| decision.comment.as_ref());
    text.push_str("\"actor\":");
    write_optional(actor.map(Identity::as_str), text);
    text.push_str(",\"comment\":");
    write_optional(comment.map(Comment::as_str), text);
}

fn write_optional(value: Option<&str>, text: &mut String) {
    match value {
        Some(value) => quote(value, text),
        None => text.push_str("null"),
    }
}

/// Deletes the decisions about a step that is cancelled.
pub(super) fn forget(turn: &mut Turn<'_, '_>, at: ActivationRef) -> Result<(), StoreError> {
    take_decisions(turn, at)?;
    Ok(())
}

fn take_decisions(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
) -> Result<Vec<Arc<DecisionRecord>>, StoreError> {
    let rows = turn.list::<Decisions>(&(at.run, at.activation), APPROVERS_MAX)?;
    let mut decisions = Vec::new();
    for (key, decision) in rows {
        turn.delete::<Decisions>(&key);
        decisions.push(decision);
    }
    Ok(decisions)
}
