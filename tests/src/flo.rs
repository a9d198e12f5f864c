//! `flo` as a client: one command after the other.

use crate::answer::{Answer, Refusal};
use crate::binary;
use crate::certificates::Certificates;
use crate::wait::{TIMEOUT, pause};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Runs commands against some nodes.
#[derive(Clone, Debug)]
pub struct Flo {
    endpoints: String,
    namespace: Option<String>,
    certificates: Option<Certificates>,
    token: Option<String>,
}

impl Flo {
    /// Calls these nodes: `HOST:PORT`, separated by commas.
    #[must_use]
    pub fn at(endpoints: impl Into<String>) -> Self {
        Self {
            endpoints: endpoints.into(),
            namespace: None,
            certificates: None,
            token: None,
        }
    }

    /// The same nodes, within a namespace.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self.clone()
        }
    }

    /// The same nodes, over TLS and as a client with these certificates.
    #[must_use]
    pub fn with_certificates(&self, certificates: &Certificates) -> Self {
        Self {
            certificates: Some(certificates.clone()),
            ..self.clone()
        }
    }

    /// The same nodes, with an API token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    /// The same nodes, without an API token.
    #[must_use]
    pub fn without_token(&self) -> Self {
        Self {
            token: None,
            ..self.clone()
        }
    }

    /// A `flo` command without a verb.
    pub(crate) fn command(&self) -> Command {
        let mut command = binary::flo();
        command.env("FLO_ENDPOINT", &self.endpoints);
        if let Some(certificates) = &self.certificates {
            command.envs(certificates.of_a_client());
        }
        if let Some(token) = &self.token {
            command.env("FLO_TOKEN", token);
        }
        if let Some(namespace) = &self.namespace {
            command.env("FLO_NAMESPACE", namespace);
        }
        command
    }

    /// Runs a command.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Answer {
        self.run_with_input(arguments, b"")
    }

    /// Runs a command that reads from stdin.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Answer {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be run");
        let stdout = collect(child.stdout.take().expect("it is piped"));
        let stderr = collect(child.stderr.take().expect("it is piped"));
        let mut stdin = child.stdin.take().expect("it is piped");
        // A command that does not read its input may have ended by now.
        let _ = stdin.write_all(input);
        drop(stdin);
        let line = format!("flo {}", arguments.join(" "));
        let line: String = line.chars().take(1_000).collect();
        let code = wait(&mut child, &line);
        let text = |reader: JoinHandle<String>| reader.join().expect("a reader never panics");
        Answer {
            line,
            code,
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }

    /// Runs a command that succeeds, and returns what it printed without the last line break.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    #[track_caller]
    pub fn text(&self, arguments: &[&str]) -> String {
        self.run(arguments).success().trim_end().to_owned()
    }

    /// Runs a command that succeeds with `-o json`, and returns what it printed.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&in_json(arguments)).json()
    }

    /// Runs a command that succeeds with `-o json`, and returns the object on each line.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    #[track_caller]
    pub fn json_lines(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.run(&in_json(arguments)).success();
        let parse = |line: &str| serde_json::from_str(line).expect("an object on each line");
        text.lines().map(parse).collect()
    }

    /// Runs a command that is refused, with `-o json`.
    ///
    /// # Panics
    /// When it succeeds.
    #[must_use]
    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> Refusal {
        self.run(&in_json(arguments)).refusal()
    }
}

/// The global flag comes before the verb: the words after `--` belong to a program.
fn in_json<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    ["-o", "json"].iter().chain(arguments).copied().collect()
}

fn collect(mut output: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut content = Vec::new();
        // Unreadable output is empty, so the caller's check fails.
        let _ = output.read_to_end(&mut content);
        String::from_utf8_lossy(&content).into_owned()
    })
}

fn wait(child: &mut Child, line: &str) -> i32 {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child of this process") {
            return status.code().unwrap_or(-1);
        }
        if started.elapsed() > TIMEOUT + Duration::from_secs(30) {
            child.kill().expect("a child of this process");
            panic!("expected `{line}` to end, but it has not ended");
        }
        pause();
    }
}
