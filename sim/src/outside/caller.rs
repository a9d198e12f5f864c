//! Calls the cluster as a client library does: any node, with retries while the outcome is unknown.

use crate::network::{CallError, Host, Network, OUTSIDE, Route};
use crate::node::Submitted;
use crate::random::Random;
use crate::record::{Outcome, Record};
use flotilla_engine::ids::{KvKey, Namespace};
use flotilla_engine::{Actor, Body, Command, CommandEnvelope, KeyRecord, RequestId};
use std::time::Duration;

/// How long a caller waits for one response.
const TIMEOUT: Duration = Duration::from_millis(2_500);
/// How often a command is tried.
const ATTEMPTS_MAX: u32 = 12;
/// How many of 1000 commands are sent once more, whatever the first outcome is.
const ECHOES: u64 = 30;

/// A caller outside the cluster.
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) network: Network,
    pub(crate) record: Record,
    pub(crate) random: Random,
    pub(crate) hosts: Vec<Host>,
    /// On whose behalf its commands are carried out.
    pub(crate) actor: Actor,
}

impl Caller {
    /// A caller with the same name, for something that it does at the same time.
    pub(super) fn branch(&mut self) -> Self {
        Self {
            name: self.name.clone(),
            network: self.network.clone(),
            record: self.record.clone(),
            random: Random::new(self.random.draw()),
            hosts: self.hosts.clone(),
            actor: self.actor.clone(),
        }
    }

    /// A caller with the same name that calls at the same time on behalf of another.
    pub(super) fn acting_for(&mut self, actor: Actor) -> Self {
        Self {
            actor,
            ..self.branch()
        }
    }

    /// A command with a request id.
    pub(crate) fn command(&mut self, body: Body) -> Command {
        let (high, low) = (self.random.draw(), self.random.draw());
        Command {
            request_id: Some(RequestId(u128::from(high) << 64 | u128::from(low))),
            ..self.command_without_id(body)
        }
    }

    /// A command that has a key instead.
    pub(super) fn command_without_id(&self, body: Body) -> Command {
        body.into_command(Namespace::default_namespace())
    }

    /// Submits a command, and retries with the same id while its outcome is unknown; sometimes
    /// it gives up with an unknown outcome.
    pub(super) async fn submit(&mut self, command: Command) -> Outcome {
        self.submit_with_attempts(command, ATTEMPTS_MAX).await
    }

    /// The same, but retries until the outcome is known.
    pub(crate) async fn insist(&mut self, command: Command) -> Outcome {
        self.submit_with_attempts(command, u32::MAX).await
    }

    async fn submit_with_attempts(&mut self, command: Command, attempts_max: u32) -> Outcome {
        let operation = OpenOperation::begin(self, &command);
        // An echo may have another outcome than the response.
        let mut may_be_done = self.random.chance(ECHOES);
        if may_be_done {
            self.echo(&command);
        }
        let mut attempts = 0;
        let outcome = loop {
            attempts += 1;
            let submitted = self.attempt(&command).await;
            may_be_done |= submitted == Submitted::Unknown;
            match submitted {
                Submitted::Answered(Ok(reply)) => break Outcome::Acknowledged(reply),
                // A second attempt, which may follow a successful first one: its outcome says nothing about the first.
                Submitted::Answered(Err(_)) if may_be_done => break Outcome::Unknown,
                Submitted::Answered(Err(rejection)) => break Outcome::Rejected(rejection),
                Submitted::NotDone | Submitted::Unknown => {}
            }
            let gives_up = attempts_max != u32::MAX && self.random.chance(30);
            if attempts == attempts_max || gives_up {
                break if may_be_done {
                    Outcome::Unknown
                } else {
                    Outcome::NotDone
                };
            }
            self.pause(10..200).await;
        };
        operation.end(outcome)
    }

    /// Sends a command later, without waiting for a response.
    fn echo(&mut self, command: &Command) {
        let (network, route) = (self.network.clone(), self.route());
        let envelope = command.clone().by(self.actor.clone());
        let delay = Duration::from_millis(self.random.within(1..3_000));
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // No caller waits for it.
            let _ = send(network, route, envelope).await;
        });
    }

    async fn attempt(&mut self, command: &Command) -> Submitted {
        let route = self.route();
        self.attempt_at(route, command).await
    }

    /// Sends a command to a node once.
    pub(crate) async fn attempt_at(&self, route: Route, command: &Command) -> Submitted {
        let envelope = command.clone().by(self.actor.clone());
        let called = send(self.network.clone(), route, envelope);
        match tokio::time::timeout(TIMEOUT, called).await {
            Ok(Ok(submitted)) => submitted,
            Ok(Err(CallError::Refused)) => Submitted::NotDone,
            Ok(Err(CallError::Lost)) | Err(_) => Submitted::Unknown,
        }
    }

    /// Reads the current value of a key at a node; `Err` if that cannot be known.
    pub(crate) async fn read_at(&self, route: Route, key: &KvKey) -> Result<Option<KeyRecord>, ()> {
        let requested = key.clone();
        let called = self.network.call_once(route, move |process| {
            let requested = requested.clone();
            Box::pin(async move {
                let gateway = process.gateway.ok_or(())?;
                gateway.read_key(&requested).await
            })
        });
        let called = tokio::time::timeout(TIMEOUT, called).await;
        called.map_err(drop)?.map_err(drop)?
    }

    /// The connection to one of the nodes.
    pub(super) fn route(&mut self) -> Route {
        Route {
            from: OUTSIDE,
            to: *self.random.pick(&self.hosts),
        }
    }

    /// Waits for some milliseconds of the range.
    pub(crate) async fn pause(&mut self, range_ms: std::ops::Range<u64>) {
        let pause_ms = self.random.within(range_ms);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
}

/// A command whose outcome is not known yet. If its caller dies, the outcome stays unknown.
struct OpenOperation {
    record: Record,
    name: String,
    position: usize,
    is_ended: bool,
}

impl OpenOperation {
    fn begin(caller: &Caller, command: &Command) -> Self {
        Self {
            record: caller.record.clone(),
            name: caller.name.clone(),
            position: caller.record.ask(&caller.name, command),
            is_ended: false,
        }
    }

    fn end(mut self, outcome: Outcome) -> Outcome {
        self.is_ended = true;
        self.record
            .answer(&self.name, self.position, outcome.clone());
        outcome
    }
}

impl Drop for OpenOperation {
    fn drop(&mut self) {
        if !self.is_ended {
            self.record
                .answer(&self.name, self.position, Outcome::Unknown);
        }
    }
}

/// Sends a command to a node.
async fn send(
    network: Network,
    route: Route,
    envelope: CommandEnvelope,
) -> Result<Submitted, CallError> {
    let called = network.call_once(route, move |process| {
        let envelope = envelope.clone();
        Box::pin(async move {
            match process.gateway {
                Some(gateway) => gateway.submit(envelope).await,
                None => Submitted::NotDone,
            }
        })
    });
    called.await
}
