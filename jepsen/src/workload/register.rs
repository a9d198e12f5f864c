//! Keys as registers: reads from any node, writes and swaps are linearizable.

use super::session::Invocation;
use super::{Session, Workload};
use crate::checker::{Access, Call, Violation, is_linearizable};
use crate::history::{History, Operation, Outcome, describe_error, outcome_of};
use flotilla_client::{ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many operations use the same key: few, so that the search of the checker stays small.
const OPERATIONS_PER_KEY: u64 = 48;
const PAUSE: Duration = Duration::from_millis(10);

/// Keys as registers.
#[derive(Debug, Default)]
pub(super) struct Register {
    operations: AtomicU64,
}

impl Workload for Register {
    fn name(&self) -> &'static str {
        "register"
    }

    fn prepare(&self, _flo: &Flo) {}

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let number = self.operations.fetch_add(1, Ordering::Relaxed);
            let key = format!("register-{}", number / OPERATIONS_PER_KEY);
            match random.random_range(0..10) {
                0..5 => {
                    let node = random.random_range(0..session.each.len());
                    read(session, &key, node).await;
                }
                5..8 => write(session, &key, number, None).await,
                _ => swap(session, &key, number).await,
            }
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            // Recorded like any other read: the final state is the last read.
            let keys = self
                .operations
                .load(Ordering::Relaxed)
                .div_ceil(OPERATIONS_PER_KEY);
            for key in 0..keys {
                read(session, &format!("register-{key}"), 0).await;
            }
            Ok(Value::Null)
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let mut by_key: BTreeMap<&str, Vec<Call>> = BTreeMap::new();
        for operation in history.of(self.name()) {
            let key = operation.input["key"].as_str().unwrap_or_default();
            by_key.entry(key).or_default().extend(call(operation));
        }
        let wrong = by_key.iter().filter(|(_, calls)| !is_linearizable(calls));
        wrong
            .map(|(key, calls)| Violation::new(format!("{key} is not linearizable: {calls:?}")))
            .collect()
    }
}

/// Reads from one node, once; returns the value that it saw.
async fn read(session: &Session, key: &str, node: usize) -> Option<v1::KeyValue> {
    let input = json!({"key": key, "node": node});
    let invocation = Invocation {
        name: "read",
        input,
        invoked_us: session.recorder.now(),
    };
    let item = match session.each[node].get_key(key).await {
        Ok(answer) => answer.item,
        // A read without a response saw nothing and changed nothing.
        Err(None) => return None,
        Err(Some(error)) => {
            session.note_failure(invocation, &error);
            return None;
        }
    };
    let value = item.as_ref().and_then(value_of);
    session.note(invocation, json!(value));
    item
}

async fn write(session: &Session, key: &str, value: u64, if_version: Option<u64>) {
    let call = session.client.set_key(set(key, value, if_version));
    let input = json!({"key": key, "value": value});
    // The history has the outcome.
    let _ = session.call("write", input, call, |_| Value::Null).await;
}

/// Sets the key if it still has the value that was just read.
async fn swap(session: &Session, key: &str, value: u64) {
    let Some(item) = read(session, key, 0).await else {
        return;
    };
    let from = value_of(&item);
    let invoked_us = session.recorder.now();
    let answer = session
        .client
        .set_key(set(key, value, Some(item.version)))
        .await;
    let (outcome, output) = match &answer {
        Ok(_) => (Outcome::Ok, json!("swapped")),
        Err(error) if error.code() == "key_version_mismatch" => (Outcome::Ok, json!("refused")),
        Err(error) => (outcome_of(error), describe_error(error)),
    };
    session.recorder.record(Operation {
        workload: session.workload.to_owned(),
        process: session.process,
        name: "swap".to_owned(),
        input: json!({"key": key, "from": from, "to": value}),
        invoked_us,
        returned_us: session.recorder.now(),
        outcome,
        output,
    });
}

fn set(key: &str, value: u64, if_version: Option<u64>) -> v1::SetKeyRequest {
    v1::SetKeyRequest {
        key: key.to_owned(),
        value: value.to_string().into(),
        if_version,
        ..v1::SetKeyRequest::default()
    }
}

fn value_of(item: &v1::KeyValue) -> Option<u64> {
    std::str::from_utf8(&item.value).ok()?.parse().ok()
}

/// The operation as the checker sees it; `None` if it certainly had no effect.
fn call(operation: &Operation) -> Option<Call> {
    let input = &operation.input;
    let from = input["from"].as_u64();
    let access = match operation.name.as_str() {
        "read" => Access::Read(operation.output.as_u64()),
        "write" => Access::Write(input["value"].as_u64()?),
        _ if operation.output == "refused" => Access::SwapRefused { from: from? },
        _ => Access::Swap {
            from: from?,
            to: input["to"].as_u64()?,
        },
    };
    let returned_us = match operation.outcome {
        Outcome::Ok => Some(operation.returned_us),
        Outcome::Unknown => None,
        Outcome::Fail => return None,
    };
    Some(Call {
        invoked_us: operation.invoked_us,
        returned_us,
        access,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, at_us: u64, input: Value, output: Value) -> Operation {
        Operation {
            name: name.to_owned(),
            input,
            invoked_us: at_us,
            returned_us: at_us + 1,
            output,
            ..Operation::sample("register", Outcome::Ok)
        }
    }

    #[test]
    fn a_stale_read_of_one_key_is_found_among_others() {
        let write =
            |key, at_us| operation("write", at_us, json!({"key": key, "value": 1}), Value::Null);
        let read =
            |key, at_us, seen| operation("read", at_us, json!({"key": key, "node": 0}), seen);
        let mut history = History {
            operations: vec![
                write("a", 0),
                read("a", 5, json!(1)),
                read("b", 5, Value::Null),
            ],
            ..History::default()
        };
        assert_eq!(Register::default().check(&history), []);
        history.operations.push(read("a", 9, Value::Null));
        assert_eq!(Register::default().check(&history).len(), 1);
    }
}
