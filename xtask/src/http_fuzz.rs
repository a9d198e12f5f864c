//! `cargo xtask http-fuzz`: requests drawn from the OpenAPI document, to a cluster whose leaders are killed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::cluster::{Cluster, NodeId};
use crate::interrupt::Interrupt;
use crate::process::Process;
use crate::sandbox::Sandbox;
use crate::stages::{Stages, say, show_duration};
use crate::subcommand::Subcommand;
use crate::virtual_environment::VirtualEnvironment;
use crate::{flo, project, requirements};

/// The command `http-fuzz`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "http-fuzz",
    summary: "Fuzz the HTTP API of three nodes by its OpenAPI document, and kill leaders",
    help: HELP,
    run,
};

const EXAMPLES_DEFAULT: u32 = 40;

const HELP: &str = "\
Build flo, start three nodes, and send requests to one of them. schemathesis generates the requests from the node's
OpenAPI document: valid and invalid ones for each operation. Every few seconds, kill the leader and restart it. Fails
if a response is a server error other than 503 and 504, or does not match the document. Operations that close the
cluster or change its members are left out.

Usage: cargo xtask http-fuzz [--examples N] [--seed N]

Options:
  --examples N  Random requests for each operation [default: 40]
  --seed N      Determines the requests [default: 1]

Needs Python 3 with venv and pip; schemathesis is fetched from its package index into the target folder.

Example:
  cargo xtask http-fuzz --examples 200 --seed 7
";

/// The folder of the requirements and the checks, below the root.
const FOLDER: &str = "fuzz/http";
/// The node that gets the requests. It leads no longer than until the next kill.
const CALLED: NodeId = 1;
/// The time between two kills.
const KILL_INTERVAL: Duration = Duration::from_secs(5);
/// How long the killed leader is down.
const ABSENCE: Duration = Duration::from_secs(1);
/// How many calls must succeed: a cluster that refuses everything would match its description.
const SUCCESSES_MIN: u32 = 100;
/// How long all requests may take.
const TIME_MAX: Duration = Duration::from_secs(60 * 60);
/// What a response is checked for.
const CHECKS: &str = "server_error_expected,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";
/// Operations that would end the cluster for the requests after them, as regular expressions.
const PATHS_LEFT_OUT: &str = "^/v1/(auth/access|cluster/(nodes|leader))";

/// The caller's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    examples: u32,
    seed: u32,
}

fn run(arguments: &[String]) -> Result<()> {
    let call = read_arguments(arguments)?;
    let mut stages = Stages::new(3);
    stages.begin("Build flo, and find schemathesis");
    requirements::ensure()?;
    let binary = flo::build()?;
    let file = project::root().join(FOLDER).join("requirements.txt");
    let environment = VirtualEnvironment::prepare("http-fuzz", &file).context(
        "expected Python 3 with venv and pip, and schemathesis from its package index; \
         `sudo apt-get install python3-venv` installs the former",
    )?;
    let sandbox = Sandbox::create("flotilla-http-fuzz-")?;
    sandbox.run(false, |sandbox| {
        let interrupt = &sandbox.interrupt;
        stages.begin("Start three nodes");
        let mut cluster = Cluster::start_afresh(&binary, sandbox.folder(), interrupt)?;
        stages.begin("Send requests, and kill leaders");
        let log = sandbox.log("schemathesis");
        let successes_file = sandbox.folder().join("successes");
        let mut command = schemathesis(&environment, &cluster, call);
        command.env("SUCCESSES_FILE", &successes_file);
        let mut process = Process::start("schemathesis", &mut command, &log)?;
        let mut kills = Kills::new();
        let ended = process.wait_for_end_beside(TIME_MAX, interrupt, || {
            kills.proceed(&mut cluster, interrupt)
        });
        show_report(&log)?;
        ended?;
        kills.end(&mut cluster)?;
        let successes: u32 = fs::read_to_string(successes_file)?.trim().parse()?;
        if kills.count == 0 || successes < SUCCESSES_MIN {
            bail!(
                "expected killed leaders and at least {SUCCESSES_MIN} calls that succeed, but there were {} and {successes}",
                kills.count
            );
        }
        cluster.wait_until_all_serve(interrupt)?;
        let digest = cluster.wait_for_agreement(interrupt)?;
        say(format!(
            "{successes} calls succeeded, {} leaders were killed; all nodes have the digest {} at index {}",
            kills.count, digest.value, digest.index
        ));
        cluster.stop(interrupt)?;
        say(format!(
            "that took {}",
            show_duration(kills.began.elapsed())
        ));
        Ok(())
    })
}

