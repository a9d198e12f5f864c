//! A Prometheus that scrapes a cluster, and `promtool` to query it.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cluster::Cluster;
use crate::debian;
use crate::interrupt::Interrupt;
use crate::process::{self, Process};
use crate::project;
use crate::requirements::is_program;
use crate::sandbox::Sandbox;

/// The Debian package of both programs.
const PACKAGE: &str = "prometheus";
/// The configuration under test.
const CONFIGURATION: &str = "deploy/prometheus/prometheus.yml";
/// The addresses that the configuration has for node N, at position N - 1.
const TARGETS: [&str; 3] = ["127.0.0.1:9002", "127.0.0.1:9012", "127.0.0.1:9022"];
/// The path that it has for the authority of their certificates.
const AUTHORITY: &str = "../../.flo/certificates/ca.pem";
/// The name of the rules file, beside it.
const RULES: &str = "alerts.yml";

/// The two programs.
pub(super) struct Tools {
    prometheus: PathBuf,
    promtool: PathBuf,
}

/// A running Prometheus.
pub(super) struct Prometheus<'a> {
    tools: &'a Tools,
    process: Process,
    configuration: PathBuf,
    log: PathBuf,
    url: String,
}

impl Tools {
    /// The programs on this machine, or else fetched from Debian into the target folder.
    ///
    /// # Errors
    /// If they are neither installed nor can be fetched.
    pub(super) fn find() -> Result<Self> {
        if is_program("prometheus") && is_program("promtool") {
            return Ok(Self {
                prometheus: "prometheus".into(),
                promtool: "promtool".into(),
            });
        }
        let folder = project::target_dir()?.join("tools").join(PACKAGE);
        let programs = folder.join("usr/bin");
        let tools = Self {
            prometheus: programs.join("prometheus"),
            promtool: programs.join("promtool"),
        };
        if !tools.promtool.is_file() {
            debian::unpack(PACKAGE, &folder).context(
                "expected prometheus and promtool, but they are not in the PATH and could not be fetched; \
                 `sudo apt-get install prometheus` installs both",
            )?;
        }
        Ok(tools)
    }

    /// The version of Prometheus.
    ///
    /// # Errors
    /// If it does not run.
    pub(super) fn version(&self) -> Result<String> {
        let said = output(Command::new(&self.prometheus).arg("--version"))?;
        let line = said.lines().next().unwrap_or_default();
        Ok(line.to_owned())
    }
}

impl<'a> Prometheus<'a> {
    /// Starts it with the files of `deploy/prometheus`, adapted to the addresses of these nodes.
    ///
    /// # Errors
    /// If a file does not contain the text to replace, or the program does not start.
    pub(super) fn start(tools: &'a Tools, cluster: &Cluster, sandbox: &Sandbox) -> Result<Self> {
        let folder = sandbox.folder();
        let original = fs::read_to_string(project::root().join(CONFIGURATION))?;
        let configuration = folder.join("prometheus.yml");
        fs::write(&configuration, elsewhere(&original, cluster)?)?;
        let rules = project::root().join(CONFIGURATION).with_file_name(RULES);
        fs::copy(rules, folder.join(RULES))?;
        let address = free_address()?;
        let mut command = Command::new(&tools.prometheus);
        command
            .arg("--config.file")
            .arg(&configuration)
            .arg("--storage.tsdb.path")
            .arg(folder.join("series"))
            .arg(format!("--web.listen-address={address}"));
        let log = sandbox.log("prometheus");
        let process = Process::start("prometheus", &mut command, &log)?;
        Ok(Self {
            tools,
            process,
            configuration,
            log,
            url: format!("http://{address}"),
        })
    }

    /// Checks the configuration and the rules with `promtool`.
    ///
    /// # Errors
    /// If it reports an error.
    pub(super) fn check_files(&self) -> Result<String> {
        let mut check = Command::new(&self.tools.promtool);
        check.args(["check", "config"]).arg(&self.configuration);
        let said = output(&mut check)?;
        let found = said.lines().map(str::trim);
        let found: Vec<&str> = found.filter(|line| line.starts_with("SUCCESS")).collect();
        Ok(found.join("; "))
    }

    /// How many series the expression has now; `None` while Prometheus does not answer yet.
    ///
    /// # Errors
    /// If the response cannot be read.
    pub(super) fn count(&self, expression: &str) -> Result<usize> {
        let answer = self.ask(expression)?;
        // No series is an empty line.
        let series = answer.lines().filter(|line| !line.trim().is_empty());
        Ok(series.count())
    }

    /// How many rule evaluations have failed since the start, according to its log.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub(super) fn failed_evaluations(&self) -> Result<usize> {
        let log = fs::read_to_string(&self.log)?;
        let failed = log
            .lines()
            .filter(|line| line.contains("Evaluating rule failed"));
        Ok(failed.count())
    }

    /// # Errors
    /// If it has ended.
    pub(super) fn expect_running(&mut self) -> Result<()> {
        self.process.expect_running()
    }

    /// Stops it.
    ///
    /// # Errors
    /// If it does not stop, or fails.
    pub(super) fn stop(mut self, interrupt: &Interrupt) -> Result<()> {
        process::stop_all([&mut self.process], interrupt)
    }

    fn ask(&self, expression: &str) -> Result<String> {
        let mut query = Command::new(&self.tools.promtool);
        query.args(["query", "instant", &self.url, expression]);
        let answer = query.stdin(Stdio::null()).output()?;
        if answer.status.success() {
            return Ok(String::from_utf8(answer.stdout)?);
        }
        let fault = String::from_utf8_lossy(&answer.stderr);
        // It does not listen yet.
        if fault.contains("connection refused") {
            return Ok(String::new());
        }
        bail!("expected an answer to {expression}, but Prometheus says: {fault}")
    }
}

/// The configuration for the nodes of this cluster: only their addresses and their authority are changed.
fn elsewhere(original: &str, cluster: &Cluster) -> Result<String> {
    let http = cluster
        .node_ids()
        .map(|node_id| cluster.addresses(node_id)[2].clone());
    let variables = cluster.variables();
    let authority = variables.iter().find(|(name, _)| *name == "FLO_TLS_CA");
    let authority = authority.map(|(_, file)| file.clone()).unwrap_or_default();
    let changes = TARGETS.into_iter().zip(http);
    let mut text = original.to_owned();
    for (expected, found) in changes.chain([(AUTHORITY, authority)]) {
        if !text.contains(expected) {
            bail!("expected {CONFIGURATION} to name {expected}, but it does not");
        }
        text = text.replace(expected, &found);
    }
    Ok(text)
}

/// An address on which no process listens.
fn free_address() -> Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.to_string())
}

/// The output of a program that must succeed.
fn output(command: &mut Command) -> Result<String> {
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.with_context(|| format!("expected {command:?} to run"))?;
    let said = String::from_utf8_lossy(&ended.stdout);
    if !ended.status.success() {
        let fault = String::from_utf8_lossy(&ended.stderr);
        bail!("expected {command:?} to succeed, but it printed:\n{said}{fault}");
    }
    Ok(said.into_owned())
}
