//! Dead letters: permanently failed action runs are listed, requeued or purged.

use crate::files::fixture;
use flotilla_tests::{CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};

/// The action has one attempt, so that its first failure is its last.
fn register(flo: &Flo) {
    let _ = flo.text(&["action", "register", "work", "--max-retries", "0"]);
}

/// Waits until the action has this many dead letters, and returns their ids, newest first.
fn await_letters(flo: &Flo, count: usize) -> Vec<String> {
    wait_until("dead letters", TIMEOUT, || {
        let listed = flo.json(&["action", "dlq", "list", "work"]);
        let items = listed["items"].as_array().expect("a list has items");
        if items.len() != count {
            return Err(listed.to_string());
        }
        assert_eq!(
            (&listed["dead_letter_count"], &listed["dropped_count"]),
            (&json!(count), &json!(0))
        );
        let id = |item: &Value| item["id"].as_str().expect("an id").to_owned();
        Ok(items.iter().map(id).collect())
    })
}

/// Waits until the action run has ended, and returns it.
fn await_end(flo: &Flo, action_run_id: &str) -> Value {
    wait_until("the end of the action run", TIMEOUT, || {
        let run = flo.json(&["action", "status", action_run_id]);
        match run["completed_at_ms"].is_u64() {
            true => Ok(run),
            false => Err(run.to_string()),
        }
    })
}

#[test]
fn what_a_worker_fails_for_good_is_seen_run_again_and_thrown_away() {
    let node = DevNode::start();
    let flo = node.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("one-step.yaml")]);
    register(&flo);
    let fixed = node.scratch().path("fixed");
    let script = format!("test -e {} && cat || exit 1", fixed.display());
    let mut worker = CommandWorker::start(&flo, node.scratch(), "w1", &[("work", &script)]);
    let alone = flo.text(&["action", "invoke", "work", r#"{"n": 1}"#, "--async"]);
    let _ = await_letters(&flo, 1);
    let run_id = flo.text(&["workflow", "start", "one-step", r#"{"n": 2}"#]);
    let letters = await_letters(&flo, 2);
    assert_eq!(letters[1], alone);

    let shown = flo.json(&["action", "dlq", "show", "work", &letters[0]]);
    assert_eq!(
        (&shown["input"], &shown["action"]),
        (&json!({"n": 2}), &json!("work"))
    );
    assert_eq!(
        (&shown["run_id"], &shown["step"]),
        (&json!(run_id), &json!("start"))
    );
    assert_eq!(shown["attempts"], 1, "{shown}");
    assert!(shown["failed_at_ms"].is_u64(), "{shown}");
    let table = flo.text(&["action", "dlq", "list", "work"]);
    assert!(table.contains(&alone) && table.contains(&run_id), "{table}");

    let _ = node.scratch().write("fixed", "");
    let again = flo.text(&["action", "dlq", "requeue", "work", &letters[0]]);
    let ended = await_end(&flo, &again);
    assert_eq!(
        (&ended["status"], &ended["output"]),
        (&json!("completed"), &json!({"n": 2}))
    );
    // It resumes no workflow.
    assert_eq!(ended["run_id"], Value::Null, "{ended}");
    assert_eq!(
        flo.json(&["workflow", "status", &run_id])["status"],
        "failed"
    );

    assert_eq!(await_letters(&flo, 1), [alone.as_str()]);
    let requeued = flo.json(&["action", "dlq", "requeue", "work"]);
    assert_eq!(
        (&requeued["action"], &requeued["requeued_count"]),
        (&json!("work"), &json!(1))
    );
    let again = requeued["action_run_ids"][0].as_str().expect("an id");
    assert_eq!(await_end(&flo, again)["output"], json!({"n": 1}));
    let _ = await_letters(&flo, 0);
    assert!(worker.drain().success());
}

#[test]
fn dead_letters_are_purged_by_id_or_all_at_once() {
    let node = DevNode::start();
    let flo = node.flo();
    register(&flo);
    let mut worker = CommandWorker::start(&flo, node.scratch(), "w1", &[("work", "exit 1")]);
    for _ in 0..3 {
        let _ = flo.text(&["action", "invoke", "work", "--async"]);
    }
    let letters = await_letters(&flo, 3);
    let purge = ["action", "dlq", "purge", "work", &letters[1]];
    assert_eq!(
        flo.json(&purge),
        json!({"action": "work", "purged_count": 1})
    );
    flo.refused(&purge).expect(1, "dead_letter_not_found");
    flo.refused(&["action", "dlq", "show", "work", &letters[1]])
        .expect(1, "dead_letter_not_found");
    let _ = flo.text(&["action", "dlq", "purge", "work"]);
    let _ = await_letters(&flo, 0);
    assert!(worker.drain().success());
}
