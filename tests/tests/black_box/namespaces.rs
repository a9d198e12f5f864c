//! Namespaces (A41): the same names in two of them are different things, and every verb with a namespace
//! refuses an invalid name.

use crate::files::fixture;
use flotilla_tests::{CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};

/// A node, and calls in two of its namespaces.
struct Halves {
    node: DevNode,
    north: Flo,
    south: Flo,
}

impl Halves {
    fn start() -> Self {
        let node = DevNode::start();
        let flo = node.flo();
        Self {
            north: flo.within("north"),
            south: flo.within("south"),
            node,
        }
    }

    fn both(&self) -> [&Flo; 2] {
        [&self.north, &self.south]
    }

    /// Creates a definition in both, with the namespace's name as its version.
    fn create(&self, name: &str, rest: &str) {
        for (flo, version) in self.both().into_iter().zip(["north", "south"]) {
            let head = format!("kind: Workflow\nname: {name}\nversion: \"{version}\"\n");
            let file = self.node.scratch().write("definition.yaml", head + rest);
            let _ = flo.text(&["workflow", "create", "-f", &file]);
        }
    }

    /// A worker with the same id in each: in the north the action fails, in the south it succeeds.
    fn hire(&self) -> [CommandWorker; 2] {
        let hire = |flo, script| {
            let flags = ["--worker-id", "w1", "--max-retries", "0"];
            let scratch = self.node.scratch();
            CommandWorker::start_with(flo, scratch, &flags, &[("work", script)])
        };
        [hire(&self.north, "exit 1"), hire(&self.south, "cat")]
    }
}

