//! `cargo xtask demo`: three nodes, two workflows of the manual, and a killed leader.

mod chronicle;
mod finale;
mod order;
mod order_book;
mod runs;
mod shop;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cluster::{Cluster, Leader, Listening, NodeId};
use crate::sandbox::Sandbox;
use crate::stages::{Stages, say, show_duration};
use crate::subcommand::{Subcommand, UsageError};
use crate::{flo, requirements};
use finale::Finale;
use order_book::OrderBook;
use shop::Shop;

/// The command `demo`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "demo",
    summary: "Run workflows on three nodes and kill the leader half-way",
    help: HELP,
    run,
};

const HELP: &str = "\
Build flo, start three nodes, run two workflows with real workers and a WASM action, kill the leader
with SIGKILL while runs are open, and show that no run is lost. Takes less than a minute after the
build. Uses separate ports and folders, so it does not disturb a running cluster.

Usage: cargo xtask demo [--keep]

Options:
  --keep  Keep the data folders and the logs, and print where they are

Example:
  cargo xtask demo
";

const INTRODUCTION: &str = "\
Flotilla runs workflows on a cluster whose nodes may crash at any moment. This demo starts three nodes
on this machine. A shop takes orders, some of which wait for approval. Then the leader is killed.";

fn run(arguments: &[String]) -> Result<()> {
    let is_kept = read_arguments(arguments)?;
    println!("{INTRODUCTION}");
    let mut stages = Stages::new(8);
    stages.begin("Build flo (about 14 minutes the first time, on two cores)");
    requirements::ensure()?;
    let binary = flo::build()?;
    let sandbox = Sandbox::create("flotilla-demo-")?;
    sandbox.run(is_kept, |sandbox| play(&binary, sandbox, stages))
}

/// Whether to keep the folder.
fn read_arguments(arguments: &[String]) -> Result<bool> {
    match arguments {
        [] => Ok(false),
        [only] if only == "--keep" => Ok(true),
        [first, ..] => {
            let message = format!("expected no argument but --keep, but got `{first}`");
            Err(UsageError(message).into())
        }
    }
}

/// Everything after the build.
fn play(binary: &Path, sandbox: &Sandbox, mut stages: Stages) -> Result<()> {
    let interrupt = &sandbox.interrupt;
    let began = Instant::now();
    stages.begin("Start three nodes");
    let mut cluster = start_nodes(binary, sandbox)?;

    stages.begin("Register actions, start workers, create workflows");
    let shop = Shop::open(&cluster, binary, sandbox)?;

    stages.begin("Take orders through every node");
    let mut book = OrderBook::default();
    book.take_early_orders(&cluster, interrupt)?;

    stages.begin("Kill the leader while runs are open");
    let crash = crash_leader(&mut cluster, &mut book, sandbox)?;

    stages.begin("Continue without it");
    book.take_late_orders(&cluster, crash.dead)?;
    book.approve(&cluster, crash.dead)?;
    book.wait_for_ends(&cluster, crash.dead, interrupt)?;

    stages.begin("Restart it");
    cluster.restart(crash.dead)?;
    let digest = cluster.wait_for_agreement(interrupt)?;
    say(format!(
        "node {} has caught up from the logs of the others",
        crash.dead
    ));
    let state = digest.value.get(..16).unwrap_or(&digest.value);
    say(format!(
        "all three nodes hold the same state: digest {state}… at log index {}",
        digest.index
    ));

    stages.begin(&format!(
        "What happened, as recorded on node {}",
        crash.dead
    ));
    let finale = Finale::gather(&book, &cluster.client_of(|node_id| node_id == crash.dead))?;
    finale.show_histories()?;
    finale.show_summary(&crash, &shop.receipts()?)?;

    shop.close(interrupt)?;
    cluster.stop(interrupt)?;
    println!(
        "\nAll processes have ended. The demo took {}.",
        show_duration(began.elapsed())
    );
    Ok(())
}

fn start_nodes(binary: &Path, sandbox: &Sandbox) -> Result<Cluster> {
    let began = Instant::now();
    let interrupt = &sandbox.interrupt;
    let mut cluster = Cluster::start(binary, sandbox.folder(), Listening::Anywhere, interrupt)?;
    let leader = cluster.wait_for_leader(None, interrupt)?;
    for node_id in cluster.node_ids() {
        let process_id = cluster.process(node_id).id();
        let endpoint = cluster.endpoint(node_id);
        say(format!(
            "node {node_id} at {endpoint}, process {process_id}"
        ));
    }
    let Leader { node_id, term } = leader;
    let after = show_duration(began.elapsed());
    say(format!(
        "node {node_id} is the leader in term {term}, {after} after the start"
    ));
    Ok(cluster)
}

/// The death of the leader and its consequences.
struct Crash {
    dead: NodeId,
    successor: Leader,
    open_runs_count: usize,
    /// From the kill until the cluster acknowledged the next start.
    gap: Duration,
}

fn crash_leader(cluster: &mut Cluster, book: &mut OrderBook, sandbox: &Sandbox) -> Result<Crash> {
    let interrupt = &sandbox.interrupt;
    book.take_orders_to_interrupt(cluster, interrupt)?;
    let dead = cluster.wait_for_leader(None, interrupt)?.node_id;
    let open_runs_count = book.open_runs_count(&cluster.client())?;
    if open_runs_count == 0 {
        bail!("expected open runs when the leader dies, but all have ended");
    }
    let process_id = cluster.process(dead).id();
    let killed_at = cluster.kill(dead)?;
    say(format!(
        "node {dead} is the leader and {open_runs_count} runs are open: kill -9 {process_id}"
    ));

    let gap = book.take_order_of_gap(cluster, dead, killed_at)?;
    let successor = cluster.wait_for_leader(Some(dead), interrupt)?;
    let Leader { node_id, term } = successor;
    say(format!("node {node_id} is the new leader, in term {term}"));
    Ok(Crash {
        dead,
        successor,
        open_runs_count,
        gap,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_kept_on_request_only() {
        let read = |words: &[&str]| {
            let arguments: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            read_arguments(&arguments)
        };
        assert!(!read(&[]).unwrap());
        assert!(read(&["--keep"]).unwrap());
        assert!(read(&["--fast"]).unwrap_err().is::<UsageError>());
        assert!(read(&["--keep", "--fast"]).unwrap_err().is::<UsageError>());
    }
}
