//! The manual's payment-processing example from end to end (W30–W38): the history of each run
//! and `flo plan status` show what its plan does.

use crate::files::example;
use crate::history::{self, Event};
use flotilla_tests::{CommandWorker, DevNode, Flo, HttpAnswer, TIMEOUT, post, wait_until};
use serde_json::{Value, json};
use std::fs;

const WORKFLOW: &str = "payment-processing";
const PLAN: &str = "charge-payment";
const STATUS: [&str; 4] = ["plan", "status", WORKFLOW, PLAN];

/// A node with the example, and a worker whose primary executor can be made to fail.
struct Payments {
    node: DevNode,
    flo: Flo,
    worker: CommandWorker,
}

/// The report URL and token of an accepted task, as the primary executor's program got them.
struct Accepted {
    url: String,
    token: String,
}

impl Payments {
    /// The definition, with the changes that the test needs.
    fn start(change: (&str, &str)) -> Self {
        let node = DevNode::start();
        let flo = node.flo();
        let source = fs::read_to_string(example("workflows/payment-processing.yaml"))
            .expect("an example")
            .replace(change.0, change.1);
        let file = node.scratch().write("payment.yaml", source);
        let _ = flo.text(&["workflow", "create", "-f", &file]);
        let folder = node.scratch().path("").display().to_string();
        let stripe = format!(
            "if test -e {folder}/down; then echo rate_limited >&2; exit 1; fi; \
             echo \"$FLO_REPORT_URL $FLO_TASK_TOKEN\" > {folder}/$FLO_RUN_ID.part; \
             mv {folder}/$FLO_RUN_ID.part {folder}/$FLO_RUN_ID; exit 76"
        );
        let status = format!(
            "if mkdir {folder}/$FLO_RUN_ID-asked; then exit 75; else echo '{{\"paid\": true}}'; fi"
        );
        let actions = [
            ("charge-stripe", stripe.as_str()),
            ("charge-adyen", r#"echo '{"payment_id": "adyen-1"}'"#),
            ("check-payment-status", status.as_str()),
            ("send-notification", "cat"),
        ];
        // The plan handles the retries of executors.
        let flags = ["--worker-id", "w1", "--max-retries", "0"];
        let worker = CommandWorker::start_with(&flo, node.scratch(), &flags, &actions);
        Self { node, flo, worker }
    }

    /// Makes the primary executor fail, or work again.
    fn set_down(&self, is_down: bool) {
        let mark = self.node.scratch().path("down");
        let done = match is_down {
            true => fs::write(mark, ""),
            false => fs::remove_file(mark),
        };
        done.expect("the test's own folder");
    }

    /// Starts a payment; `key` is both the run's idempotency key and its id.
    fn pay(&self, key: &str, customer: &str) -> String {
        let input = json!({
            "customer_id": customer, "amount": 5, "idempotency_key": customer,
        })
        .to_string();
        let line = ["workflow", "start", WORKFLOW, &input];
        let line = [&line[..], &["--idempotency-key", key, "--run-id", key]].concat();
        self.flo.text(&line)
    }

    /// Waits for the run's end, and returns the events of its plan in short form.
    fn story(&self, run_id: &str) -> Vec<String> {
        let line = ["workflow", "history", run_id, "--follow"];
        let events = self.flo.json_lines(&line);
        let events: Vec<Event> = events.into_iter().map(Event::from).collect();
        history::expect_sound(run_id, &events);
        let plan = events.iter().filter_map(|event| {
            let kind = match event.kind.as_str() {
                "awaiting_report" => "awaiting_report",
                kind => kind.strip_prefix("plan_")?,
            };
            let detail = event.attributes["detail"].as_str().expect("a text");
            Some(match kind {
                "cache_hit" | "awaiting_report" => kind.to_owned(),
                _ => format!("{kind} {detail}"),
            })
        });
        plan.collect()
    }

    /// Waits until the run's task is accepted.
    fn accepted(&self, run_id: &str) -> Accepted {
        let waiting = || {
            let run = self.flo.json(&["workflow", "status", run_id]);
            match run["current_steps"][0]["waiting_for"].as_str() {
                Some("report") => Ok(()),
                _ => Err(run.to_string()),
            }
        };
        wait_until("an accepted task", TIMEOUT, waiting);
        let note = fs::read_to_string(self.node.scratch().path(run_id)).expect("a note");
        let (url, token) = note.trim().split_once(' ').expect("two words");
        Accepted {
            url: url.to_owned(),
            token: token.to_owned(),
        }
    }

    fn breaker(&self) -> Value {
        self.flo.json(&STATUS)["executors"][0]["breaker"].clone()
    }
}

impl Accepted {
    fn report(&self, token: &str, body: &str) -> HttpAnswer {
        let authorization = format!("Authorization: Bearer {token}");
        post(&self.url, &[&authorization], body)
    }
}

const ADYEN: [&str; 2] = [
    "executor_start adyen-fallback",
    "executor_success adyen-fallback",
];

#[test]
fn an_executor_that_fails_is_replaced_then_skipped_and_its_successors_results_are_cached() {
    let mut payments = Payments::start(("", ""));
    let flo = payments.flo.clone();
    payments.set_down(true);

    let attempt = "executor_start stripe-primary";
    let again = "executor_retry stripe-primary";
    let exhausted = "executor_exhausted stripe-primary";
    let expected = [
        &[attempt, again, attempt, again, attempt, exhausted],
        &ADYEN[..],
    ]
    .concat();
    assert_eq!(payments.story(&payments.pay("run-1", "c-1")), expected);
    let plan = flo.json(&STATUS);
    assert_eq!(
        plan["executors"][0]["consecutive_failure_count"], 3,
        "{plan}"
    );
    assert_eq!(plan["cached_result_count"], 1, "{plan}");

    let story = payments.story(&payments.pay("run-2", "c-2"));
    let opened = "breaker_opened stripe-primary".to_owned();
    assert!(
        story.contains(&opened) && story.ends_with(&ADYEN.map(str::to_owned)),
        "{story:?}"
    );
    assert_eq!(payments.breaker(), "open");
    let skipped = [&["breaker_skip stripe-primary"], &ADYEN[..]].concat();
    assert_eq!(payments.story(&payments.pay("run-3", "c-3")), skipped);

    assert_eq!(payments.story(&payments.pay("run-4", "c-1")), ["cache_hit"]);
    let invalidate = ["workflow", "invalidate", "payment.refunded"];
    assert_eq!(flo.json(&invalidate)["plan_count"], 1);
    assert_eq!(payments.story(&payments.pay("run-5", "c-1")), skipped);
    let other = flo.json(&["workflow", "invalidate", "payment.lost"]);
    assert_eq!(other["plan_count"], 0);

    let reset = ["plan", "reset", WORKFLOW, PLAN, "stripe-primary"];
    let _ = flo.text(&reset);
    assert_eq!(payments.breaker(), "closed");
    let refusal = flo.refused(&["plan", "reset", WORKFLOW, PLAN, "paypal"]);
    refusal.expect(1, "executor_not_found");
    let refusal = flo.refused(&["plan", "status", WORKFLOW, "ship"]);
    refusal.expect(1, "plan_not_found");
    assert!(payments.worker.drain().success());
}

#[test]
fn an_accepted_task_ends_with_its_report_which_counts_once() {
    let mut payments = Payments::start(("", ""));
    let flo = payments.flo.clone();
    let run_id = payments.pay("run-1", "c-1");
    let task = payments.accepted(&run_id);

    let body = r#"{"outcome": "pending", "output": {"payment_id": "st-1"}}"#;
    let mac_changed = match task.token.strip_suffix('0') {
        Some(rest) => format!("{rest}1"),
        None => format!("{}0", &task.token[..task.token.len() - 1]),
    };
    let refused = task.report(&mac_changed, body);
    assert_eq!(refused.error(), (401, "task_token_wrong"));
    assert_eq!(task.report("none", body).error(), (401, "token_malformed"));
    assert_eq!(post(&task.url, &[], body).error(), (401, "token_missing"));
    let refused = task.report(&task.token, r#"{"result": 1}"#);
    assert_eq!(refused.error(), (400, "invalid_argument"));
    let large = format!(r#"{{"output": "{}"}}"#, "x".repeat(2 << 20));
    assert_eq!(task.report(&task.token, &large).error(), (413, "too_large"));

    let answer = task.report(&task.token, body);
    assert_eq!((answer.status, &answer.body), (200, &json!({})));
    let used = task.report(&task.token, body);
    assert_eq!(used.error(), (409, "action_run_ended"));
    let expected = [
        "executor_start stripe-primary",
        "awaiting_report",
        "executor_outcome stripe-primary",
    ];
    assert_eq!(payments.story(&run_id), expected);
    let run = flo.json(&["workflow", "status", &run_id]);
    assert_eq!(
        run["steps"]["check_payment_status"]["output"],
        json!({"paid": true})
    );

    let run_id = payments.pay("run-2", "c-2");
    let token = payments.accepted(&run_id).token;
    let report = [
        "action",
        "report",
        &token,
        "--outcome",
        "success",
        r#"{"payment_id": "st-2"}"#,
    ];
    assert_eq!(flo.json(&report), json!({"outcome": "success"}));
    flo.refused(&report).expect(3, "action_run_ended");
    let ended = payments.story(&run_id);
    assert_eq!(
        ended.last().map(String::as_str),
        Some("executor_success stripe-primary")
    );
    assert!(payments.worker.drain().success());
}

#[test]
fn an_executor_whose_rate_limit_is_reached_is_passed_over() {
    let mut payments = Payments::start(("max_per_second: 100", "max_per_hour: 1"));
    payments.set_down(true);
    let plan = payments.flo.json(&STATUS);
    assert_eq!(plan["executors"][0]["remaining_per_hour"], 1, "{plan}");
    let story = payments.story(&payments.pay("run-1", "c-1"));
    let limited = "rate_limited stripe-primary".to_owned();
    let starts = |story: &[String]| story.iter().filter(|event| event.contains("start")).count();
    assert!(story.contains(&limited), "{story:?}");
    assert_eq!(starts(&story), 2, "one call of each executor: {story:?}");
    let second = payments.story(&payments.pay("run-2", "c-2"));
    assert_eq!(second, [&[limited.as_str()], &ADYEN[..]].concat());
    let plan = payments.flo.json(&STATUS);
    assert_eq!(plan["executors"][0]["remaining_per_hour"], 0, "{plan}");
    assert!(payments.worker.drain().success());
}

#[test]
fn a_step_without_a_plan_cannot_be_accepted() {
    let node = DevNode::start();
    let flo = node.flo();
    let flags = ["--worker-id", "w1"];
    let mut worker =
        CommandWorker::start_with(&flo, node.scratch(), &flags, &[("later", "exit 76")]);
    let id = flo.text(&["action", "invoke", "later", "--async"]);
    let ended = wait_until("the end of the action run", TIMEOUT, || {
        let run = flo.json(&["action", "status", &id]);
        match run["completed_at_ms"].is_u64() {
            true => Ok(run),
            false => Err(run.to_string()),
        }
    });
    assert!(ended.to_string().contains("task_not_tracked"), "{ended}");
    assert!(worker.drain().success());
}
