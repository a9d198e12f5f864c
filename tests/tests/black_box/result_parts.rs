//! What an attempt gives beside its output, whatever executes it: a patch of the state (W66), what it has used (W87), and
//! the delay of what follows (W74).

use crate::sdk::SdkWorker;
use flotilla_client::ActionResult;
use flotilla_tests::{CommandWorker, DevNode};
use serde_json::{Value, json};
use std::time::Duration;

const WORKFLOW: &str = r#"
kind: Workflow
name: parts
version: "1"
steps:
  - {name: first, run: "@actions/module"}
  - {name: second, run: "@actions/wasi-command"}
  - {name: third, run: "@actions/sdk"}
  - {name: fourth, run: "@actions/program"}
  - {name: last, wait: {duration: 1ms}}
output: $.state
"#;

/// Answers `{}`, with a patch, a usage and a delay.
const MODULE: &str = r#"
(module
  (import "flo" "set_state_patch" (func $set_state_patch (param i32 i32) (result i32)))
  (import "flo" "set_usage" (func $set_usage (param i32 i32) (result i32)))
  (import "flo" "set_delay" (func $set_delay (param i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "{\"module\":1}{\"tokens\":1}")
  (func (export "alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "handle") (param $input i32) (param $length i32) (result i64)
    (if (call $set_state_patch (i32.const 16) (i32.const 12)) (then unreachable))
    (if (call $set_usage (i32.const 28) (i32.const 12)) (then unreachable))
    (if (call $set_delay (i64.const 20)) (then unreachable))
    (i64.or (i64.shl (i64.const 1024) (i64.const 32)) (i64.extend_i32_u (local.get $length)))))
"#;

/// The same as a WASI command, without an output.
const COMMAND: &str = r#"
(module
  (import "flo" "set_state_patch" (func $set_state_patch (param i32 i32) (result i32)))
  (import "flo" "set_usage" (func $set_usage (param i32 i32) (result i32)))
  (import "flo" "set_delay" (func $set_delay (param i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "{\"command\":2}{\"tokens\":2}")
  (func (export "_start")
    (if (call $set_state_patch (i32.const 16) (i32.const 13)) (then unreachable))
    (if (call $set_usage (i32.const 29) (i32.const 12)) (then unreachable))
    (if (call $set_delay (i64.const 20)) (then unreachable))))
"#;

const PROGRAM: &str = r#"echo '{"program":8}' > "$FLO_STATE_PATCH"
echo '{"tokens":8}' > "$FLO_USAGE"
echo 20ms > "$FLO_DELAY_FILE""#;

#[test]
fn patches_usages_and_delays_arrive_from_modules_the_sdk_and_programs() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("parts.yaml", WORKFLOW);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    for (action, text) in [("module", MODULE), ("wasi-command", COMMAND)] {
        let module = node.scratch().write(&format!("{action}.wat"), text);
        let _ = flo.text(&["action", "register", action, "--wasm", &module]);
    }
    for action in ["sdk", "program"] {
        let _ = flo.text(&["action", "register", action]);
    }
    let sdk = SdkWorker::start(node.endpoint(), "sdk", |_| {
        let result = ActionResult::success(json!({}))
            .with_state_patch(json!({"sdk": 4}))
            .with_usage(json!({"tokens": 4}))
            .with_delay(Duration::from_millis(20));
        Ok(result)
    });
    let mut program = CommandWorker::start(&flo, node.scratch(), "p-1", &[("program", PROGRAM)]);

    let _ = flo.text(&["workflow", "start", "parts", "--run-id", "p-1"]);
    let events = flo.json_lines(&["workflow", "history", "p-1", "--follow"]);
    let run = flo.json(&["workflow", "status", "p-1"]);
    let state = json!({"module": 1, "command": 2, "sdk": 4, "program": 8});
    assert_eq!(run["output"], state, "{run}");
    let report = flo.json(&["workflow", "report", "p-1"]);
    assert_eq!(report["usage"]["own"], json!({"tokens": 15}), "{report}");
    let used = json!({
        "first": {"tokens": 1}, "second": {"tokens": 2}, "third": {"tokens": 4}, "fourth": {"tokens": 8}
    });
    assert_eq!(report["usage"]["steps"], used, "{report}");
    let delayed = events
        .iter()
        .filter(|event| event["type"] == "step_delayed");
    let delayed: Vec<&Value> = delayed.map(|event| &event["step"]).collect();
    assert_eq!(delayed, ["second", "third", "fourth", "last"], "{events:?}");

    sdk.drain();
    assert!(program.drain().success());
}
