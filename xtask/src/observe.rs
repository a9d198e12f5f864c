//! `cargo xtask observe`: the nodes of `deploy/local`, watched by a real Prometheus with the files of `deploy/prometheus`.

mod prometheus;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cluster::{Cluster, Listening};
use crate::sandbox::Sandbox;
use crate::stages::{Stages, say, show_duration};
use crate::subcommand::{Subcommand, UsageError};
use crate::wait::wait_for;
use crate::{flo, requirements};
use prometheus::{Prometheus, Tools};

/// The command `observe`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "observe",
    summary: "Watch three nodes over TLS with a real Prometheus, and kill one",
    help: HELP,
    run,
};

const HELP: &str = "\
Build flo, and start the three nodes of deploy/local over TLS and a Prometheus with the files of
deploy/prometheus. Check that the rules are valid, that each node is scraped, that work appears in the
metrics, and that a killed node's alert fires and resolves. Takes less than a minute after the build.
Uses separate ports and folders.

Usage: cargo xtask observe

Needs prometheus and promtool in the PATH; on Debian, missing ones are fetched and unpacked into the
target folder, and nothing is installed.

Example:
  cargo xtask observe
";

/// How long Prometheus may take to see a change: it scrapes every five seconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of runs to start.
const RUNS_COUNT: u32 = 20;
/// A workflow whose runs end immediately.
const WORKFLOW: &str = "\
kind: Workflow
name: observed
version: \"1.0.0\"
start:
  waitForSignal:
    type: go
    timeoutMs: 1
    onTimeout: flo.Completed
  transitions:
    success: flo.Completed
";

fn run(arguments: &[String]) -> Result<()> {
    if let Some(first) = arguments.first() {
        return Err(UsageError(format!("expected no argument, but got `{first}`")).into());
    }
    let mut stages = Stages::new(6);
    stages.begin("Build flo, and find Prometheus");
    requirements::ensure()?;
    let binary = flo::build()?;
    let tools = Tools::find()?;
    say(tools.version()?);
    let sandbox = Sandbox::create("flotilla-observe-")?;
    sandbox.run(false, |sandbox| watch(&binary, &tools, sandbox, stages))
}

fn watch(binary: &Path, tools: &Tools, sandbox: &Sandbox, mut stages: Stages) -> Result<()> {
    let interrupt = &sandbox.interrupt;
    let began = Instant::now();
    stages.begin("Start three nodes over TLS, and Prometheus");
    let mut cluster = Cluster::start(binary, sandbox.folder(), Listening::Anywhere, interrupt)?;
    cluster.wait_until_all_serve(interrupt)?;
    let mut prometheus = Prometheus::start(tools, &cluster, sandbox)?;
    say(prometheus.check_files()?);

    stages.begin("Check that each node is scraped, is ready and has valid certificates");
    let mut await_count = |what: &str, expression: &str, count: usize| -> Result<()> {
        wait_for(what, TIMEOUT, interrupt, || {
            prometheus.expect_running()?;
            Ok((prometheus.count(expression)? == count).then_some(()))
        })?;
        say(format!("{expression}: {count}"));
        Ok(())
    };
    await_count("three nodes", "up{job=\"flotilla\"} == 1", 3)?;
    await_count("three ready nodes", "flotilla_ready == 1", 3)?;
    await_count("one leader", "flotilla_raft_is_leader == 1", 1)?;
    let lasting = "flotilla_tls_certificate_expiry_timestamp_seconds > 0";
    await_count("certificates", lasting, 3)?;

    stages.begin("Check that work appears in the metrics");
    start_runs(&cluster, sandbox)?;
    let started = format!("flotilla_commands_applied_total{{kind=\"start_run\"}} >= {RUNS_COUNT}");
    await_count("the runs, on each node", &started, 3)?;

    stages.begin("Kill a node: its alert fires");
    let killed = cluster.wait_for_leader(None, interrupt)?.node_id;
    let process_id = cluster.process(killed).id();
    cluster.kill(killed)?;
    say(format!("node {killed} leads: kill -9 {process_id}"));
    let alert = "ALERTS{alertname=\"FlotillaNodeDown\"}";
    await_count("the alert", alert, 1)?;

    stages.begin("Restart it: no alert is left");
    cluster.restart(killed)?;
    await_count("three nodes", "up{job=\"flotilla\"} == 1", 3)?;
    await_count("no alert", "ALERTS", 0)?;
    let failed = prometheus.failed_evaluations()?;
    if failed > 0 {
        bail!("expected every rule to be evaluated, but {failed} evaluations failed");
    }
    say("every rule was evaluated each time");

    prometheus.stop(interrupt)?;
    cluster.stop(interrupt)?;
    println!(
        "\nAll processes have ended. That took {}.",
        show_duration(began.elapsed())
    );
    Ok(())
}

/// Starts runs that end immediately.
fn start_runs(cluster: &Cluster, sandbox: &Sandbox) -> Result<()> {
    let file = sandbox.folder().join("observed.yaml");
    std::fs::write(&file, WORKFLOW)?;
    let client = cluster.client();
    let _ = client.object(&["workflow", "create", "-f", &file.display().to_string()])?;
    for _ in 0..RUNS_COUNT {
        let _ = client.object(&["workflow", "start", "observed"])?;
    }
    say(format!("{RUNS_COUNT} runs were started"));
    Ok(())
}
