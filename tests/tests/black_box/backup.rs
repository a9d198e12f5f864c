//! Backups with the operator's commands.

use crate::files::fixture;
use flotilla_tests::{Cluster, CommandWorker, Flo, Host, Scratch, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Waits for a moment, then runs an action.
const NAPPING: &str = "\
kind: Workflow
name: napping
version: \"1.0.0\"
start:
  waitForSignal:
    type: never
    timeoutMs: 2000
    onTimeout: work
  transitions:
    success: flo.Failed
steps:
  work:
    run: \"@actions/echo\"
    transitions:
      success: flo.Completed
      failure: flo.Failed
";

/// Starts runs one after the other until it is stopped, and keeps the acknowledged ids.
struct Load {
    acknowledged: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    starting: Option<JoinHandle<()>>,
}

impl Load {
    fn start(flo: Flo) -> Self {
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (kept, end) = (Arc::clone(&acknowledged), Arc::clone(&is_over));
        let starting = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let run_id = flo.text(&["workflow", "start", "parked", r#"{"of":"load"}"#]);
                kept.lock().expect("no panic").push(run_id);
            }
        });
        Self {
            acknowledged,
            is_over,
            starting: Some(starting),
        }
    }

    /// The runs that were acknowledged so far.
    fn acknowledged(&self) -> Vec<String> {
        self.acknowledged.lock().expect("no panic").clone()
    }

    fn stop(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let starting = self.starting.take().expect("it is stopped once");
        starting.join().expect("every start is acknowledged");
    }
}

/// Commands that need no cluster.
fn offline() -> Flo {
    Flo::at("127.0.0.1:1")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary folder's name is UTF-8")
}

/// Restores a backup for a node at this host.
fn restore(file: &Path, host: &Host) -> Value {
    let directory = host.data_dir.as_deref().expect("the test gave it one");
    let id = host.node_id.to_string();
    let peer_address = host.peer_address.to_string();
    let line = [
        "cluster",
        "restore",
        text(file),
        "--data-dir",
        text(directory),
    ];
    let member = ["--node-id", &id, "--peer-address", &peer_address];
    offline().json(&[&line[..], &member[..]].concat())
}

