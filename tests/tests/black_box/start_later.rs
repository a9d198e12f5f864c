//! Runs that begin later, with the command line.

use flotilla_tests::DevNode;

const WORKFLOW: &str = r#"
kind: Workflow
name: report
version: "1"
start: {set: {done: true}, transitions: {success: flo.Completed}}
output: $.state
"#;

#[test]
fn a_run_begins_at_a_time_or_after_a_delay_and_is_pending_until_then() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("report.yaml", WORKFLOW);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let start = ["workflow", "start", "report", "--run-id"];
    let later = |rest: &[&str]| flo.json(&[&start[..], rest].concat());

    let _ = later(&["late", "--at", "2030-01-01T06:00:00Z"]);
    let status = flo.json(&["workflow", "status", "late"]);
    assert_eq!(status["status"], "pending", "{status}");
    assert_eq!(status["waiting_for"], "start", "{status}");
    assert_eq!(status["starts_at_ms"], 1_893_477_600_000_u64, "{status}");
    assert_eq!(
        status["detail"], "begins at 2030-01-01T06:00:00Z",
        "{status}"
    );
    let _ = flo.text(&["workflow", "cancel", "late"]);
    let status = flo.json(&["workflow", "status", "late"]);
    assert_eq!(status["status"], "cancelled", "{status}");
    assert!(status["starts_at_ms"].is_null(), "{status}");

    let soon = flo.text(&[&start[..], &["soon", "--after", "200ms", "--wait"]].concat());
    assert_eq!(soon, "{\"done\":true}");
    let past = flo.text(&[&start[..], &["past", "--at", "1000", "--wait"]].concat());
    assert_eq!(past, "{\"done\":true}");

    flo.refused(&[&start[..], &["far", "--after", "4000d"]].concat())
        .expect(2, "invalid_argument");
    let both = [&start[..], &["both", "--after", "1s", "--at", "1000"]].concat();
    assert_eq!(flo.run(&both).code, 2);
    assert_eq!(
        flo.run(&[&start[..], &["bad", "--at", "tomorrow"]].concat())
            .code,
        2
    );
}
