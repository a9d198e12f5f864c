//! "Coming from Warlock".

mod resuming;

use super::{Logged, count, outcomes};
use flotilla_tests::DevNode;
use serde_json::{Value, json};

/// The agents of the support desk. The reviewer wants friendly drafts, and rejects all drafts of hopeless
/// tickets.
const DESK: [(&str, &str); 6] = [
    (
        "classify-ticket",
        r#"case $input in *invoice*) echo '{"topic": "billing", "tokens": 9}';; *) echo '{"topic": "question", "tokens": 9}';; esac"#,
    ),
    ("find-customer", r#"echo '{"plan": "gold"}'"#),
    (
        "write-draft",
        r#"case $input in
             *friendlier*) echo '{"text": "Dear customer"}';;
             *hopeless*) echo '{"text": "hopeless"}';;
             *) echo '{"text": "No."}';;
           esac"#,
    ),
    (
        "search-knowledge-base",
        r#"case $input in *bug*) echo down >&2; exit 1;; *) echo '["kb-7"]';; esac"#,
    ),
    (
        "review-draft",
        r#"case $input in
             *Dear*) echo '{"approved": true, "feedback": null}';;
             *hopeless*) echo '{"approved": false, "feedback": "never"}';;
             *) echo '{"approved": false, "feedback": "friendlier, please"}';;
           esac"#,
    ),
    ("send-reply", r#"echo '{"id": "mail-1"}'"#),
];

