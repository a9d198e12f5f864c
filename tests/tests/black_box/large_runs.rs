//! Runs whose outputs do not fit into one response (W95).

use flotilla_tests::DevNode;
use serde_json::Value;

const STEPS: usize = 8;
const OUTPUT_BYTES: usize = 900_000;

#[test]
fn a_status_says_which_outputs_it_leaves_out_and_each_can_be_printed() {
    let node = DevNode::start();
    let flo = node.flo();
    let step = |number| {
        format!("  - {{name: s{number}, waitForSignal: {{type: go, timeoutMs: 600000}}}}\n")
    };
    let steps: String = (0..STEPS).map(step).collect();
    let source = format!("kind: Workflow\nname: large\nversion: \"1\"\nsteps:\n{steps}");
    let file = node.scratch().write("large.yaml", &source);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let _ = flo.text(&["workflow", "start", "large", "--run-id", "l-1"]);
    let output = |number: usize| format!("[{number},\"{}\"]", "x".repeat(OUTPUT_BYTES));
    for number in 0..STEPS {
        let payload = node.scratch().write("payload.json", output(number));
        let payload = format!("@{payload}");
        let _ = flo.text(&["workflow", "signal", "l-1", "--type", "go", &payload]);
    }

    let shown = flo.run(&["workflow", "status", "l-1"]);
    let status: Value = serde_json::from_str(&shown.stdout).expect("the status is JSON");
    assert_eq!(status["status"], "completed");
    let mut omitted_count = 0;
    for number in 0..STEPS {
        let name = format!("s{number}");
        let step = &status["steps"][&name];
        let printed = flo.text(&["workflow", "output", "l-1", &name]);
        assert_eq!(printed.trim_end(), output(number));
        if step["output_omitted"] == true {
            omitted_count += 1;
            assert_eq!(step["output"], Value::Null);
        } else {
            assert_eq!(step["output"][0], number);
        }
    }
    assert!((1..STEPS).contains(&omitted_count), "{omitted_count}");
    let note =
        format!("outputs left out: {omitted_count}; print one: flo workflow output l-1 STEP");
    assert!(shown.stderr.contains(&note), "{}", shown.stderr);
    let missing = flo.refused(&["workflow", "output", "l-1", "other"]);
    assert_eq!(missing.code, "step_result_not_found");
}