#[test]
fn a_backup_under_load_becomes_a_new_cluster_in_which_every_acknowledged_run_continues() {
    let old = Cluster::start();
    let files = Scratch::new();
    let flo = old.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let napping = files.write("napping.yaml", NAPPING);
    let _ = flo.text(&["action", "register", "echo"]);
    let _ = flo.text(&["workflow", "create", "-f", &napping]);
    let load = Load::start(old.flo());
    wait_until("some runs", TIMEOUT, || match load.acknowledged().len() {
        0..10 => Err("too few".to_owned()),
        _ => Ok(()),
    });
    let asleep = flo.text(&["workflow", "start", "napping", r#"{"n":7}"#]);
    let before = load.acknowledged();
    let file = files.path("monday.flo");
    let follower = old.followers()[0];
    let taken = old
        .flo_at(follower)
        .json(&["cluster", "backup", text(&file)]);
    assert_eq!(taken["members"], json!([1, 2, 3]), "{taken}");
    load.stop();
    drop(old);

    let checked = offline().json(&["cluster", "verify", text(&file)]);
    assert_eq!(checked, taken);
    let mut host = Host::local(1);
    host.data_dir = Some(files.path("restored"));
    let restored = restore(&file, &host);
    assert_eq!(restored["origin_cluster_id"], taken["cluster_id"]);
    assert_ne!(restored["cluster_id"], taken["cluster_id"]);
    let mut new = Cluster::on(Scratch::new(), &[host], &[]);
    new.await_health();
    for id in [2, 3] {
        new.grow(&Host::local(id));
    }
    let flo = new.flo();
    let _worker = CommandWorker::start(&flo, &files, "echo", &[("echo", "cat")]);
    for run_id in &before {
        let _ = flo.text(&["workflow", "signal", run_id, "--type", "go"]);
        await_end(&flo, run_id);
    }
    await_end(&flo, &asleep);
    let after = flo.text(&["workflow", "start", "parked", "{}"]);
    assert!(!before.contains(&after), "{after} is a new run");
    let _ = new.agreement();
}

fn await_end(flo: &Flo, run_id: &str) {
    wait_until("the run to complete", TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        match run["status"].as_str() {
            Some("completed") => Ok(()),
            _ => Err(run.to_string()),
        }
    });
}

#[test]
fn a_node_that_is_left_over_when_the_quorum_is_lost_becomes_a_new_cluster() {
    let mut old = Cluster::start();
    let files = Scratch::new();
    drop(old.flo().text(&["kv", "set", "kept", "1"]));
    old.await_health();
    let _ = old.agreement();
    for id in [1, 2] {
        old.kill(id);
    }
    let directory = old.node(3).data_dir().to_owned();
    let file = files.path("rescued.flo");
    let rescue = [
        "cluster",
        "backup",
        text(&file),
        "--data-dir",
        text(&directory),
    ];
    offline()
        .refused(&rescue)
        .expect(3, "data_dir_in_use")
        .hints("stop the node first");
    old.kill(3);
    let taken = offline().json(&rescue);
    assert_eq!(taken["origin"], "directory", "{taken}");
    let mut host = Host::local(3);
    host.data_dir = Some(files.path("restored"));
    let _ = restore(&file, &host);
    let new = Cluster::on(Scratch::new(), &[host], &[]);
    new.await_health();
    assert_eq!(new.flo().text(&["kv", "get", "kept"]), "1");
}

#[test]
fn a_member_that_is_left_running_works_for_no_new_cluster_at_its_leaders_address() {
    let mut old = Cluster::start();
    let files = Scratch::new();
    let flo = old.flo();
    let module = fixture("tally.wat");
    let _ = flo.text(&["action", "register", "tally", "--wasm", &module]);
    // Once each node has a worker for the action, the backup has all of them.
    wait_until("a worker of each node", TIMEOUT, || {
        let workers = flo.json(&["worker", "list"]);
        match workers["items"].as_array().map(Vec::len) {
            Some(3) => Ok(()),
            _ => Err(workers.to_string()),
        }
    });
    let file = files.path("taken.flo");
    let _ = flo.json(&["cluster", "backup", text(&file)]);
    let leader = old.leader();
    let other = old.followers()[0];
    let mut host = old.node(leader).host().clone();
    host.data_dir = Some(files.path("restored"));
    // The third one keeps running.
    old.kill(other);
    old.kill(leader);
    let _ = restore(&file, &host);
    let new = Cluster::on(Scratch::new(), &[host], &[]);
    new.await_health();
    // No task waits for the node of the other cluster.
    for number in 1..=20_usize {
        let key = number.to_string();
        let invoke = ["action", "invoke", "tally", &key, "--timeout", "20s"];
        let tally = new.flo().json(&invoke);
        assert_eq!(tally, json!("I".repeat(number)));
    }
}

#[test]
fn what_cannot_be_backed_up_checked_or_restored_is_refused_with_what_to_do() {
    let cluster = Cluster::of(&[1], &[]);
    let files = Scratch::new();
    let flo = cluster.flo();
    let file = files.path("a.flo");
    let shown = flo.text(&["cluster", "backup", text(&file)]);
    assert!(shown.contains("a.flo holds cluster "), "{shown}");
    flo.refused(&["cluster", "backup", text(&file)])
        .expect(3, "file_exists")
        .hints("--force");
    let _ = flo.text(&["cluster", "backup", text(&file), "--force"]);
    let nowhere = files.path("no/such/folder");
    flo.refused(&["cluster", "backup", text(&nowhere)])
        .expect(6, "file_unwritable");
    offline()
        .refused(&["cluster", "backup", text(&nowhere), "--timeout", "1s"])
        .expect(6, "file_unwritable");
    let other = files.path("b.flo");
    offline()
        .refused(&["cluster", "backup", text(&other), "--timeout", "1s"])
        .expect(5, "connection_failed");
    let empty = files.write("empty", "");
    let empty = ["cluster", "backup", text(&other), "--data-dir", &empty];
    offline().refused(&empty).expect(2, "data_dir_invalid");

    let bytes = fs::read(&file).expect("just written");
    let cut = files.write("cut.flo", &bytes[..bytes.len() / 2]);
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    let damaged = files.write("damaged.flo", &damaged);
    let foreign = files.write("foreign.flo", "kind: Workflow");
    let place = files.path("place");
    for (bad, says, hints) in [
        (&cut, "cut short after byte", "copy it again"),
        (&damaged, "expected the block at byte", "another copy"),
        (&foreign, "does not begin like one", "flo cluster backup"),
    ] {
        let restore = ["cluster", "restore", bad, "--data-dir", text(&place)];
        for line in [&["cluster", "verify", bad][..], &restore] {
            let refused = offline().refused(line);
            refused.expect(2, "backup_invalid").says(says).hints(hints);
        }
        assert!(!place.exists(), "a failed restore leaves nothing");
    }
    offline()
        .refused(&["cluster", "verify", text(&files.path("missing"))])
        .expect(2, "file_unreadable");
    let full = cluster.node(1).data_dir();
    let over = ["cluster", "restore", text(&file), "--data-dir", text(full)];
    offline()
        .refused(&over)
        .expect(3, "data_dir_not_empty")
        .hints("does not exist yet");
    let bad = [
        "cluster",
        "restore",
        text(&file),
        "--data-dir",
        text(&place),
    ];
    let bad = [&bad[..], &["--peer-address", "nowhere"]].concat();
    offline().refused(&bad).expect(2, "address_invalid");
    let left: Vec<_> = fs::read_dir(files.path("."))
        .expect("the test's folder")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().ends_with(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn any_member_makes_a_snapshot_on_request() {
    let cluster = Cluster::start();
    let flo = cluster.flo_at(1);
    for id in 1..=3 {
        let taken = flo.json(&["cluster", "snapshot", "--node", &id.to_string()]);
        assert_eq!(taken["node_id"], id, "{taken}");
        let status = cluster.node(id).status().expect("a node that runs");
        assert_eq!(
            json!(status.node(id).snapshot_index),
            taken["snapshot_index"]
        );
    }
    let shown = flo.text(&["cluster", "snapshot"]);
    assert!(shown.contains(" has a snapshot up to index "), "{shown}");
    flo.refused(&["cluster", "snapshot", "--node", "9"])
        .expect(1, "node_not_found");
}
