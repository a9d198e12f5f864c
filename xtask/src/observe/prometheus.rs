//! A Prometheus that scrapes a cluster, and `promtool` to ask it.

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

/// Debian's package of both programs.
const PACKAGE: &str = "prometheus";
/// The configuration that is tried out.
const CONFIGURATION: &str = "deploy/prometheus/prometheus.yml";
/// Where that configuration expects node N, at position N - 1.
const TARGETS: [&str; 3] = ["127.0.0.1:9002", "127.0.0.1:9012", "127.0.0.1:9022"];
/// Where it expects the authority of their certificates.
const AUTHORITY: &str = "../../.flo/certificates/ca.pem";
/// The name of the rules' file, beside it.
const RULES: &str = "alerts.yml";

/// The two programs.
pub(super) struct Tools {
    prometheus: PathBuf,
    promtool: PathBuf,
}

/// A Prometheus that runs.
pub(super) struct Prometheus<'a> {
    tools: &'a Tools,
    process: Process,
    configuration: PathBuf,
    log: PathBuf,
    url: String,
}

impl Tools {
    /// The programs of this machine; fetched from Debian, into the target folder, where there are none.
    ///
    /// # Errors
    /// If they are neither there nor to be had.
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
                "expected prometheus and promtool, but they are not in the PATH and were not to be had; \
                 `sudo apt-get install prometheus` installs both",
            )?;
        }
        Ok(tools)
    }

    /// What Prometheus says of itself.
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
    /// Starts it with the files of `deploy/prometheus`, for nodes that are elsewhere than those files say.
    ///
    /// # Errors
    /// If a file does not say what is expected of it, or the program does not start.
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

    /// What `promtool` finds in the configuration and the rules.
    ///
    /// # Errors
    /// If it finds a fault.
    pub(super) fn check_files(&self) -> Result<String> {
        let mut check = Command::new(&self.tools.promtool);
        check.args(["check", "config"]).arg(&self.configuration);
        let said = output(&mut check)?;
        let found = said.lines().map(str::trim);
        let found: Vec<&str> = found.filter(|line| line.starts_with("SUCCESS")).collect();
        Ok(found.join("; "))
    }

    /// How many series the expression has now; none while Prometheus does not answer yet.
    ///
    /// # Errors
    /// If the answer cannot be read.
    pub(super) fn count(&self, expression: &str) -> Result<usize> {
        let answer = self.ask(expression)?;
        // Nothing is an empty line.
        let series = answer.lines().filter(|line| !line.trim().is_empty());
        Ok(series.count())
    }

    /// How often a rule could not be evaluated, since the start: its log says so.
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

    /// Ends it.
    ///
    /// # Errors
    /// If it does not end, or not well.
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
        // It has not begun to listen.
        if fault.contains("connection refused") {
            return Ok(String::new());
        }
        bail!("expected an answer to {expression}, but Prometheus says: {fault}")
    }
}

/// The configuration for the nodes of this cluster: only where they are, and their authority, is changed.
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

/// Where nobody listens now.
fn free_address() -> Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.to_string())
}

/// What a program says that is to end well.
fn output(command: &mut Command) -> Result<String> {
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.with_context(|| format!("expected {command:?} to run"))?;
    let said = String::from_utf8_lossy(&ended.stdout);
    if !ended.status.success() {
        let fault = String::from_utf8_lossy(&ended.stderr);
        bail!("expected {command:?} to end well, but it says:\n{said}{fault}");
    }
    Ok(said.into_owned())
}
