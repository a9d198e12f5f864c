//! How long a run makes no progress when the leader is killed.
//!
//! A run loops through steps that a worker executes. The client follows its history on the other
//! two nodes; a trial ends when it sees a step whose completion the new leader has proposed. So the
//! time covers the election, the reconnects of worker and client to the new leader, and the step itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::quantiles::Quantiles;
use crate::client::{Client, number, text};
use crate::cluster::{Cluster, NodeId};
use crate::flo;
use crate::interrupt::Interrupt;
use crate::process::{self, Process};
use crate::sandbox::Sandbox;
use crate::stages::{say, show_ms};

/// A trial that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(60);

/// How many steps the history may be behind.
const EVENTS_QUEUED_MAX: usize = 1_024;

/// A run of it never ends on its own.
const WORKFLOW: &str = r#"
kind: Workflow
name: figures-loop
version: "1"
start:
  run: "@actions/figures-tick"
  transitions: {success: again, failure: flo.Failed}
steps:
  again:
    run: "@actions/figures-tick"
    transitions: {success: again, failure: flo.Failed}
"#;

/// Kills the leader as often as there are trials, and returns how long the run made no progress each time.
///
/// # Errors
/// If the cluster does not recover.
pub(super) fn measure(
    cluster: &mut Cluster,
    binary: &Path,
    trials: u32,
    sandbox: &Sandbox,
) -> Result<Vec<String>> {
    let mut worker = prepare(cluster, binary, sandbox)?;
    let mut times = Vec::new();
    for trial in 1..=trials {
        let time = kill_leader(cluster, trial, &sandbox.interrupt)?;
        say(format!("trial {trial:>2}: {}", show_ms(time)));
        times.push(time);
    }
    process::stop_all([&mut worker], &sandbox.interrupt)?;
    let quantiles = Quantiles::new(times)?;
    let line = |name: &str, percent| {
        let time = show_ms(quantiles.percentile(percent));
        format!("{name:<7} {time}")
    };
    Ok(vec![
        line("median", 50),
        line("p90", 90),
        line("maximum", 100),
    ])
}

/// Creates the workflow and starts the worker for its steps.
fn prepare(cluster: &Cluster, binary: &Path, sandbox: &Sandbox) -> Result<Process> {
    let file = sandbox.folder().join("figures-loop.yaml");
    fs::write(&file, WORKFLOW)?;
    let file = file.to_string_lossy();
    cluster
        .client()
        .object(&["workflow", "create", "--file", &file])?;
    let mut command = flo::command(binary);
    command
        .envs(cluster.variables())
        .args(["worker", "exec"])
        .args([
            "--worker-id",
            "ticker",
            "--action",
            "figures-tick=sleep 0.02",
        ]);
    Process::start("worker ticker", &mut command, &sandbox.log("ticker"))
}

/// One trial; afterwards all nodes run again.
fn kill_leader(cluster: &mut Cluster, trial: u32, interrupt: &Interrupt) -> Result<Duration> {
    let dead = cluster.wait_for_leader(None, interrupt)?.node_id;
    let run_id = format!("figures-{trial}");
    let start = ["workflow", "start", "figures-loop", "--run-id", &run_id];
    cluster.client().object(&start)?;

    let living = cluster.client_of(|node_id| node_id != dead);
    let follower = Follower::start(&living, &run_id)?;
    follower.wait_for_step(interrupt, |leader| leader == dead)?;
    let killed_at = cluster.kill(dead)?;
    let seen_at = follower.wait_for_step(interrupt, |leader| leader != dead)?;
    drop(follower);

    let living = cluster.client_of(|node_id| node_id != dead);
    living.object(&["workflow", "cancel", &run_id])?;
    cluster.restart(dead)?;
    cluster.wait_for_agreement(interrupt)?;
    Ok(seen_at.saturating_duration_since(killed_at))
}

/// Follows a run's history.
struct Follower {
    child: Child,
    steps: Receiver<Step>,
}

/// A completed step: the node that proposed its entry, and when the client saw it.
struct Step {
    leader: NodeId,
    seen_at: Instant,
}

impl Follower {
    fn start(client: &Client<'_>, run_id: &str) -> Result<Self> {
        let mut command = client.command(&["workflow", "history", run_id, "--follow"]);
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.context("expected `flo` to start")?;
        let stdout = child.stdout.take().context("expected its output")?;
        let (sender, steps) = sync_channel(EVENTS_QUEUED_MAX);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let seen_at = Instant::now();
                // Once the trial is over the receiver is gone.
                let is_over =
                    read_step(&line, seen_at).is_some_and(|step| sender.send(step).is_err());
                if is_over {
                    return;
                }
            }
        });
        Ok(Self { child, steps })
    }

    /// When the first step of another leader was seen.
    fn wait_for_step(
        &self,
        interrupt: &Interrupt,
        is_wanted: impl Fn(NodeId) -> bool,
    ) -> Result<Instant> {
        let began = Instant::now();
        loop {
            interrupt.check()?;
            match self.steps.recv_timeout(Duration::from_millis(100)) {
                Ok(step) if is_wanted(step.leader) => return Ok(step.seen_at),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("expected more events, but they ended")
                }
            }
            if began.elapsed() > LIMIT {
                bail!("expected the run to continue within {LIMIT:?}, but it made no progress");
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The step that the event completes, if it completes one.
fn read_step(line: &str, seen_at: Instant) -> Option<Step> {
    let event: Value = serde_json::from_str(line).ok()?;
    let is_step = text(&event, "type").ok()? == "step_completed";
    let leader = number(&event, "node_id").ok()?;
    is_step.then_some(Step { leader, seen_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_completed_steps_count() {
        let now = Instant::now();
        let leader = |line: &str| read_step(line, now).map(|step| step.leader);
        assert_eq!(leader(r#"{"type":"step_completed","node_id":3}"#), Some(3));
        assert_eq!(leader(r#"{"type":"step_started","node_id":3}"#), None);
        assert_eq!(leader("half of a li"), None);
    }
}
