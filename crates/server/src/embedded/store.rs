//! The store that a WASM action can reach: the keys of its namespace (A7, A40).
//!
//! A read is linearizable. A write is a command like a client's, and its request id is derived from
//! the attempt: if a node stops after a guest's write, another node that runs the same attempt does
//! not write again. That holds for as long as request ids are remembered, 10 minutes, and for
//! guests that write the same each time; a guest that adds to what it reads has to detect a
//! repetition itself.
//!
//! The guest's thread blocks. While there is no leader, or the cluster sheds load, the call is
//! retried. A call that gets no response in time fails for the guest (−5), and the outcome of its
//! write is unknown. No call is made for a guest whose task was taken away: another attempt may be
//! in progress.

use super::decided::decided;
use crate::access::CallContext;
use crate::context::Context;
use crate::errors::Refusal;
use crate::services::find_key;
use flotilla_engine::codec;
use flotilla_engine::ids::{KvKey, Namespace};
use flotilla_engine::{Command, DeleteKey, Operation, RequestId, SetCondition, SetKey, TaskToken};
use flotilla_wasm::{Host, KvError};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// How long one call of the store may take, within the action's timeout: a guest with a long
/// timeout learns of an outage and can react.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// The keys of an action's namespace, as one attempt sees them.
pub(super) struct Store {
    context: CallContext,
    runtime: Handle,
    scope: Scope,
    given_up: CancellationToken,
}

/// The attempt that uses the store.
pub(super) struct Scope {
    namespace: Namespace,
    task: TaskToken,
    writes_count: u64,
}

impl Store {
    /// The store of one call, until `given_up`. Must be called within the runtime.
    pub(super) fn new(
        context: &Arc<Context>,
        namespace: Namespace,
        task: TaskToken,
        given_up: CancellationToken,
    ) -> Self {
        Self {
            context: CallContext::of_node(context),
            runtime: Handle::current(),
            scope: Scope {
                namespace,
                task,
                writes_count: 0,
            },
            given_up,
        }
    }

    fn submit<O: Operation<Scope = Namespace> + Clone>(
        &mut self,
        body: O,
        deadline: std::time::Instant,
    ) -> Result<O::Reply, KvError> {
        let command = self.scope.command(body);
        let gateway = &self.context.gateway;
        self.wait(deadline, |until| gateway.submit(command.clone(), until))
    }

    /// Waits for the cluster's response; the request must be safe to repeat.
    fn wait<T, Asking>(
        &self,
        deadline: std::time::Instant,
        ask: impl Fn(Instant) -> Asking,
    ) -> Result<T, KvError>
    where
        Asking: Future<Output = Result<T, Refusal>>,
    {
        let until = Instant::from_std(deadline).min(Instant::now() + ANSWER_DEADLINE);
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.given_up.cancelled() => Err(failed("the task was taken away")),
                answer = timeout_at(until, decided(|| ask(until))) => match answer {
                    Ok(Ok(answer)) => Ok(answer),
                    Ok(Err(refusal)) => Err(failed(format!("it refuses: {refusal}"))),
                    Err(_) => Err(failed("it did not in time")),
                },
            }
        })
    }
}

impl Host for Store {
    fn kv_get(
        &mut self,
        key: &[u8],
        deadline: std::time::Instant,
    ) -> Result<Option<Vec<u8>>, KvError> {
        let key = checked(key)?;
        let namespace = &self.scope.namespace;
        let find = |until| find_key(&self.context, namespace, &key, until);
        let found = self.wait(deadline, find)?;
        Ok(found.map(|record| record.value.to_vec()))
    }

    fn kv_set(
        &mut self,
        key: &[u8],
        value: &[u8],
        deadline: std::time::Instant,
    ) -> Result<(), KvError> {
        let set = SetKey {
            key: checked(key)?,
            value: value.to_vec().into(),
            ttl_ms: None,
            condition: SetCondition::Always,
        };
        self.submit(set, deadline).map(drop)
    }

    fn kv_delete(&mut self, key: &[u8], deadline: std::time::Instant) -> Result<bool, KvError> {
        let key = checked(key)?;
        let deleted = self.submit(DeleteKey { key }, deadline)?;
        Ok(deleted.is_found)
    }
}

impl Scope {
    /// A guest's next write.
    fn command<O: Operation<Scope: From<Namespace>> + Clone>(&mut self, body: O) -> Command<O> {
        let mut command = Command {
            request_id: None,
            scope: self.namespace.clone().into(),
            body,
        };
        self.writes_count += 1;
        command.request_id = Some(self.request_id(&command.clone().untyped()));
        command
    }

    /// The same for each delivery of an attempt: derived from the run, the attempt, the number of
    /// the write and its content. Reads do not count, since a guest may poll a key.
    fn request_id(&self, command: &Command) -> RequestId {
        let digest = Sha256::new()
            .chain_update(self.task.action_run.0.to_be_bytes())
            .chain_update(self.task.attempt.to_be_bytes())
            .chain_update(self.writes_count.to_be_bytes())
            .chain_update(codec::encode(command))
            .finalize();
        let first = digest.first_chunk().expect("a digest has 32 bytes");
        RequestId(u128::from_be_bytes(*first)).without_time()
    }
}

/// Validates a guest's key.
fn checked(key: &[u8]) -> Result<KvKey, KvError> {
    let text =
        std::str::from_utf8(key).map_err(|error| failed(format!("a key is text: {error}")))?;
    KvKey::new(text).map_err(|error| failed(format!("it has no such keys: {error}")))
}

fn failed(reason: impl ToString) -> KvError {
    KvError {
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::Body;
    use flotilla_engine::ids::ActionRunNumber;

    fn scope(action_run: u64, attempt: u32, secret: u64) -> Scope {
        Scope {
            namespace: Namespace::default_namespace(),
            task: TaskToken {
                action_run: ActionRunNumber(action_run),
                attempt,
                secret,
            },
            writes_count: 0,
        }
    }

    fn delete(key: &str) -> Body {
        Body::DeleteKey(DeleteKey {
            key: KvKey::new(key).unwrap(),
        })
    }

    fn set(key: &str, value: &str) -> Body {
        Body::SetKey(SetKey {
            key: KvKey::new(key).unwrap(),
            value: value.as_bytes().to_vec().into(),
            ttl_ms: None,
            condition: SetCondition::Always,
        })
    }

    #[test]
    fn the_writes_of_an_attempt_have_the_same_ids_each_time_it_is_handed_out() {
        let (mut first, mut second) = (scope(1, 1, 7), scope(1, 1, 8));
        for body in [set("a", "1"), set("a", "1"), delete("a")] {
            assert_eq!(first.command(body.clone()), second.command(body));
        }
    }

    #[test]
    fn the_writes_of_attempts_differ_and_so_do_different_writes() {
        let mut ids = Vec::new();
        for mut scope in [scope(1, 1, 0), scope(1, 2, 0), scope(2, 1, 0)] {
            for body in [set("a", "1"), set("a", "1")] {
                ids.push(scope.command(body).request_id);
            }
        }
        for body in [set("a", "2"), set("b", "1"), delete("a")] {
            ids.push(scope(1, 1, 0).command(body).request_id);
        }
        for (position, id) in ids.iter().enumerate() {
            assert!(!ids[..position].contains(id), "{position}");
        }
    }

    #[test]
    fn a_key_is_text_as_everywhere() {
        assert!(checked(b"a/b").is_ok());
        for key in [&b""[..], b"\xff", b"a\nb", &[b'x'; 257]] {
            assert!(checked(key).is_err(), "{key:?}");
        }
    }
}
