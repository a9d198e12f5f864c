//! Tests the scripts of `examples/actions`, run in the same way as by `flo worker exec`.

#[path = "../src/project/root.rs"]
mod project;

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use project::root;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The environment of one attempt.
struct Attempt {
    folder: TempDir,
    number: u32,
}

impl Attempt {
    fn new(number: u32) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder, number }
    }

    fn run(&self, action: &str, input: &str) -> Output {
        let mut child = Command::new("sh")
            .arg(format!("examples/actions/{action}.sh"))
            .current_dir(root())
            .env("FLO_OUTCOME_FILE", self.folder.path().join("outcome"))
            .env("FLO_ATTEMPT", self.number.to_string())
            .env("RECEIPTS", self.folder.path().join("receipts"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("a reader");
        drop(stdin);
        child.wait_with_output().expect("its output")
    }

    fn succeed(&self, action: &str, input: &str) -> Value {
        let output = self.run(action, input);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn fail(&self, action: &str, input: &str, code: i32, message: &str) {
        let output = self.run(action, input);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(message), "{stderr}");
    }

    fn outcome(&self) -> String {
        fs::read_to_string(self.folder.path().join("outcome")).unwrap_or_default()
    }
}

#[test]
fn an_order_is_valid_when_it_has_an_id_and_costs_something() {
    let attempt = Attempt::new(1);
    let input = "{\"order_id\": \"A-1\",\n \"amount\": 12.50, \"card\": \"4242\"}";
    let output = attempt.succeed("validate-order", input);
    let expected = json!({"order_id": "A-1", "amount": 12.50, "valid": true});
    assert_eq!(output, expected);
    for (input, message) in [
        (r#"{"amount":1}"#, "order_id"),
        (r#"{"order_id":"A-1"}"#, "amount"),
        (r#"{"order_id":"A-1","amount":0.00}"#, "its amount is 0.00"),
        (r#"{"order_id":"A-1","amount":-3}"#, "its amount is -3"),
        ("{}", "order_id"),
    ] {
        attempt.fail("validate-order", input, 65, message);
    }
}

#[test]
fn an_order_is_charged_once_however_often_it_is_tried() {
    let attempt = Attempt::new(1);
    let charge = |amount: u32| {
        let input = format!(r#"{{"order_id":"A-1","amount":{amount},"card":"4242"}}"#);
        attempt.succeed("charge-payment", &input)
    };
    let expected = json!({"order_id": "A-1", "charged": 119.00});
    assert_eq!(charge(100), expected);
    assert_eq!(charge(200), expected);
    let receipts = attempt.folder.path().join("receipts");
    assert_eq!(fs::read_dir(receipts).expect("receipts").count(), 1);
}

#[test]
fn a_bank_that_sleeps_answers_the_second_attempt() {
    let input = r#"{"order_id":"A-1","amount":100,"card":"4000"}"#;
    Attempt::new(1).fail("charge-payment", input, 1, "did not answer");
    let output = Attempt::new(2).succeed("charge-payment", input);
    assert_eq!(output["charged"], 119.00);
}

#[test]
fn only_an_expensive_order_needs_an_approval() {
    for (amount, outcome) in [
        ("500.00", ""),
        ("500.01", "failure\n"),
        ("2400", "failure\n"),
    ] {
        let attempt = Attempt::new(1);
        let input = format!(r#"{{"order_id":"A-1","amount":{amount}}}"#);
        let output = attempt.succeed("check-approval-needed", &input);
        assert_eq!(output["approval_needed"], !outcome.is_empty());
        assert_eq!(attempt.outcome(), outcome);
    }
}