/// Actions whose scripts were changed, as a worker takes them.
fn borrowed<'s>(actions: &'s [(&'s str, String)]) -> Vec<(&'s str, &'s str)> {
    let borrowed = actions.iter();
    borrowed
        .map(|(name, script)| (*name, script.as_str()))
        .collect()
}

#[test]
fn a_ticket_is_enriched_and_drafted_again_with_feedback_from_the_state() {
    let logged = Logged::start();
    let mut worker = logged.work("desk", &DESK);
    logged.create("warlock/support-ticket", &[]);
    let ticket = "my invoice is wrong";
    let input = json!({"ticket": ticket, "customer": "c-1"}).to_string();
    let context = json!({"locale": "en"}).to_string();
    let start = ["workflow", "start", "support-ticket", &input];
    let more = ["--run-id", "t-1", "--metadata", &context];
    let _ = logged.flo().text(&[&start[..], &more].concat());
    let run = logged.ended("t-1");

    assert_eq!(run["terminal"], "flo.Completed", "{run}");
    let state = json!({"topic": "billing", "feedback": null, "drafts": 2});
    let output = json!({"sent": {"id": "mail-1"}, "articles": ["kb-7"], "state": state});
    assert_eq!(run["output"], output, "{run}");
    assert_eq!(
        run["steps"]["classify"]["output"],
        json!({"topic": "billing"})
    );
    let draft = |feedback: Value| {
        let customer = json!({"plan": "gold"});
        json!({"ticket": ticket, "customer": customer, "feedback": feedback, "locale": "en"})
    };
    let drafts = [draft(Value::Null), draft(json!("friendlier, please"))];
    assert_eq!(logged.inputs("t-1", "write-draft"), drafts);
    let review = |text: &str| json!({"draft": {"text": text}, "articles": ["kb-7"]});
    let reviews = [review("No."), review("Dear customer")];
    assert_eq!(logged.inputs("t-1", "review-draft"), reviews);
    let customer = [json!({"customer": "c-1"})];
    assert_eq!(logged.inputs("t-1", "find-customer"), customer);
    let reply = [json!({"reply": "Dear customer"})];
    assert_eq!(logged.inputs("t-1", "send-reply"), reply);

    let mut order = logged.actions("t-1");
    // The branches run at the same time.
    order[2..4].sort();
    order[5..7].sort();
    let generate = ["search-knowledge-base", "write-draft", "review-draft"];
    let expected = [
        &["classify-ticket", "find-customer"][..],
        &generate,
        &generate,
        &["send-reply"],
    ];
    assert_eq!(order, expected.concat());
    let left = outcomes(&logged.history("t-1"));
    let decisions: Vec<&String> = left
        .iter()
        .filter(|left| left.starts_with("decide"))
        .collect();
    assert_eq!(decisions, ["decide generate", "decide default"]);
    assert!(worker.drain().success());
}

#[test]
fn a_question_is_not_enriched() {
    let logged = Logged::start();
    let mut worker = logged.work("desk", &DESK);
    logged.create("warlock/support-ticket", &[]);
    let input = json!({"ticket": "a friendlier question"});
    let run = logged.run("support-ticket", "t-1", &input);
    assert_eq!(run["output"]["state"]["drafts"], 1, "{run}");
    assert_eq!(run["steps"]["enrich"]["outcome"], "skipped", "{run}");
    assert_eq!(logged.inputs("t-1", "find-customer"), Vec::<Value>::new());
    let [draft] = &logged.inputs("t-1", "write-draft")[..] else {
        panic!("one draft");
    };
    assert_eq!(draft["customer"], Value::Null);
    assert!(worker.drain().success());
}

#[test]
fn a_failed_branch_lets_the_other_one_end_and_is_the_error_of_the_group() {
    let logged = Logged::start();
    let bug = (r#""question""#, r#""bug""#);
    let desk = DESK.map(|(name, script)| (name, script.replace(bug.0, bug.1)));
    let mut worker = logged.work("desk", &borrowed(&desk));
    logged.create("warlock/support-ticket", &[]);
    let run = logged.run("support-ticket", "t-1", &json!({"ticket": "it crashes"}));
    assert_eq!(run["status"], "failed", "{run}");
    let output = &run["steps"]["generate"]["output"];
    assert_eq!(output["error"]["branch"], "suggest", "{run}");
    assert_eq!(output["branches"]["draft"]["outcome"], "success", "{run}");
    let text = json!({"text": "No."});
    assert_eq!(output["branches"]["draft"]["output"], text, "{run}");
    assert_eq!(logged.inputs("t-1", "review-draft"), Vec::<Value>::new());
    assert!(worker.drain().success());
}

#[test]
fn an_endless_review_is_reported_and_then_stopped() {
    let logged = Logged::start();
    let mut worker = logged.work("desk", &DESK);
    logged.create("warlock/support-ticket", &[]);
    let run = logged.run("support-ticket", "t-1", &json!({"ticket": "hopeless"}));
    assert_eq!(run["status"], "failed", "{run}");
    let detail = run["detail"].as_str().unwrap_or_default();
    assert!(
        detail.contains("max step limit reached: maxSteps is 100"),
        "{run}"
    );
    // 100 steps: the first two, then `generate`, `review` and `decide`, as often as possible.
    assert_eq!(logged.inputs("t-1", "review-draft").len(), 33, "{run}");
    let warned = logged.history("t-1");
    let warned = warned.iter().find(|event| event["type"] == "loop_warning");
    assert_eq!(warned.map(|event| &event["visits"]), Some(&json!(5)));
    assert!(worker.drain().success());
}

/// The agents of the article pipeline. What they do depends on the URL, which each of them passes on.
const PIPELINE: [(&str, &str); 7] = [
    (
        "fetch-page",
        r#"case $input in
             *slow*) exec sleep 600;;
             *flaky*) mkdir "$folder/fetch-$FLO_RUN_ID" 2> /dev/null && exit 1;;
             *broken*) mkdir "$folder/fetch-$FLO_RUN_ID" 2> /dev/null && echo '{"body": 7}' && exit 0;;
           esac
           url=${input##*://}
           echo "{\"body\": \"<p>${url%%\"*}</p>\"}""#,
    ),
    (
        "record-metric",
        r#"if grep -q "^$FLO_RUN_ID fetch-page.*unmeasured" "$folder/calls.log"; then
             mkdir "$folder/metric-$FLO_RUN_ID" 2> /dev/null && exit 1
           fi
           echo ok"#,
    ),
    (
        "extract-text",
        r#"text=${input##*<p>}; echo "\"${text%%</p>*}\"""#,
    ),
    (
        "ask-large-model",
        r#"case $input in
             *large*|*hard*) echo overloaded >&2; exit 1;;
             *spam*) echo '{"topic": "spam"}';;
             *blocked*) until test -e "$folder/go"; do sleep 0.05; done; echo '{"topic": "news"}';;
             *) echo '{"topic": "news"}';;
           esac"#,
    ),
    (
        "ask-small-model",
        r#"case $input in *hard*) echo lost >&2; exit 1;; *) echo '{"topic": "misc"}';; esac"#,
    ),
    (
        "save-article",
        r#"case $input in
             *unsaved*) test -e "$folder/disk" || { echo 'the disk is full' >&2; exit 1; };;
           esac
           echo '{"id": "a-1"}'"#,
    ),
    ("close-connection", "echo ok"),
];

/// The article pipeline with delays of 1 ms.
const SHORT: [(&str, &str); 1] = [("initial_delay_ms: 500", "initial_delay_ms: 1")];

fn article(page: &str) -> Value {
    json!({"url": format!("https://{page}")})
}

