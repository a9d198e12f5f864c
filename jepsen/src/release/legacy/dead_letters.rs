//! A dead letter.

use super::{Legacy, Site, read};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const ACTION: &str = "release-refused";

/// A dead letter.
pub(super) struct DeadLetters;

#[derive(Serialize, Deserialize)]
struct DeadLetter {
    id: String,
    input: Value,
}

impl Legacy for DeadLetters {
    fn name(&self) -> &'static str {
        "dead-letters"
    }

    fn leave(&self, site: &Site) -> Value {
        let register = ["action", "register", ACTION, "--max-retries", "0"];
        drop(site.flo.text(&register));
        let mut worker = site.work("release-refuser", &[(ACTION, "exit 1")]);
        let input = json!({"order": 7});
        let invoke = ["action", "invoke", ACTION, &input.to_string(), "--wait"];
        let answer = site.flo.run(&invoke);
        assert_ne!(answer.code, 0, "{}", answer.show());
        assert!(worker.drain().success(), "{}", worker.output());
        let letters = site.flo.json(&["action", "dlq", "list", ACTION]);
        let id = letters["items"][0]["id"].as_str();
        let id = id.unwrap_or_else(|| panic!("expected a dead letter in {letters}"));
        json!(DeadLetter {
            id: id.to_owned(),
            input
        })
    }

    fn resume(&self, site: &Site, acknowledged: &Value) {
        let DeadLetter { id, input } = read(acknowledged);
        let dead_letter = site.flo.json(&["action", "dlq", "show", ACTION, &id]);
        assert_eq!(dead_letter["input"], input, "{dead_letter}");
        let _worker = site.work("release-forgiver", &[(ACTION, "cat")]);
        let requeue = ["action", "dlq", "requeue", ACTION, &id];
        let requeued = site.flo.text(&requeue);
        site.await_action_run(&requeued);
    }
}
