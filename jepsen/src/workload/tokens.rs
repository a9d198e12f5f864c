//! Tokens that are revoked while clients write with them: no write is refused before, and nothing is done with the token
//! once the revocation is acknowledged.

use super::calls::found_in;
use super::{Session, Workload};
use crate::checker::Violation;
use crate::history::{History, Operation, Outcome};
use flotilla_client::{ApiToken, ClientError, TokenSecret, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt, join};
use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between two writes with a token.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a token is used, at most, in milliseconds.
const LIFE_MS_MAX: u64 = 600;
/// How long clients write on after the revocation.
const WRITES_AFTER_REVOCATION: Duration = Duration::from_millis(200);
/// The error code of a write with a revoked token.
const REVOKED: &str = "credential_revoked";

/// Tokens that are revoked while clients write with them.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    tokens: AtomicU64,
}

/// The newest versions that the final state has for one token.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Found {
    /// Of the key that is written with the token; 0 without one.
    written: u64,
    /// Of the key that is written without it once it is revoked; 0 without one.
    revoked: u64,
}

impl Workload for Tokens {
    fn name(&self) -> &'static str {
        "tokens"
    }

    fn prepare(&self, _flo: &Flo) {}

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let number = self.tokens.fetch_add(1, Ordering::Relaxed);
            let Some((token, id)) = create(session).await else {
                return session.rest(PAUSE).await;
            };
            let life = Duration::from_millis(random.random_range(50..LIFE_MS_MAX));
            let holder = session.with_token(token, usize::try_from(number).unwrap_or(0));
            let stop = CancellationToken::new();
            let ending = async {
                session.rest(life).await;
                end(session, number, id).await;
                session.rest(WRITES_AFTER_REVOCATION).await;
                stop.cancel();
            };
            join(hold(&holder, number, &stop), ending).await;
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            let mut found = BTreeMap::new();
            for number in 0..self.tokens.load(Ordering::Relaxed) {
                let versions = Found {
                    written: version(session, written_key(number)).await?,
                    revoked: version(session, revoked_key(number)).await?,
                };
                found.insert(number, versions);
            }
            Ok(json!(found))
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let mut found: BTreeMap<u64, Found> = found_in(history, self.name());
        for operation in history.of(self.name()) {
            note(&mut found, operation);
        }
        let late = found
            .iter()
            .filter(|(_, versions)| versions.revoked > 0 && versions.written > versions.revoked);
        let late = late.map(|(number, versions)| {
            Violation::new(format!(
                "token {number} wrote version {}, but it was revoked before version {} was written",
                versions.written, versions.revoked
            ))
        });
        late.chain(refused_early(history, self.name())).collect()
    }
}

/// Writes that were refused before the revocation of their token began.
fn refused_early(history: &History, workload: &str) -> Vec<Violation> {
    let token = |operation: &Operation| operation.input["token"].as_u64();
    let revocations: BTreeMap<_, _> = history
        .of(workload)
        .filter(|operation| operation.name == "revoke")
        .map(|operation| (token(operation), operation.invoked_us))
        .collect();
    let refused = history
        .of(workload)
        .filter(|operation| operation.output["refused"].is_string());
    let early = refused.filter(|operation| {
        let revoked_us = revocations.get(&token(operation));
        revoked_us.is_none_or(|&revoked_us| operation.returned_us < revoked_us)
    });
    early
        .map(|operation| {
            Violation::new(format!(
                "a write with token {} was refused before the token was revoked",
                operation.input["token"]
            ))
        })
        .collect()
}

/// Notes the version of an acknowledged write.
fn note(found: &mut BTreeMap<u64, Found>, operation: &Operation) {
    let number = operation.input["token"].as_u64();
    let (Outcome::Ok, Some(number)) = (operation.outcome, number) else {
        return;
    };
    let version = operation.output["version"].as_u64().unwrap_or(0);
    let versions = found.entry(number).or_default();
    match operation.name.as_str() {
        "write" => versions.written = versions.written.max(version),
        "revoked" => versions.revoked = versions.revoked.max(version),
        _ => {}
    }
}

/// Creates a token that may write keys; `None` if that is not acknowledged.
async fn create(session: &Session) -> Option<(ApiToken, String)> {
    let secret = TokenSecret::draw();
    let request = v1::CreateClusterTokenRequest {
        name: "writer".to_owned(),
        grants: vec!["operator@default".to_owned()],
        secret_sha256: secret.sha256(),
        ..v1::CreateClusterTokenRequest::default()
    };
    let call = session.client.create_cluster_token(request);
    let created = session.call("create", Value::Null, call, |token| json!({"id": token.id}));
    let id = created.await.ok()?.id;
    Some((secret.into_token(&id), id))
}

