//! Remembering accepted commands and recognizing repeated ones.

use super::age::{forget_past, is_past, oldest_past, too_late};
use super::usage::{self, Bounds};
use crate::codec;
use crate::command::{Admission, Body, Command};
use crate::limits::{REQUEST_RESERVE_MS, REQUEST_RETRY_MS};
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::tables::{RequestRecord, RequestUsage, Requests};
use crate::turn::{Turn, TurnResult};

/// The remembered reply to an earlier accepted command with the same id.
pub(crate) fn remembered(turn: &mut Turn<'_, '_>, command: &Command) -> TurnResult<Option<Reply>> {
    let Some(id) = command.request_id else {
        return Ok(None);
    };
    let Some(record) = turn.get::<Requests>(&(command.scope.clone(), id.0))? else {
        return Ok(None);
    };
    if is_past(record.at_ms, turn.now_ms()) {
        return Ok(None);
    }
    if record.fingerprint != fingerprint(command) {
        return Err(Rejection::RequestIdReused.into());
    }
    Ok(Some(record.reply.clone()))
}

/// The age from which on ids are deleted at the limit. In milliseconds.
const KEPT_MS: u64 = REQUEST_RETRY_MS + REQUEST_RESERVE_MS;

/// Rejects a command that is not remembered, if it could be applied twice: because it comes so late that its reply may
/// have been forgotten, or because its reply could not be remembered. A node that was suspended may send it late.
///
/// Only here is the check certain: the time of the entry decides both which ids are old and which are forgotten.
pub(crate) fn admit(turn: &mut Turn<'_, '_>, command: &Command) -> TurnResult<()> {
    let Some(id) = command.request_id else {
        return Ok(());
    };
    let now_ms = turn.now_ms();
    if let Some(age_ms) = too_late(id, now_ms) {
        return Err(Rejection::RequestTooOld { age_ms, now_ms }.into());
    }
    // What raises the bound is accepted at the bound, too.
    if matches!(command.body, Body::SetClusterSettings(_)) {
        return Ok(());
    }
    let mut bounds = Bounds::of_intake(turn)?;
    if let Admission::Progress = command.body.admission() {
        bounds = bounds.with_reserve();
    }
    if bounds.have_room_for(turn, &command.scope)? || oldest_past(turn, KEPT_MS)?.is_some() {
        return Ok(());
    }
    Err(Rejection::RequestIdLimitExceeded.into())
}

/// Remembers the reply to an accepted command.
pub(crate) fn remember(
    turn: &mut Turn<'_, '_>,
    command: &Command,
    reply: &Reply,
) -> TurnResult<()> {
    let Some(id) = command.request_id else {
        return Ok(());
    };
    let bounds = Bounds::of_intake(turn)?;
    // If the bound was lowered, much may be above it: each command forgets a little of that.
    forget_past(turn, KEPT_MS, FORGOTTEN_IDS_MAX, |turn| {
        turn.is_spent() || bounds.have_room(turn.cluster())
    })?;
    let record = RequestRecord {
        accepted_by: turn.raft_index(),
        at_ms: turn.now_ms(),
        fingerprint: fingerprint(command),
        reply: reply.clone(),
    };
    let scope = &command.scope;
    let scope_bytes = scope.as_str().len() as u64;
    let bytes = COMMON_BYTES + scope_bytes + codec::encoded_bytes(&record.reply);
    usage::add(turn, scope, RequestUsage { count: 1, bytes })?;
    turn.accept_request(scope, id, bytes);
    turn.put::<Requests>(&(scope.clone(), id.0), record);
    Ok(())
}

/// Ids that one command forgets, if those of one entry are not more.
const FORGOTTEN_IDS_MAX: usize = 16;

/// What an id takes besides its namespace and its reply: its key, its place among the ids of its entry, and the record's other fields.
const COMMON_BYTES: u64 = (2 * size_of::<u128>() + 4 * size_of::<u64>()) as u64;

fn fingerprint(command: &Command) -> u64 {
    codec::fingerprint(&codec::encode(command.body.as_asked().as_ref()))
}
