//! Runs of the examples that failed are resumed, also with a changed definition.

use super::{DESK, PIPELINE, SHORT, article, borrowed};
use crate::coming_from::{Logged, count};
use flotilla_tests::CommandWorker;
use serde_json::{Value, json};

/// What the pipeline calls before it saves an article.
const PREPARED: [&str; 4] = [
    "fetch-page",
    "record-metric",
    "extract-text",
    "ask-large-model",
];

/// A node with the pipeline and a worker whose disk is full. Another worker serves what changed definitions call.
fn with_full_disk() -> (Logged, [CommandWorker; 2]) {
    let logged = Logged::start();
    let stored = r#"echo '{"id": "b-1"}'"#;
    let workers = [
        logged.work("press", &PIPELINE),
        logged.work("archive", &[("store-article", stored)]),
    ];
    logged.create("warlock/article-pipeline", &SHORT);
    (logged, workers)
}

/// From now on, articles can be saved.
fn free_disk(logged: &Logged) {
    let _ = logged.node.scratch().write("disk", "");
}

/// Starts a run of the pipeline that fails when it saves its article.
#[track_caller]
fn fail(logged: &Logged, run_id: &str) -> Value {
    let run = logged.run("article-pipeline", run_id, &article("unsaved"));
    assert_eq!(run["status"], "failed", "{run}");
    let saves = ["save-article"; 3];
    assert_eq!(logged.actions(run_id), [&PREPARED[..], &saves].concat());
    run
}

/// Resumes a run with these flags, and returns it once it has ended.
#[track_caller]
fn resume(logged: &Logged, run_id: &str, flags: &[&str]) -> Value {
    let resume = ["workflow", "resume", run_id, "--wait"];
    let _ = logged.flo().run(&[&resume[..], flags].concat());
    logged.flo().json(&["workflow", "status", run_id])
}

/// The visits of a report, as `SCOPE/STEP OUTCOME`, with the number of their attempts.
fn visits(report: &Value) -> Vec<(String, usize)> {
    let steps = report["steps"].as_array().expect("a list of visits");
    let visit = |step: &Value| {
        let text = |field: &str| step[field].as_str().unwrap_or_default();
        let place = format!("{}/{} {}", text("scope"), text("step"), text("outcome"));
        let attempts_count = step["attempts"].as_array().map_or(0, Vec::len);
        (place.trim_start_matches('/').to_owned(), attempts_count)
    };
    steps.iter().map(visit).collect()
}

/// The report of a run.
fn report(logged: &Logged, run_id: &str) -> Value {
    logged.flo().json(&["workflow", "report", run_id])
}

/// The pipeline with `store-article` instead of `save-article`, and other changes.
fn stored(changes: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [&SHORT, &[("save-article", "store-article")][..], changes].concat()
}

#[test]
fn a_failed_run_continues_at_its_step_and_its_report_shows_both_visits() {
    let (logged, workers) = with_full_disk();
    let failed = fail(&logged, "a-1");
    let before = report(&logged, "a-1");
    assert_eq!(before["run"], failed, "{before}");
    assert_ne!(failed["signature"], Value::Null, "{failed}");
    let started_ms = failed["started_at_ms"].as_u64();
    let completed_ms = failed["completed_at_ms"].as_u64();
    let last = &before["steps"][7];
    assert!(started_ms.is_some() && started_ms <= last["started_at_ms"].as_u64());
    assert_eq!(last["ended_at_ms"].as_u64(), completed_ms, "{before}");
    let mut expected = [
        ("fetch success", 1),
        ("fetch/before success", 0),
        ("fetch/download success", 1),
        ("fetch/after success", 1),
        ("extract success", 1),
        ("classify success", 1),
        ("route default", 0),
        ("save failure", 3),
    ]
    .map(|(visit, attempts_count)| (visit.to_owned(), attempts_count))
    .to_vec();
    assert_eq!(visits(&before), expected, "{before}");

    free_disk(&logged);
    let run = resume(&logged, "a-1", &[]);
    let output = json!({"topic": "news", "saved": {"id": "a-1"}, "connections": 1});
    assert_eq!(
        (&run["status"], &run["output"]),
        (&json!("completed"), &output)
    );
    assert_eq!(run["input"], failed["input"], "{run}");
    assert_eq!(run["started_at_ms"], failed["started_at_ms"], "{run}");
    let saves = ["save-article"; 4];
    assert_eq!(logged.actions("a-1"), [&PREPARED[..], &saves].concat());
    assert_eq!(count(&logged.history("a-1"), "run_resumed"), 1);

    let after = report(&logged, "a-1");
    expected.push(("save success".to_owned(), 1));
    assert_eq!(visits(&after), expected, "{after}");
    assert_eq!(after["run"]["signature"], before["run"]["signature"]);
    let last = after["steps"].as_array().and_then(|steps| steps.last());
    let last = last.expect("a visit");
    assert_eq!(last["output"], json!({"id": "a-1"}), "{after}");
    assert_eq!(last["attempts"][0]["outcome"], "success", "{after}");
    for mut worker in workers {
        assert!(worker.drain().success());
    }
}

