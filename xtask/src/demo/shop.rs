//! What the demo's orders need: actions, workers and workflows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::order::{ORDER_PROCESSING, PROCESS_ORDER};
use crate::cluster::Cluster;
use crate::flo;
use crate::interrupt::Interrupt;
use crate::process::{self, Process};
use crate::sandbox::Sandbox;
use crate::stages::say;
use crate::table::Table;
use crate::wait::wait_for;

/// How long a worker may take to get ready.
const LIMIT: Duration = Duration::from_secs(60);

/// The module of both shipping actions.
const MODULE: &str = "examples/actions/ship-order.wat";
const MODULE_ACTIONS: [&str; 2] = ["create-shipment", "ship-order"];

/// The workers, and the actions that each of them runs with a script of `examples/actions`.
const WORKERS: [(&str, &[&str]); 2] = [
    ("desk", &["validate-order", "check-approval-needed"]),
    ("till", &["charge-payment"]),
];

const WORKFLOWS: [&str; 2] = [PROCESS_ORDER, ORDER_PROCESSING];

/// How long the bank takes: long enough to kill the leader meanwhile.
const CHARGE_SECONDS: &str = "3";

/// The running workers.
pub(super) struct Shop {
    workers: Vec<Process>,
    receipts: PathBuf,
}

impl Shop {
    /// Registers the actions, starts the workers and creates the workflows.
    ///
    /// # Errors
    /// If a request is refused, or a worker does not become ready.
    pub(super) fn open(cluster: &Cluster, binary: &Path, sandbox: &Sandbox) -> Result<Self> {
        let client = cluster.client();
        for action in MODULE_ACTIONS {
            client.object(&["action", "register", action, "--wasm", MODULE])?;
        }
        let receipts = sandbox.folder().join("receipts");
        fs::create_dir(&receipts).context("expected a folder for receipts")?;
        let mut workers = Vec::new();
        for (name, actions) in WORKERS {
            let mut command = flo::command(binary);
            command
                .envs(cluster.variables())
                .args(["worker", "exec"])
                .args(["--worker-id", name])
                .env("RECEIPTS", &receipts)
                .env("CHARGE_SECONDS", CHARGE_SECONDS);
            for action in actions {
                command.args(["--action", &format!("{action}=sh {}", script(action))]);
            }
            workers.push(start_worker(name, command, sandbox)?);
        }
        for workflow in WORKFLOWS {
            client.object(&["workflow", "create", "--file", &source(workflow)])?;
        }
        inventory().render().iter().for_each(say);
        Ok(Self { workers, receipts })
    }

    /// The ids of the orders that were charged.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(super) fn receipts(&self) -> Result<BTreeSet<String>> {
        let entries = fs::read_dir(&self.receipts).context("expected the folder of receipts")?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    /// Asks the workers to finish their tasks and to stop.
    ///
    /// # Errors
    /// If one does not.
    pub(super) fn close(mut self, interrupt: &Interrupt) -> Result<()> {
        process::stop_all(&mut self.workers, interrupt)
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // All together, so that none waits for another.
        self.workers.iter_mut().for_each(Process::ask_to_stop);
    }
}

fn script(action: &str) -> String {
    format!("examples/actions/{action}.sh")
}

fn source(workflow: &str) -> String {
    format!("examples/workflows/{workflow}.yaml")
}

/// The actions and workflows, where they are, and which worker runs them.
fn inventory() -> Table {
    let mut table = Table::default();
    for action in MODULE_ACTIONS {
        table.add(["action", action, MODULE, "by any node"]);
    }
    for (name, actions) in WORKERS {
        for action in actions {
            let worker = format!("by worker {name}");
            table.add(["action", action, &script(action), &worker]);
        }
    }
    for workflow in WORKFLOWS {
        table.add(["workflow", workflow, &source(workflow)]);
    }
    table
}

fn start_worker(name: &str, mut command: Command, sandbox: &Sandbox) -> Result<Process> {
    let log = sandbox.log(name);
    let mut worker = Process::start(&format!("worker {name}"), &mut command, &log)?;
    let what = format!("worker {name} to be ready");
    wait_for(&what, LIMIT, &sandbox.interrupt, || {
        worker.expect_running()?;
        let is_ready = fs::read_to_string(&log)?
            .lines()
            .any(|line| line == "ready");
        Ok(is_ready.then_some(()))
    })?;
    Ok(worker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project;

    #[test]
    fn everything_that_is_registered_is_there() {
        let scripts = WORKERS.iter().flat_map(|(_, actions)| *actions);
        let scripts = scripts.map(|action| script(action));
        let sources = WORKFLOWS.into_iter().map(source);
        for file in scripts.chain(sources).chain([MODULE.to_owned()]) {
            assert!(project::root().join(&file).is_file(), "{file}");
        }
    }

    #[test]
    fn every_action_of_the_workflows_has_a_worker() {
        let done: Vec<&str> = WORKERS
            .iter()
            .flat_map(|(_, actions)| *actions)
            .copied()
            .collect();
        for workflow in [PROCESS_ORDER, ORDER_PROCESSING] {
            let path = format!("examples/workflows/{workflow}.yaml");
            let source = fs::read_to_string(project::root().join(path)).unwrap();
            let targets = source
                .lines()
                .filter_map(|line| line.split_once("@actions/"));
            let actions: Vec<&str> = targets
                .map(|(_, name)| name.trim_end_matches('"'))
                .collect();
            assert!(!actions.is_empty());
            for action in actions {
                let is_done = done.contains(&action) || MODULE_ACTIONS.contains(&action);
                assert!(is_done, "{action}");
            }
        }
    }
}