#[test]
fn an_article_is_fetched_extracted_classified_and_saved() {
    let logged = Logged::start();
    let mut worker = logged.work("press", &PIPELINE);
    logged.create("warlock/article-pipeline", &SHORT);
    let run = logged.run("article-pipeline", "plain", &article("plain"));
    let output = json!({"topic": "news", "saved": {"id": "a-1"}, "connections": 1});
    assert_eq!(run["output"], output, "{run}");
    let expected = [
        ("fetch-page", json!({"url": "https://plain"})),
        ("record-metric", json!({"characters": 12})),
        ("extract-text", json!({"html": "<p>plain</p>"})),
        ("ask-large-model", json!({"text": "plain"})),
        (
            "save-article",
            json!({"url": "https://plain", "topic": "news", "text": "plain"}),
        ),
    ];
    let expected = expected.map(|(action, input)| (action.to_owned(), input));
    assert_eq!(logged.calls("plain"), expected);

    // skip
    let mut input = article("given");
    input["html"] = json!("<p>given</p>");
    let run = logged.run("article-pipeline", "given", &input);
    assert_eq!(run["steps"]["fetch"]["outcome"], "skipped", "{run}");
    let actions = ["extract-text", "ask-large-model", "save-article"];
    assert_eq!(logged.actions("given"), actions);

    // { end: true }
    let run = logged.run("article-pipeline", "spam", &article("spam"));
    let output = json!({"topic": "spam", "saved": null, "connections": 1});
    assert_eq!(run["output"], output, "{run}");
    assert_eq!(logged.inputs("spam", "save-article"), Vec::<Value>::new());
    assert!(worker.drain().success());
}

#[test]
fn errors_of_before_run_output_and_after_are_retried_with_the_step() {
    let logged = Logged::start();
    let mut worker = logged.work("press", &PIPELINE);
    logged.create("warlock/article-pipeline", &SHORT);
    let calls = |page: &str, retries_count: usize| {
        let run = logged.run("article-pipeline", page, &article(page));
        assert_eq!(run["status"], "completed", "{run}");
        // The writes of failed attempts are dropped.
        assert_eq!(run["output"]["connections"], 1, "{run}");
        let events = logged.history(page);
        assert_eq!(count(&events, "step_retry"), retries_count, "{page}");
        let mut actions = logged.actions(page);
        actions.retain(|action| ["fetch-page", "record-metric"].contains(&action.as_str()));
        actions
    };
    let [fetch, metric] = ["fetch-page", "record-metric"];
    assert_eq!(calls("flaky", 1), [fetch, fetch, metric]);
    assert_eq!(calls("broken", 1), [fetch, fetch, metric]);
    assert_eq!(calls("unmeasured", 1), [fetch, metric, fetch, metric]);
    assert!(worker.drain().success());
}

#[test]
fn a_failure_falls_back_to_a_cheaper_model_then_to_a_person_then_ends_cleanly() {
    let logged = Logged::start();
    let mut worker = logged.work("press", &PIPELINE);
    logged.create("warlock/article-pipeline", &SHORT);
    let run = logged.run("article-pipeline", "large", &article("large"));
    assert_eq!(run["output"]["topic"], "misc", "{run}");
    let calls = logged.inputs("large", "ask-large-model");
    assert_eq!(calls, vec![json!({"text": "large"}); 3]);
    let calls = logged.inputs("large", "ask-small-model");
    assert_eq!(calls, [json!({"text": "large"})]);

    let flo = logged.flo();
    for run_id in ["hard-1", "hard-2"] {
        logged.begin("article-pipeline", run_id, &article("hard"));
        let _ = logged.waiting(run_id, "escalate", "approval");
    }
    let _ = flo.text(&["workflow", "approve", "hard-1", "--comment", "poetry"]);
    let run = logged.ended("hard-1");
    let output = json!({"topic": "poetry", "saved": {"id": "a-1"}, "connections": 1});
    assert_eq!(run["output"], output, "{run}");
    let saved = json!({"url": "https://hard", "topic": "poetry", "text": "hard"});
    assert_eq!(logged.inputs("hard-1", "save-article"), [saved]);

    let _ = flo.text(&["workflow", "reject", "hard-2"]);
    let run = logged.ended("hard-2");
    assert_eq!(run["terminal"], "Unclassified", "{run}");
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["output"]["url"], "https://hard", "{run}");
    assert_eq!(run["output"]["error"]["message"], "lost", "{run}");
    assert_eq!(logged.inputs("hard-2", "save-article"), Vec::<Value>::new());
    assert!(worker.drain().success());
}

