//! Long-lived calls end when the caller's credential or its rights end (X22).

use super::CallContext;
use super::authenticate::has_secret;
use crate::errors::Refusal;
use flotilla_engine::{AccessRejection, Actor, SecretHash, TokenRecord, view};
use std::future::pending;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

/// The maximum time until a token with an end is checked again: limits the effect of drift between the clocks of the cluster and
/// of this node.
const EXPIRY_CHECK_MAX: Duration = Duration::from_secs(60);

/// Waits until the caller may no longer make the call, because its credential has expired, was revoked or got another secret,
/// because its subject was blocked or lost its rights, or because the cluster was closed, and returns why.
pub(crate) async fn credential_ended(context: &CallContext) -> Refusal {
    if *context.gateway.actor() == Actor::System {
        return pending().await;
    }
    let mut changes = context.watchers.access.subscribe();
    loop {
        let changes_count = *changes.borrow_and_update();
        let seen = context.access_seen();
        let has_changed = seen.load(Ordering::Relaxed) != changes_count;
        let judged = if has_changed { check(context) } else { Ok(()) };
        let until_end = match judged.and_then(|()| remaining(context)) {
            Ok(remaining) => {
                seen.store(changes_count, Ordering::Relaxed);
                sleep_for(remaining)
            }
            Err(refusal) => return refusal,
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return pending().await;
            },
            () = until_end => if let Err(refusal) = check(context) {
                return refusal;
            },
        }
    }
}

/// Sleeps, or waits forever without an end.
async fn sleep_for(remaining: Option<Duration>) {
    match remaining {
        Some(remaining) => sleep(remaining.min(EXPIRY_CHECK_MAX)).await,
        None => pending().await,
    }
}

/// Checks that the caller may still make the call, by what this node has applied.
fn check(context: &CallContext) -> Result<(), Refusal> {
    context.check_again()?;
    let (Some(secret), Some(record)) = (context.secret(), token(context)?) else {
        return Ok(());
    };
    if has_secret(&record, secret, context.gateway.now_ms()) {
        return Ok(());
    }
    Err(AccessRejection::CredentialUnknown.into())
}

/// How long the caller's credential, or the secret that it has shown, still lives; `None` without an end.
fn remaining(context: &CallContext) -> Result<Option<Duration>, Refusal> {
    let end_ms = match context.gateway.actor() {
        Actor::System | Actor::Anonymous => None,
        Actor::Bound(bound) => Some(bound.ends_at_ms),
        Actor::Token(_) => token(context)?.and_then(|record| end_ms(&record, context.secret())),
    };
    let now_ms = context.gateway.now_ms();
    Ok(end_ms.map(|end_ms| Duration::from_millis(end_ms.saturating_sub(now_ms))))
}

/// When the token, or the secret of it that the caller has shown, ends.
fn end_ms(record: &TokenRecord, shown: Option<SecretHash>) -> Option<u64> {
    let former = record
        .former_secret
        .filter(|(former, _)| Some(*former) == shown);
    let ends = [record.expires_at_ms, former.map(|(_, end_ms)| end_ms)];
    ends.into_iter().flatten().min()
}

/// The caller's token, as this node has it.
fn token(context: &CallContext) -> Result<Option<TokenRecord>, Refusal> {
    let Actor::Token(token) = *context.gateway.actor() else {
        return Ok(None);
    };
    let home = context.gateway.home();
    home.read_stored(|reader| view::token(reader, token))
}
