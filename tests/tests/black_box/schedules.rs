//! Schedules fire once for each of their times, whichever node leads.

use crate::files::fixture;
use flotilla_tests::{Cluster, Flo, TIMEOUT, wait_until};
use serde_json::Value;

const INTERVAL_MS: u64 = 400;

#[test]
fn an_interval_fires_once_for_each_of_its_times_while_leaders_are_killed() {
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("ticking.yaml")]);
    let mut fired = await_firings(&flo, 3);
    for _ in 0..2 {
        let leader = cluster.leader();
        cluster.kill(leader);
        fired = await_firings(&flo, fired + 5);
        cluster.restart(leader);
        cluster.await_health();
    }
    // From here on the schedule is paused, so that its runs can be counted.
    let _ = flo.text(&["workflow", "disable", "ticking"]);
    let schedule = flo.json(&["workflow", "schedule", "ticking"]);
    assert_eq!(schedule["state"], "disabled", "{schedule}");
    assert_eq!(
        schedule["next_at_ms"],
        Value::Array(Vec::new()),
        "{schedule}"
    );

    let mut times = firing_times(&flo);
    assert!(times.len() as u64 >= fired, "{times:?}");
    assert_eq!(schedule["fired_count"], times.len(), "{schedule}");
    times.sort_unstable();
    for pair in times.windows(2) {
        let distance = pair[1] - pair[0];
        assert_eq!(distance, INTERVAL_MS, "neither twice nor never: {times:?}");
    }
    assert_eq!(schedule["last_fired_at_ms"], times[times.len() - 1]);
    let _ = cluster.agreement();
}

/// Waits until the schedule has fired this often, and returns how often it has.
fn await_firings(flo: &Flo, count: u64) -> u64 {
    wait_until("firings", TIMEOUT, || {
        let answer = flo.run(&["-o", "json", "workflow", "schedule", "ticking"]);
        if answer.code != 0 {
            return Err(answer.show());
        }
        let schedule = answer.json();
        let fired = schedule["fired_count"].as_u64().expect("a number");
        if fired < count {
            return Err(format!("only {fired} of {count}: {schedule}"));
        }
        Ok(fired)
    })
}

/// The scheduled times in the histories of all runs, one per run.
fn firing_times(flo: &Flo) -> Vec<u64> {
    let runs = flo.json(&[
        "workflow",
        "runs",
        "--workflow",
        "ticking",
        "--limit",
        "1000",
    ]);
    assert_eq!(runs["next_page_token"], Value::Null, "{runs}");
    let items = runs["items"].as_array().expect("a list has items");
    let firing_time = |run: &Value| {
        assert_eq!(run["triggered_by"], "schedule", "{run}");
        let run_id = run["run_id"].as_str().expect("a run has an id");
        let events = flo.json_lines(&["workflow", "history", run_id]);
        let mut times = events
            .iter()
            .filter_map(|event| event["scheduled_at_ms"].as_u64());
        let time = times.next().expect("the history names the firing");
        assert_eq!(times.next(), None, "{events:?}");
        time
    };
    items.iter().map(firing_time).collect()
}

#[test]
fn a_schedule_shows_itself_to_people() {
    let node = flotilla_tests::DevNode::start();
    let flo = node.flo();
    let file = crate::files::example("workflows/reconcile-accounts.yaml");
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let shown = flo.text(&["workflow", "schedule", "reconcile-accounts"]);
    assert!(shown.contains("0 */6 * * * (UTC)"), "{shown}");
    assert!(shown.contains("active"), "{shown}");
    let next = shown.lines().skip_while(|line| !line.starts_with("next"));
    assert_eq!(next.count(), 5, "{shown}");
    flo.refused(&["workflow", "schedule", "missing"])
        .expect(1, "workflow_not_found");
}
