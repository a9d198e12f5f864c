//! A worker that disappears in the middle of a task.

use crate::files::fixture;
use crate::history::{self, Event};
use flotilla_tests::{CommandWorker, DevNode, TIMEOUT, wait_until};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use std::fs;

/// A program that outlives its worker; killed at the end of the test.
struct Orphan(Pid);

impl Drop for Orphan {
    fn drop(&mut self) {
        // It may have been killed with its worker.
        let _ = signal::kill(self.0, Signal::SIGKILL);
    }
}

#[test]
fn a_task_whose_worker_was_killed_is_given_to_another_after_its_lease() {
    let node = DevNode::start();
    let flo = node.flo();
    let _ = flo.text(&["action", "register", "work", "--timeout-ms", "1000"]);
    let _ = flo.text(&["workflow", "create", "-f", &fixture("one-step.yaml")]);
    let note = node.scratch().path("program-id");
    // Written to another file and renamed, so that the note is never read half-written.
    let script = format!(
        "echo $$ > {0}.new && mv {0}.new {0} && exec sleep 600",
        note.display()
    );
    let mut doomed = CommandWorker::start(&flo, node.scratch(), "doomed", &[("work", &script)]);
    let run_id = flo.text(&["workflow", "start", "one-step"]);
    let _orphan = wait_until("the program to run", TIMEOUT, || {
        let text = fs::read_to_string(&note).map_err(|error| error.to_string())?;
        let id = text
            .trim()
            .parse()
            .map_err(|_| format!("it says {text:?}"))?;
        Ok(Orphan(Pid::from_raw(id)))
    });
    doomed.kill();

    let script = r#"echo "{\"attempt\": $FLO_ATTEMPT}""#;
    let _heir = CommandWorker::start(&flo, node.scratch(), "heir", &[("work", script)]);
    let events = flo.json_lines(&["workflow", "history", &run_id, "--follow"]);
    let events: Vec<Event> = events.into_iter().map(Event::from).collect();
    history::expect_sound(&run_id, &events);
    let started = events.iter().filter(|event| event.kind == "action_started");
    let attempts: Vec<u64> = started
        .map(|event| event.attributes["attempt"].as_u64().expect("an attempt"))
        .collect();
    assert_eq!(attempts, [1, 2], "{events:#?}");
    let run = flo.json(&["workflow", "status", &run_id]);
    assert_eq!(run["output"]["attempt"], 2, "{run}");
}
