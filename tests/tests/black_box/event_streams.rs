//! Server-sent events, followed by clients in other languages (H25, H26).

use crate::files::fixture;
use flotilla_tests::{Cluster, CommandWorker, TIMEOUT, wait_until};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The iterations of the run. Each has an event.
const NUMBERS_COUNT: u32 = 150;

/// A program that prints the ids of the events of a run, and then `end`.
struct Client {
    name: &'static str,
    child: Child,
    output: PathBuf,
}

impl Client {
    fn start(cluster: &Cluster, program: &'static str, script: &str, run_id: &str) -> Self {
        let output = cluster.scratch().path(&format!("{program}.out"));
        let errors = cluster.scratch().log(&format!("{program}.log"));
        let child = Command::new(program)
            .args([
                &fixture(script),
                &cluster.http_addresses().join(","),
                run_id,
            ])
            .stdin(Stdio::null())
            .stdout(File::create(&output).expect("room"))
            .stderr(File::create(errors).expect("room"))
            .spawn();
        Self {
            name: program,
            child: child.expect("the interpreter is installed"),
            output,
        }
    }

    fn lines(&self) -> Vec<String> {
        let output = fs::read_to_string(&self.output).expect("it is written");
        output.lines().map(str::to_owned).collect()
    }

    fn await_lines(&self, count: usize) {
        wait_until("the client to get events", TIMEOUT, || {
            match self.lines().len() {
                found if found >= count => Ok(()),
                found => Err(format!("{}: {found} of {count}", self.name)),
            }
        });
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clients_in_other_languages_miss_no_event_while_leaders_are_killed() {
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("counting.yaml")]);
    let actions = [("tick", "sleep 0.1")];
    let _worker = CommandWorker::start(&flo, cluster.scratch(), "w1", &actions);
    let numbers: Vec<u32> = (0..NUMBERS_COUNT).collect();
    let input = serde_json::json!({ "numbers": numbers }).to_string();
    let run_id = flo.text(&["workflow", "start", "counting", &input]);
    let clients = [
        ("python3", "clients/events.py"),
        ("node", "clients/events.mjs"),
    ];
    let clients =
        clients.map(|(program, script)| Client::start(&cluster, program, script, &run_id));
    for count in [20, 80] {
        clients.iter().for_each(|client| client.await_lines(count));
        let leader = cluster.leader();
        cluster.kill(leader);
        let _ = cluster.leader();
        cluster.restart(leader);
        cluster.await_health();
    }
    for client in &clients {
        wait_until("the client to see the end", TIMEOUT, || {
            match client.lines().last().map(String::as_str) {
                Some("end") => Ok(()),
                last => Err(format!("{}: {last:?}", client.name)),
            }
        });
    }
    let history = flo.json_lines(&["workflow", "history", &run_id]);
    let events = history.iter().map(|event| event["seq"].to_string());
    let expected: Vec<String> = events.chain(["end".to_owned()]).collect();
    assert!(expected.len() > NUMBERS_COUNT as usize, "{expected:?}");
    for client in &clients {
        assert_eq!(client.lines(), expected, "{}", client.name);
    }
}