const TRIGGERED: &str = "
trigger: {stream: orders}
start:
  waitForSignal: {type: go, timeoutMs: 3600000, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
";

const PARKED: &str = "
start:
  waitForSignal: {type: go, timeoutMs: 3600000, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
";

const PLANNED: &str = "
plans:
  charge:
    executors:
      - {name: main, action: '@actions/work', breaker: {failure_threshold: 1, cooldown_ms: 3600000}}
start:
  run: '@plan/charge'
  transitions: {success: flo.Completed, failure: flo.Failed}
";

const HOURLY: &str = "
schedule: {cron: '0 * * * *'}
start:
  waitForSignal: {type: go, timeoutMs: 3600000, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
";

#[test]
fn workflows_and_runs_of_two_namespaces_are_apart() {
    let halves = Halves::start();
    let [north, south] = halves.both();
    halves.create("order", PARKED);
    for (flo, version) in [(north, "north"), (south, "south")] {
        assert_eq!(column(flo, &["workflow", "list"], "version"), [version]);
        let shown = flo.json(&["workflow", "show", "order"]);
        assert_eq!(shown["version"], version, "{shown}");
    }
    let keyed = ["workflow", "start", "order", "--idempotency-key", "k"];
    let first = north.text(&keyed);
    let second = south.text(&keyed);
    assert_ne!(first, second, "a key finds only runs of the same namespace");
    for verb in [
        &["workflow", "status", &first][..],
        &["workflow", "history", &first],
        &["workflow", "signal", &first, "--type", "go"],
        &["workflow", "cancel", &first],
    ] {
        south.refused(verb).expect(1, "run_not_found");
    }
    for (flo, run_id) in [(north, &first), (south, &second)] {
        assert_eq!(
            column(flo, &["workflow", "runs"], "run_id"),
            [run_id.as_str()]
        );
        let chosen = ["workflow", "start", "order", "--run-id", "chosen"];
        assert_eq!(flo.text(&chosen), "chosen");
    }
    let _ = north.text(&["workflow", "cancel", "chosen"]);
    assert_eq!(
        south.json(&["workflow", "status", "chosen"])["status"],
        "waiting"
    );
    let _ = north.text(&["workflow", "disable", "order"]);
    north
        .refused(&["workflow", "start", "order"])
        .expect(3, "workflow_disabled");
    let _ = south.text(&["workflow", "start", "order"]);
    let elsewhere = halves.node.flo();
    assert_eq!(elsewhere.json(&["workflow", "list"])["items"], json!([]));
    elsewhere
        .refused(&["workflow", "start", "order"])
        .expect(1, "workflow_not_found");
}

#[test]
fn plans_and_schedules_of_two_namespaces_are_apart() {
    let halves = Halves::start();
    let [north, south] = halves.both();
    halves.create("pay", PLANNED);
    halves.create("hourly", HOURLY);
    let _workers = halves.hire();
    for (flo, exit) in [(north, 3), (south, 0)] {
        let run = flo.run(&["workflow", "start", "pay", "--wait"]);
        assert_eq!(run.code, exit, "{}", run.show());
    }
    let breakers = || {
        let status = ["plan", "status", "pay", "charge"];
        halves
            .both()
            .map(|flo| flo.json(&status)["executors"][0]["breaker"].clone())
    };
    assert_eq!(breakers(), ["open", "closed"]);
    let _ = south.text(&["plan", "reset", "pay", "charge"]);
    assert_eq!(breakers(), ["open", "closed"]);
    let _ = north.text(&["plan", "reset", "pay", "charge"]);
    assert_eq!(breakers(), ["closed", "closed"]);

    let _ = north.text(&["workflow", "disable", "hourly"]);
    let states = halves
        .both()
        .map(|flo| flo.json(&["workflow", "schedule", "hourly"])["state"].clone());
    assert_eq!(states[0], "disabled");
    assert_ne!(states[1], "disabled");
    halves
        .node
        .flo()
        .refused(&["workflow", "schedule", "hourly"])
        .expect(1, "workflow_not_found");
}

#[test]
fn actions_workers_and_dead_letters_of_two_namespaces_are_apart() {
    let halves = Halves::start();
    let [north, south] = halves.both();
    let [_north_worker, mut south_worker] = halves.hire();
    let invoke = [
        "action",
        "invoke",
        "work",
        "1",
        "--idempotency-key",
        "k",
        "--async",
    ];
    let [failing, working] = halves.both().map(|flo| flo.text(&invoke));
    assert_ne!(
        failing, working,
        "a key finds only action runs of the same namespace"
    );
    for (flo, id, status) in [(north, &failing, "failed"), (south, &working, "completed")] {
        await_status(flo, id, status);
        assert_eq!(
            column(flo, &["action", "runs", "work"], "action_run_id"),
            [id.as_str()]
        );
        assert_eq!(column(flo, &["worker", "list"], "worker_id"), ["w1"]);
    }
    south
        .refused(&["action", "status", &failing])
        .expect(1, "action_run_not_found");

    let letters = |flo: &Flo| column(flo, &["action", "dlq", "list", "work"], "id");
    assert_eq!(letters(south), [""; 0]);
    for verb in ["show", "requeue", "purge"] {
        south
            .refused(&["action", "dlq", verb, "work", &failing])
            .expect(1, "dead_letter_not_found");
    }
    let all = south.json(&["action", "dlq", "purge", "work"]);
    assert_eq!(all["purged_count"], 0, "{all}");
    assert_eq!(letters(north), [failing.as_str()]);

    let _ = north.text(&["worker", "drain", "w1"]);
    // It holds no task, so it leaves.
    await_workers(north, 0);
    let other = south.json(&["worker", "info", "w1"]);
    assert_ne!(other["status"], "draining", "{other}");

    let _ = north.text(&["action", "disable", "work"]);
    assert_eq!(
        south.text(&["action", "invoke", "work", "2", "--wait"]),
        "2"
    );
    let _ = north.text(&["action", "delete", "work"]);
    assert_eq!(column(north, &["action", "list"], "name"), [""; 0]);
    assert_eq!(column(south, &["action", "list"], "name"), ["work"]);
    assert!(south_worker.drain().success());
}

#[test]
fn streams_groups_and_keys_of_two_namespaces_are_apart() {
    let halves = Halves::start();
    let [north, south] = halves.both();
    for (flo, text) in [(north, "north"), (south, "south")] {
        let _ = flo.text(&["stream", "append", "orders", text]);
        let _ = flo.text(&["stream", "group", "create", "orders", "billing"]);
        let _ = flo.text(&["kv", "set", "k", text]);
    }
    for (flo, text) in [(north, "north"), (south, "south")] {
        assert_eq!(
            column(flo, &["stream", "read", "orders"], "payload"),
            [text]
        );
        assert_eq!(column(flo, &["stream", "list"], "name"), ["orders"]);
        assert_eq!(
            column(flo, &["stream", "group", "list", "orders"], "group"),
            ["billing"]
        );
        assert_eq!(flo.text(&["kv", "get", "k"]), text);
        assert_eq!(column(flo, &["kv", "scan"], "value"), [text]);
    }
    let _ = north.text(&["stream", "trim", "orders", "--keep", "0"]);
    let count = |flo: &Flo| flo.json(&["stream", "info", "orders"])["record_count"].clone();
    assert_eq!([count(north), count(south)], [0, 1]);
    let _ = north.text(&["stream", "group", "delete", "orders", "billing"]);
    let of_group = |verb| ["stream", "group", verb, "orders", "billing"];
    north
        .refused(&of_group("info"))
        .expect(1, "group_not_found");
    let _ = south.json(&of_group("info"));
    assert_eq!(south.json(&of_group("pending"))["items"], json!([]));
    let _ = north.text(&["stream", "delete", "orders"]);
    assert_eq!(
        column(south, &["stream", "read", "orders"], "payload"),
        ["south"]
    );
    let _ = north.text(&["kv", "delete", "k"]);
    assert_eq!(south.text(&["kv", "get", "k"]), "south");
}

#[test]
fn triggers_of_two_namespaces_are_apart() {
    let halves = Halves::start();
    halves.create("orders", TRIGGERED);
    for (flo, text) in halves.both().into_iter().zip(["north", "south"]) {
        let _ = flo.text(&["stream", "append", "orders", text]);
        let started = wait_until("a run for the record", TIMEOUT, || {
            let mut runs = column(flo, &["workflow", "runs"], "run_id");
            runs.pop().ok_or_else(|| "no run was started".to_owned())
        });
        let run = flo.json(&["workflow", "status", &started]);
        assert_eq!(run["input"], text, "{run}");
        let trigger = flo.json(&["workflow", "trigger", "orders"]);
        assert_eq!(trigger["triggers"][0]["stream"], "orders", "{trigger}");
    }
    for flo in halves.both() {
        let runs = column(flo, &["workflow", "runs"], "run_id");
        assert_eq!(runs.len(), 1, "{runs:?}");
    }
    halves
        .node
        .flo()
        .refused(&["workflow", "trigger", "orders"])
        .expect(1, "workflow_not_found");
}

#[test]
fn a_namespace_that_is_not_empty_says_what_is_left_and_goes_when_that_is_gone() {
    let halves = Halves::start();
    let (flo, north) = (halves.node.flo(), &halves.north);
    let module = fixture("tally.wat");
    let _ = north.text(&["action", "register", "tally", "--wasm", &module]);
    let _ = north.text(&["stream", "append", "orders", "1"]);
    let _ = north.text(&["kv", "set", "k", "v"]);
    await_workers(north, 1);
    flo.refused(&["ns", "delete", "north"])
        .expect(3, "namespace_not_empty")
        .says("actions, workers, keys, streams")
        .hints("delete");
    let _ = north.text(&["action", "delete", "tally"]);
    let _ = north.text(&["stream", "delete", "orders"]);
    let _ = north.text(&["kv", "delete", "k"]);
    // The node is no longer a worker there.
    await_workers(north, 0);
    assert_eq!(flo.json(&["ns", "delete", "north"])["deleted"], true);
    assert!(!column(&flo, &["ns", "list"], "name").contains(&"north".to_owned()));
}

#[test]
fn a_name_out_of_rule_is_refused_by_every_verb() {
    let node = DevNode::start();
    let file = fixture("parked.yaml");
    let verbs = format!(
        "workflow create -f {file}|workflow start w|workflow status r|workflow history r|
         workflow history r --follow|workflow signal r --type t|workflow cancel r|workflow list|
         workflow revisions w|workflow runs|workflow show w|workflow enable w|workflow disable w|workflow delete w|workflow graph w|
         workflow invalidate e|workflow schedule w|workflow trigger w|plan status w p|plan reset w p|
         action register a|action invoke a|action invoke a --async|action status r|action runs a|action cancel a|
         action list|action delete a|action enable a|action disable a|action dlq list a|
         action dlq show a i|action dlq requeue a|action dlq purge a|worker exec a -- cat|
         worker exec --stream s --group g -- cat|worker list|worker info w|worker drain w|
         stream create s|stream append s x|stream read s|stream info s|stream list|
         stream trim s --keep 1|stream delete s|stream group create s g|stream group list s|
         stream group info s g|stream group pending s g|stream group delete s g|kv get k|kv set k v|
         kv delete k|kv scan"
    );
    for (turn, verb) in verbs.split('|').map(str::trim).enumerate() {
        let name = ["1st", "shop-", "a b", &"x".repeat(64)][turn % 4].to_owned();
        let flo = node.flo().within(&name);
        let words: Vec<&str> = verb.split(' ').collect();
        refused(&flo, &words, &name);
    }
    for verb in ["create", "delete"] {
        refused(&node.flo(), &["ns", verb, "1st"], "1st");
    }
    // A refused request writes nothing.
    let there = column(&node.flo(), &["ns", "list"], "name");
    assert!(there.iter().all(|name| name == "default"), "{there:?}");
}

#[track_caller]
fn refused(flo: &Flo, words: &[&str], name: &str) {
    let refusal = flo.refused(words);
    assert_eq!(refusal.exit, 2, "{words:?}: {refusal:?}");
    refusal
        .expect(2, "invalid_argument")
        .says("expected a namespace")
        .says(name)
        .hints("flo ns list");
}

/// A field of each item of a list.
#[track_caller]
fn column(flo: &Flo, list: &[&str], field: &str) -> Vec<String> {
    let page = flo.json(list);
    let items = page["items"].as_array().expect("a list has items");
    let text = |item: &Value| item[field].as_str().map(ToOwned::to_owned);
    let column: Option<Vec<String>> = items.iter().map(text).collect();
    column.unwrap_or_else(|| panic!("`{field}` in each of {page}"))
}

fn await_status(flo: &Flo, action_run_id: &str, status: &str) {
    wait_until(status, TIMEOUT, || {
        let run = flo.json(&["action", "status", action_run_id]);
        match run["status"] == status {
            true => Ok(()),
            false => Err(run.to_string()),
        }
    });
}

fn await_workers(flo: &Flo, count: usize) {
    wait_until("workers", TIMEOUT, || {
        let page = flo.json(&["worker", "list"]);
        match page["items"].as_array().map(Vec::len) == Some(count) {
            true => Ok(()),
            false => Err(page.to_string()),
        }
    });
}