/// Writes with the token until the caller stops it.
async fn hold(holder: &Session, number: u64, stop: &CancellationToken) {
    while !stop.is_cancelled() && !holder.stop.is_cancelled() {
        let call = write(holder, number);
        // The history has the outcome.
        let _ = holder
            .call("write", json!({"token": number}), call, Written::shown)
            .await;
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// What became of a write with a token.
enum Written {
    /// It was done.
    Done(v1::SetKeyResponse),
    /// It was refused because the token is revoked.
    Refused,
}

impl Written {
    fn shown(&self) -> Value {
        match self {
            Self::Done(set) => shown(set),
            Self::Refused => json!({"refused": REVOKED}),
        }
    }
}

async fn write(holder: &Session, number: u64) -> Result<Written, ClientError> {
    match holder.client.set_key(set(written_key(number))).await {
        Ok(set) => Ok(Written::Done(set)),
        Err(error) if error.code() == REVOKED => Ok(Written::Refused),
        Err(error) => Err(error),
    }
}

/// Revokes the token, and then writes without it: that write is newer than all that the token may have written.
async fn end(session: &Session, number: u64, id: String) {
    let request = v1::RevokeClusterTokenRequest {
        id,
        ..v1::RevokeClusterTokenRequest::default()
    };
    let call = session.client.revoke_cluster_token(request);
    let input = json!({"token": number});
    let revoked = session.call("revoke", input.clone(), call, |_| Value::Null);
    if revoked.await.is_ok() {
        let call = session.client.set_key(set(revoked_key(number)));
        let _ = session.call("revoked", input, call, shown).await;
    }
}

fn shown(set: &v1::SetKeyResponse) -> Value {
    json!({"version": set.version})
}

fn set(key: String) -> v1::SetKeyRequest {
    v1::SetKeyRequest {
        key,
        value: "x".into(),
        ..v1::SetKeyRequest::default()
    }
}

/// The version of a key; 0 if it does not exist.
async fn version(session: &Session, key: String) -> Result<u64, ClientError> {
    let request = v1::GetKeyRequest {
        key,
        ..v1::GetKeyRequest::default()
    };
    match session.client.get_key(request).await {
        Ok(answer) => Ok(answer.item.map_or(0, |item| item.version)),
        Err(error) if error.code() == "key_not_found" => Ok(0),
        Err(error) => Err(error),
    }
}

fn written_key(number: u64) -> String {
    format!("token-{number}")
}

fn revoked_key(number: u64) -> String {
    format!("revoked-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, version: u64) -> Operation {
        Operation {
            name: name.to_owned(),
            input: json!({"token": 0}),
            output: json!({"version": version}),
            ..Operation::sample("tokens", Outcome::Ok)
        }
    }

    #[test]
    fn a_refusal_before_the_revocation_is_found() {
        let refused = Operation {
            returned_us: 5,
            output: json!({"refused": REVOKED}),
            ..operation("write", 0)
        };
        let revoke = Operation {
            invoked_us: 4,
            ..operation("revoke", 0)
        };
        let mut history = History {
            operations: vec![refused, revoke],
            ..History::default()
        };
        let check = |history: &History| Tokens::default().check(history).len();
        assert_eq!(check(&history), 0);
        history.operations[1].invoked_us = 6;
        assert_eq!(check(&history), 1);
        history.operations.pop();
        assert_eq!(check(&history), 1);
    }

    #[test]
    fn a_write_after_the_revocation_is_found_in_the_history_and_in_the_state() {
        let operations = vec![operation("write", 4), operation("revoked", 6)];
        let mut history = History {
            operations,
            ..History::default()
        };
        let check = |history: &History| Tokens::default().check(history).len();
        assert_eq!(check(&history), 0);
        history.operations.push(operation("write", 7));
        assert_eq!(check(&history), 1);
        // A write whose outcome is unknown, and a token of which no revocation is known.
        history.operations.pop();
        let found = json!({"0": {"written": 9, "revoked": 6}, "1": {"written": 9, "revoked": 0}});
        history.final_reads.insert("tokens".to_owned(), found);
        assert_eq!(check(&history), 1);
    }
}