#[test]
fn a_cancel_in_flight_is_cleaned_up_and_not_retried() {
    let logged = Logged::start();
    let mut worker = logged.work("press", &PIPELINE);
    logged.create("warlock/article-pipeline", &SHORT);
    logged.begin("article-pipeline", "slow", &article("slow"));
    logged.called("slow", "fetch-page");
    let _ = logged.flo().text(&["workflow", "cancel", "slow"]);
    let run = logged.ended("slow");
    assert_eq!(run["status"], "cancelled", "{run}");
    let expected = ["fetch-page", "close-connection"];
    assert_eq!(logged.actions("slow"), expected);
    let closed = [article("slow")];
    assert_eq!(logged.inputs("slow", "close-connection"), closed);
    assert!(worker.drain().success());
}

#[test]
fn a_batch_runs_the_pipeline_for_each_item_of_a_list() {
    let logged = Logged::start();
    let mut worker = logged.work("press", &PIPELINE);
    logged.create("warlock/article-pipeline", &SHORT);
    logged.create("warlock/article-batch", &[]);
    let urls = ["https://a", "https://spam", "https://large"];
    let run = logged.run("article-batch", "batch", &json!({"urls": urls}));
    let saved = json!({"id": "a-1"});
    let expected = json!([
        {"topic": "news", "saved": saved, "connections": 1},
        {"topic": "spam", "saved": null, "connections": 1},
        {"topic": "misc", "saved": saved, "connections": 1},
    ]);
    assert_eq!(run["output"], expected, "{run}");
    let runs = logged
        .flo()
        .json(&["workflow", "runs", "--workflow", "article-pipeline"]);
    let by: Vec<&Value> = runs["items"].as_array().into_iter().flatten().collect();
    assert_eq!(by.len(), 3, "{runs}");
    assert!(worker.drain().success());
}

#[test]
fn a_run_continues_after_a_crash_without_repeating_what_has_ended() {
    let mut logged = Logged {
        node: DevNode::start_with(&["--data-dir", "data"]),
    };
    let mut worker = logged.work("press", &PIPELINE);
    logged.create("warlock/article-pipeline", &SHORT);
    logged.begin("article-pipeline", "blocked", &article("blocked"));
    logged.called("blocked", "ask-large-model");
    let before = logged.flo().json(&["workflow", "status", "blocked"]);
    logged.node.restart();
    let _ = logged.node.scratch().write("go", "");
    let run = logged.ended("blocked");
    assert_eq!(run["output"]["topic"], "news", "{run}");
    assert_eq!(run["signature"], before["signature"], "{run}");
    assert_eq!(logged.inputs("blocked", "fetch-page").len(), 1);
    assert_eq!(logged.inputs("blocked", "extract-text").len(), 1);
    assert_eq!(logged.inputs("blocked", "save-article").len(), 1);
    assert!(worker.drain().success());
}

#[test]
fn of_conflicting_writes_the_last_branch_counts_unless_they_are_merged() {
    let logged = Logged::start();
    let mut worker = logged.work("desk", &DESK);
    let topic = "inputMapping: {topic: $.state.topic}";
    let writing = format!("{topic}\n          set: {{drafts: 10}}");
    let merging = "parallel:\n      merge: {drafts: sum}";
    let input = json!({"ticket": "a friendlier question"});
    logged.create("warlock/support-ticket", &[(topic, &writing)]);
    let run = logged.run("support-ticket", "t-1", &input);
    assert_eq!(run["output"]["state"]["drafts"], 10, "{run}");

    let changes = [(topic, writing.as_str()), ("parallel:", merging)];
    logged.create("warlock/support-ticket", &changes);
    let run = logged.run("support-ticket", "t-2", &input);
    assert_eq!(run["output"]["state"]["drafts"], 11, "{run}");
    assert!(worker.drain().success());
}

#[test]
fn a_condition_over_error_and_attempt_decides_on_retries_whose_delays_are_listed() {
    let logged = Logged::start();
    let mut worker = logged.work("press", &PIPELINE);
    let policy =
        "{max_attempts: 3, backoff: exponential, initial_delay_ms: 500, max_delay_ms: 30000}";
    let calls = |run_id: &str, when: &str| {
        let listed = format!("{{max_attempts: 5, delays: [1ms, 2ms], when: '{when}'}}");
        logged.create("warlock/article-pipeline", &[(policy, &listed)]);
        let run = logged.run("article-pipeline", run_id, &article("large"));
        assert_eq!(run["output"]["topic"], "misc", "{run}");
        let calls_count = logged.inputs(run_id, "ask-large-model").len();
        let retries_count = count(&logged.history(run_id), "step_retry");
        assert_eq!(retries_count, calls_count - 1, "{run_id}");
        calls_count
    };
    assert_eq!(calls("few", "attempt < 2"), 2);
    assert_eq!(calls("none", r#"error.message != "overloaded""#), 1);
    assert_eq!(calls("all", r#"error.message == "overloaded""#), 5);
    assert!(worker.drain().success());
}