fn read_arguments(arguments: &[String]) -> Result<Call> {
    let mut call = Call {
        examples: EXAMPLES_DEFAULT,
        seed: 1,
    };
    let mut arguments = Arguments::new(arguments);
    while let Some(option) = arguments.option() {
        match option {
            "--examples" => call.examples = arguments.positive()?,
            "--seed" => call.seed = arguments.positive()?,
            _ => return Err(arguments.unknown().into()),
        }
    }
    Ok(call)
}

/// schemathesis, to be started.
fn schemathesis(environment: &VirtualEnvironment, cluster: &Cluster, call: Call) -> Command {
    let [_, _, http] = cluster.addresses(CALLED);
    let url = format!("http://{http}");
    let mut command = Command::new(environment.program("schemathesis"));
    command
        .args(["run", &format!("{url}/v1/openapi.json"), "--url", &url])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", &call.examples.to_string()])
        .args(["--seed", &call.seed.to_string()])
        .args(["--checks", CHECKS])
        .args(["--exclude-path-regex", PATHS_LEFT_OUT])
        .args(["--request-timeout", "60"])
        .arg("--no-color")
        .current_dir(&environment.folder)
        .env("SCHEMATHESIS_HOOKS", "checks")
        .env("PYTHONPATH", project::root().join(FOLDER))
        // Leaves no files in the checkout.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Kills one leader after another.
struct Kills {
    began: Instant,
    count: u32,
    next: Instant,
    /// The node that is down, and when it is restarted.
    down: Option<(NodeId, Instant)>,
}

impl Kills {
    fn new() -> Self {
        let began = Instant::now();
        Self {
            began,
            count: 0,
            next: began + KILL_INTERVAL,
            down: None,
        }
    }

    /// Does what is due. The node that gets the requests hands leadership over instead of being killed: a request without a response
    /// would count as a failure.
    fn proceed(&mut self, cluster: &mut Cluster, interrupt: &Interrupt) -> Result<()> {
        let now = Instant::now();
        if let Some((_, end)) = self.down {
            return if now >= end {
                self.end(cluster)
            } else {
                Ok(())
            };
        }
        if now < self.next {
            return Ok(());
        }
        self.next = now + KILL_INTERVAL;
        let leader = cluster.wait_for_leader(None, interrupt)?.node_id;
        if leader == CALLED {
            // The next leader may not be ready; then the next attempt comes soon.
            let _ = cluster.client().object(&["cluster", "transfer-leader"]);
            return Ok(());
        }
        cluster.kill(leader)?;
        self.count += 1;
        self.down = Some((leader, now + ABSENCE));
        Ok(())
    }

    /// Restarts the node that is down.
    fn end(&mut self, cluster: &mut Cluster) -> Result<()> {
        match self.down.take() {
            Some((node_id, _)) => cluster.restart(node_id),
            None => Ok(()),
        }
    }
}

/// Prints what schemathesis found: its log without the progress of each phase.
fn show_report(log: &Path) -> Result<()> {
    let text = fs::read_to_string(log)?;
    print!("{}", report(&text));
    Ok(())
}

/// The log from the first of the final sections.
fn report(log: &str) -> &str {
    let headings = ["= FAILURES =", "= ERRORS =", "= SUMMARY ="];
    let found = headings
        .iter()
        .filter_map(|heading| log.find(heading))
        .min();
    let line = found.and_then(|place| log[..place].rfind('\n'));
    line.map_or(log, |line| &log[line + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subcommand::UsageError;

    fn call(words: &[&str]) -> Result<Call> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read_arguments(&words)
    }

    #[test]
    fn options_are_numbers_above_zero() {
        let expected = Call {
            examples: 9,
            seed: 3,
        };
        assert_eq!(call(&["--seed", "3", "--examples", "9"]).unwrap(), expected);
        for wrong in [
            &["--seed"][..],
            &["--seed", "0"],
            &["--examples", "x"],
            &["all"],
        ] {
            assert!(call(wrong).unwrap_err().is::<UsageError>(), "{wrong:?}");
        }
    }

    #[test]
    fn the_report_begins_with_the_first_section() {
        let log = "progress\n== FAILURES ==\na\n== SUMMARY ==\nb\n";
        assert_eq!(report(log), "== FAILURES ==\na\n== SUMMARY ==\nb\n");
        assert_eq!(report("it did not start\n"), "it did not start\n");
    }
}
