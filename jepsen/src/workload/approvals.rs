//! Decisions about the approvals of two iterations: each acknowledged one counts once, in the iteration that it names,
//! and an iteration ends with exactly as many as its quorum.

use super::calls::{attempts, await_end, define, found_in, run, runs, start};
use super::{Session, Workload};
use crate::checker::{Violation, exactly_once};
use crate::history::History;
use flotilla_client::{ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-approval";
const DEFINITION: &str = "kind: Workflow
name: chaos-approval
version: \"1.0.0\"
steps:
  - name: each
    forEach:
      items: {cel: \"[0, 1]\"}
      concurrency: 2
      do: {approval: {quorum: 3, timeout: PT1H}}
output: {items: $.steps.each.output}
";
const QUORUM: u64 = 3;
const ITEMS: u64 = 2;
/// One in this many decisions is sent again with the same request id, whatever the first response was.
const REPEATED: f64 = 0.3;
const PAUSE: Duration = Duration::from_millis(30);
/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 40;

/// Decisions about approvals.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    decisions: AtomicU64,
}

/// The final state of a run.
#[derive(Debug, Deserialize, Serialize)]
struct Ended {
    run_id: String,
    status: String,
    /// The comments on each item.
    items: Vec<Vec<String>>,
}

impl Workload for Approvals {
    fn name(&self) -> &'static str {
        "approvals"
    }

    fn prepare(&self, flo: &Flo) {
        define(flo, DEFINITION);
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let number = self.decisions.fetch_add(1, Ordering::Relaxed);
            let run = format!("approvals-{}", number / (QUORUM * ITEMS));
            // The run may exist already: the same key gives the same run.
            if let Ok(run_id) = start(session, WORKFLOW, &run).await {
                let item = number % ITEMS;
                let request_id: [u8; 16] = random.random();
                let request = v1::DecideApprovalRequest {
                    request_id: request_id.to_vec().into(),
                    ..approve(&run_id, item, &format!("{item}-decision-{number}"))
                };
                decide(session, request.clone()).await;
                if random.random_bool(REPEATED) {
                    decide(session, request).await;
                }
            }
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            for row in runs(&session.client, WORKFLOW).await? {
                complete(session, &row.run_id).await;
            }
            let mut ended = Vec::new();
            for row in await_end(session, WORKFLOW, LOOKS_MAX).await? {
                ended.push(read(session, row.run_id).await?);
            }
            Ok(json!(ended))
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let ended: Vec<Ended> = found_in(history, self.name());
        let attempts = attempts(history, self.name(), "approve");
        let mut found = Vec::new();
        for run in &ended {
            let comments = run.items.iter().flatten().filter(|text| *text != FILLER);
            found.extend(comments.map(|text| (text.clone(), run.run_id.clone())));
        }
        let mut violations = exactly_once(&attempts, &found);
        violations.extend(ended.iter().flat_map(Ended::check));
        violations
    }
}

impl Ended {
    fn check(&self) -> Vec<Violation> {
        let Self {
            run_id,
            status,
            items,
        } = self;
        if status != "RUN_STATUS_COMPLETED" {
            let text = format!("{run_id} should complete, but its status is {status}");
            return vec![Violation::new(text)];
        }
        let mut violations = Vec::new();
        for (index, comments) in items.iter().enumerate() {
            let is_full = comments.len() as u64 == QUORUM;
            let of_item = format!("{index}-");
            let is_own = |text: &String| text == FILLER || text.starts_with(&of_item);
            if !is_full || !comments.iter().all(is_own) {
                violations.push(Violation::new(format!(
                    "item {index} of {run_id} should end with {QUORUM} decisions about it, but it has {comments:?}"
                )));
            }
        }
        violations
    }
}

/// The comment of the decisions that complete a run in the end.
const FILLER: &str = "filler";

fn approve(run_id: &str, item: u64, comment: &str) -> v1::DecideApprovalRequest {
    v1::DecideApprovalRequest {
        run_id: run_id.to_owned(),
        scope: format!("each[{item}]"),
        approved: true,
        comment: comment.to_owned(),
        ..v1::DecideApprovalRequest::default()
    }
}

async fn decide(session: &Session, request: v1::DecideApprovalRequest) {
    let (key, run_id) = (request.comment.clone(), request.run_id.clone());
    let input = json!({"key": key, "run": run_id});
    let call = session.client.decide_approval(request);
    // The history has the outcome.
    let _ = session
        .call("approve", input, call, |_| json!({"made": run_id}))
        .await;
}

/// Approves each item until it takes no further decisions.
async fn complete(session: &Session, run_id: &str) {
    for item in 0..ITEMS {
        for _ in 0..QUORUM {
            let request = approve(run_id, item, FILLER);
            // A run that stays open is found by its status.
            if session.client.decide_approval(request).await.is_err() {
                break;
            }
        }
    }
}

async fn read(session: &Session, run_id: String) -> Result<Ended, ClientError> {
    let run = run(&session.client, &run_id).await?;
    let output = run.output.as_deref().unwrap_or_default();
    let output: Value = serde_json::from_slice(output).unwrap_or_default();
    let items = output["items"].as_array().into_iter().flatten();
    let comments = |item: &Value| {
        let decisions = item["decisions"].as_array().into_iter().flatten();
        let comments = decisions.map(|decision| decision["comment"].as_str().unwrap_or_default());
        comments.map(str::to_owned).collect()
    };
    Ok(Ended {
        items: items.map(comments).collect(),
        status: run.status().as_str_name().to_owned(),
        run_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Operation, Outcome};
    use std::collections::BTreeMap;

    fn violations(items: &Value) -> usize {
        let operation = Operation {
            name: "approve".to_owned(),
            input: json!({"key": "0-decision-1"}),
            ..Operation::sample("approvals", Outcome::Ok)
        };
        let ended = json!([{"run_id": "r", "status": "RUN_STATUS_COMPLETED", "items": items}]);
        let history = History {
            operations: vec![operation],
            final_reads: BTreeMap::from([("approvals".to_owned(), ended)]),
            ..History::default()
        };
        Approvals::default().check(&history).len()
    }

    #[test]
    fn a_decision_that_is_lost_doubled_or_given_to_another_item_is_found() {
        let fillers = json!([FILLER, FILLER, FILLER]);
        let sound = json!([["0-decision-1", FILLER, FILLER], fillers]);
        assert_eq!(violations(&sound), 0);
        assert_eq!(violations(&json!([fillers, fillers])), 1, "lost");
        let doubled = json!([["0-decision-1", "0-decision-1", FILLER], fillers]);
        assert_eq!(violations(&doubled), 1);
        let astray = json!([fillers, ["0-decision-1", FILLER, FILLER]]);
        assert_eq!(violations(&astray), 1);
        let short = json!([["0-decision-1", FILLER], fillers]);
        assert_eq!(violations(&short), 1);
    }
}