#[test]
fn a_changed_definition_is_refused_with_its_differences_unless_it_is_forced() {
    let (logged, workers) = with_full_disk();
    let failed = fail(&logged, "a-1");
    let added = (
        "  - name: save",
        "  - {name: mark, set: {marked: true}}\n  - name: save",
    );
    logged.create("warlock/article-pipeline", &stored(&[added]));

    // The run keeps its revision.
    let run = resume(&logged, "a-1", &[]);
    assert_eq!(
        (&run["status"], &run["revision"]),
        (&json!("failed"), &json!(1))
    );
    let calls = logged.calls("a-1");
    assert_eq!(calls.len(), PREPARED.len() + 6, "{calls:?}");

    let latest = ["workflow", "resume", "a-1", "--latest"];
    let refused = logged.flo().refused(&latest);
    let _ = refused
        .expect(3, "workflow_drift")
        .says(r#"step "save" invokes @actions/store-article instead of @actions/save-article"#)
        .says(r#"step "mark" is new"#)
        .says("pending steps: save")
        .says(failed["signature"].as_str().expect("a signature"));
    let run = logged.flo().json(&["workflow", "status", "a-1"]);
    assert_eq!(
        (&run["status"], &run["revision"]),
        (&json!("failed"), &json!(1))
    );
    assert_eq!(logged.calls("a-1"), calls);

    let run = resume(&logged, "a-1", &["--latest", "--force"]);
    let output = json!({"topic": "news", "saved": {"id": "b-1"}, "connections": 1});
    assert_eq!(
        (&run["status"], &run["output"]),
        (&json!("completed"), &output)
    );
    assert_eq!(run["revision"], 2, "{run}");
    assert_ne!(run["signature"], failed["signature"], "{run}");
    let saved = json!({"url": "https://unsaved", "topic": "news", "text": "unsaved"});
    let stored = ("store-article".to_owned(), saved);
    assert_eq!(logged.calls("a-1"), [&calls[..], &[stored]].concat());
    let report = report(&logged, "a-1");
    assert_eq!(report["run"]["signature"], run["signature"], "{report}");
    let visits: Vec<(String, usize)> = visits(&report).split_off(7);
    let save = |outcome: &str, count: usize| (format!("save {outcome}"), count);
    assert_eq!(
        visits,
        [save("failure", 3), save("failure", 3), save("success", 1)]
    );
    for mut worker in workers {
        assert!(worker.drain().success());
    }
}

#[test]
fn a_definition_with_the_same_steps_is_accepted_and_one_without_the_failed_step_never() {
    let (logged, workers) = with_full_disk();
    let _ = fail(&logged, "a-1");
    let _ = fail(&logged, "a-2");
    let renamed = [
        ("name: save", "name: store"),
        ("default: save", "default: store"),
        ("steps.save", "steps.store"),
    ];
    logged.create("warlock/article-pipeline", &stored(&renamed));
    let forced = ["workflow", "resume", "a-1", "--latest", "--force"];
    let refused = logged.flo().refused(&forced);
    let _ = refused.expect(3, "workflow_drift").says(r#"step "save""#);

    // Migrating by hand: another run begins before the new step, with the results of the first one.
    let retry = [
        "workflow", "retry", "a-1", "--latest", "--from", "route", "--force",
    ];
    let _ = logged
        .flo()
        .text(&[&retry[..], &["--run-id", "a-3"]].concat());
    let run = logged.ended("a-3");
    let output = json!({"topic": "news", "saved": {"id": "b-1"}, "connections": 1});
    assert_eq!(run["output"], output, "{run}");
    assert_eq!(logged.actions("a-3"), ["store-article"]);

    // A mapping is not a part of the signature.
    let mapping = (
        "{url: $.input.url, topic: $.state.topic, text: $.steps.extract.output}",
        "{url: disk, topic: $.state.topic}",
    );
    logged.create(
        "warlock/article-pipeline",
        &[&SHORT[..], &[mapping]].concat(),
    );
    let run = resume(&logged, "a-2", &["--latest"]);
    assert_eq!(
        (&run["status"], &run["revision"]),
        (&json!("completed"), &json!(3))
    );
    let saved = json!({"url": "disk", "topic": "news"});
    assert_eq!(logged.inputs("a-2", "save-article").last(), Some(&saved));
    for mut worker in workers {
        assert!(worker.drain().success());
    }
}

/// The agents of the desk report what they have used. The knowledge base is down until the file `up` exists.
fn desk() -> Vec<(&'static str, String)> {
    let agent = |(name, script): (&'static str, &str)| {
        let script = match name {
            "classify-ticket" | "write-draft" => {
                format!(r#"echo '{{"tokens": 9}}' > "$FLO_USAGE"; {script}"#)
            }
            "search-knowledge-base" => {
                format!(
                    r#"echo '{{"tokens": 2}}' > "$FLO_USAGE"; test -e "$folder/up" || exit 1; {script}"#
                )
            }
            _ => script.to_owned(),
        };
        (name, script)
    };
    DESK.map(agent).to_vec()
}

#[test]
fn a_group_continues_with_its_failed_branch_and_a_resume_gives_a_new_context() {
    let logged = Logged::start();
    let mut worker = logged.work("desk", &borrowed(&desk()));
    logged.create("warlock/support-ticket", &[]);
    let input = r#"{"ticket": "a question"}"#;
    let start = [
        "workflow",
        "start",
        "support-ticket",
        input,
        "--run-id",
        "t-1",
    ];
    let context = ["--metadata", r#"{"locale": "en"}"#];
    let _ = logged.flo().text(&[&start[..], &context].concat());
    assert_eq!(logged.ended("t-1")["status"], "failed");

    let _ = logged.node.scratch().write("up", "");
    let run = resume(&logged, "t-1", &["--metadata", r#"{"locale": "de"}"#]);
    assert_eq!(run["status"], "completed", "{run}");
    let state = json!({"topic": "question", "feedback": null, "drafts": 2});
    assert_eq!(run["output"]["state"], state, "{run}");
    // The branch `draft` had succeeded: it is called again only for the review.
    let drafts = logged.inputs("t-1", "write-draft");
    let contexts: Vec<&Value> = drafts.iter().map(|draft| &draft["locale"]).collect();
    assert_eq!(contexts, ["en", "de"]);
    assert_eq!(logged.inputs("t-1", "search-knowledge-base").len(), 3);
    assert_eq!(logged.inputs("t-1", "classify-ticket").len(), 1);

    let report = report(&logged, "t-1");
    let generate: Vec<(String, usize)> = visits(&report)
        .into_iter()
        .filter(|(place, _)| place.starts_with("generate"))
        .collect();
    let expected = [
        ("generate success", 0),
        ("generate/draft/draft success", 1),
        ("generate/suggest/suggest failure", 1),
        ("generate/suggest/suggest success", 1),
        ("generate success", 0),
        ("generate#2/draft/draft success", 1),
        ("generate#2/suggest/suggest success", 1),
    ]
    .map(|(visit, attempts_count)| (visit.to_owned(), attempts_count));
    assert_eq!(generate, expected, "{report}");
    let usage = &report["usage"];
    assert_eq!(usage["own"], json!({"tokens": 33}), "{usage}");
    assert_eq!(usage["steps"]["draft"], json!({"tokens": 18}), "{usage}");
    assert!(worker.drain().success());
}

#[test]
fn a_batch_with_failed_items_continues_with_those_items() {
    let (logged, workers) = with_full_disk();
    logged.create("warlock/article-batch", &[]);
    // One item may fail.
    let urls = json!({"urls": ["https://a", "https://unsaved"]});
    let run = logged.run("article-batch", "b-1", &urls);
    assert_eq!(run["output"][0]["topic"], "news", "{run}");
    assert_eq!(run["output"][1]["error"]["code"], "failure", "{run}");

    let urls = json!({"urls": ["https://a", "https://unsaved-1", "https://unsaved-2"]});
    let run = logged.run("article-batch", "b-2", &urls);
    assert_eq!(run["status"], "failed", "{run}");
    free_disk(&logged);
    let run = resume(&logged, "b-2", &[]);
    let each = json!({"topic": "news", "saved": {"id": "a-1"}, "connections": 1});
    assert_eq!(run["output"], json!([each, each, each]), "{run}");

    let children = ["workflow", "runs", "--workflow", "article-pipeline"];
    let children = logged.flo().json(&children);
    let children = children["items"].as_array().expect("a list of runs");
    assert_eq!(children.len(), 5, "{children:?}");
    for child in children {
        let actions = logged.actions(child["run_id"].as_str().expect("an id"));
        assert_eq!(actions[..PREPARED.len()], PREPARED);
        let saves = &actions[PREPARED.len()..];
        assert!(
            saves.iter().all(|action| action == "save-article"),
            "{saves:?}"
        );
        assert!([1, 3, 4].contains(&saves.len()), "{saves:?}");
    }
    for mut worker in workers {
        assert!(worker.drain().success());
    }
}
