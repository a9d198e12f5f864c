//! Tasks of workers: a task never has two live holders, and each acknowledged invocation completes.

use super::calls::{LOOK_PAUSE, found_in};
use super::session::Invocation;
use super::workers::{self, Handled, Handler};
use super::{Session, Workload};
use crate::checker::{Hold, Violation, overlapping};
use crate::history::{History, Operation, Outcome};
use flotilla_client::{ActionContext, ActionResult, ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ACTIONS: &[&str] = &["chaos-hold"];
const PAUSE: Duration = Duration::from_millis(80);
/// How long a task is held: much shorter than its lease of 10 s, so that no holder can outlive its
/// lease.
const HELD: Duration = Duration::from_millis(60);
const LOOKS_MAX: usize = 120;

/// Tasks of workers.
#[derive(Debug, Default)]
pub(super) struct Leases {
    keys: AtomicU64,
}

impl Workload for Leases {
    fn name(&self) -> &'static str {
        "leases"
    }

    fn prepare(&self, flo: &Flo) {
        let limits = ["--max-retries", "9", "--timeout-ms", "10000"];
        let _ = flo.text(&[&["action", "register", ACTIONS[0]], &limits[..]].concat());
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, _random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let key = format!("hold-{}", self.keys.fetch_add(1, Ordering::Relaxed));
            let request = v1::InvokeActionRequest {
                name: ACTIONS[0].to_owned(),
                idempotency_key: key.clone(),
                ..v1::InvokeActionRequest::default()
            };
            let call = session.client.invoke_action(request);
            let input = json!({"key": key});
            let show = |invoked: &v1::InvokeActionResponse| json!({"made": invoked.action_run_id});
            // The history has the outcome.
            let _ = session.call("invoke", input, call, show).await;
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn assist(&self, session: Session) -> BoxFuture<'static, ()> {
        let noting = session.clone();
        let handler: Handler =
            Arc::new(move |worker, context| hold(noting.clone(), worker, context).boxed());
        workers::work(session, ACTIONS, handler).boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            let mut looks = 0;
            loop {
                let found = action_runs(session).await?;
                looks += 1;
                let is_open = |status: &String| !status.ends_with("COMPLETED");
                if looks == LOOKS_MAX || !found.values().any(is_open) {
                    return Ok(json!(found));
                }
                tokio::time::sleep(LOOK_PAUSE).await;
            }
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let found: BTreeMap<String, String> = found_in(history, self.name());
        let holds: Vec<Hold> = history.of(self.name()).filter_map(hold_of).collect();
        let mut violations = overlapping(&holds);
        let invoked = history
            .of(self.name())
            .filter(|operation| operation.name == "invoke" && operation.outcome == Outcome::Ok);
        for operation in invoked {
            let id = operation.output["made"].as_str().unwrap_or_default();
            let status = found.get(id).map(String::as_str);
            if status != Some("ACTION_RUN_STATUS_COMPLETED") {
                let text = format!("the action run {id} was acknowledged, but it is {status:?}");
                violations.push(Violation::new(text));
            }
        }
        violations
    }
}

async fn action_runs(session: &Session) -> Result<BTreeMap<String, String>, ClientError> {
    let mut found = BTreeMap::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListActionRunsRequest {
            name: ACTIONS[0].to_owned(),
            limit: 200,
            page_token,
            ..v1::ListActionRunsRequest::default()
        };
        let page = session.client.list_action_runs(request).await?;
        for row in page.items {
            let status = row.status().as_str_name().to_owned();
            found.insert(row.action_run_id, status);
        }
        if page.next_page_token.is_empty() {
            return Ok(found);
        }
        page_token = page.next_page_token;
    }
}

fn hold_of(operation: &Operation) -> Option<Hold> {
    if operation.name != "hold" {
        return None;
    }
    Some(Hold {
        subject: operation.input["action_run"].as_str()?.to_owned(),
        holder: operation.input["worker"].as_str()?.to_owned(),
        from_us: operation.invoked_us,
        until_us: operation.returned_us,
    })
}

/// Records the end of a hold, whatever its cause: a worker drops the handler of a task that it has lost.
struct Held {
    session: Session,
    invoked_us: u64,
    input: Value,
}

impl Drop for Held {
    fn drop(&mut self) {
        let invocation = Invocation {
            name: "hold",
            input: std::mem::take(&mut self.input),
            invoked_us: self.invoked_us,
        };
        self.session.note(invocation, Value::Null);
    }
}

async fn hold(session: Session, worker: String, context: ActionContext) -> Handled {
    let held = Held {
        invoked_us: session.recorder.now(),
        input: json!({
            "action_run": context.action_run_id(),
            "task": context.task_id(),
            "worker": worker,
        }),
        session,
    };
    tokio::time::sleep(HELD).await;
    drop(held);
    Ok(ActionResult::success(json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(worker: &str, invoked_us: u64) -> Operation {
        Operation {
            name: "hold".to_owned(),
            input: json!({"action_run": "a", "worker": worker}),
            invoked_us,
            returned_us: invoked_us + 10,
            ..Operation::sample("leases", Outcome::Ok)
        }
    }

    #[test]
    fn two_holders_and_a_lost_invocation_are_found() {
        let mut history = History {
            operations: vec![holding("w1", 0), holding("w2", 20)],
            ..History::default()
        };
        assert_eq!(Leases::default().check(&history), []);
        history.operations.push(holding("w3", 25));
        assert_eq!(Leases::default().check(&history).len(), 1);
        history.operations = vec![Operation {
            name: "invoke".to_owned(),
            output: json!({"made": "a"}),
            ..Operation::sample("leases", Outcome::Ok)
        }];
        assert_eq!(Leases::default().check(&history).len(), 1);
    }
}
