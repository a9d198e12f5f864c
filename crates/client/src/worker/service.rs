//! The lifecycle of a worker: register, talk to one leader after another, drain, deregister.

use super::announce_drain;
use super::builder::Setup;
use super::callbacks::Callbacks;
use super::contact::Contact;
use super::lease::TouchOrder;
use super::link::Link;
use super::outbox::Outbox;
use super::report::Report;
use super::session::{SessionEnd, never};
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::ClientError;
use flotilla_api::v1;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::JoinMap;

/// Touches that wait to be sent; further handlers wait for a free place.
const TOUCHES_MAX: usize = 64;
/// How long the last reports may take after a hard stop.
const FAREWELL: Duration = Duration::from_secs(5);
/// The timeout of the deregistration. Short, because nothing depends on it: a worker that stays
/// registered is unhealthy after 90 s, and the process is expected to end.
const GOODBYE: Duration = Duration::from_secs(1);

/// A stream that has lived for this long was useful, even without a report.
const PROVEN_AFTER: Duration = Duration::from_secs(5);

/// The lifecycle of a worker.
pub(super) struct Service {
    pub(super) setup: Arc<Setup>,
    pub(super) outbox: Outbox,
    /// The running handlers, by the id of their task.
    pub(super) jobs: JoinMap<String, Report>,
    /// Requests touches.
    pub(super) orders: mpsc::Sender<TouchOrder>,
    pub(super) touches: mpsc::Receiver<TouchOrder>,
    client: Client,
    incarnation: u64,
    is_registered: bool,
    contact: Contact,
    callbacks: Callbacks,
    stopping: Option<Stopping>,
}

/// The worker was requested to stop.
#[derive(Clone, Copy, Debug)]
struct Stopping {
    /// When the running tasks are returned; `None` once they were.
    hard_stop_at: Option<Instant>,
}

impl Service {
    /// A worker that has not started yet.
    pub(super) fn new(client: Client, setup: Arc<Setup>, callbacks: Callbacks) -> Self {
        let (orders, touches) = mpsc::channel(TOUCHES_MAX);
        Self {
            outbox: Outbox::new(setup.concurrency),
            jobs: JoinMap::new(),
            orders,
            touches,
            client,
            incarnation: rand::random(),
            is_registered: false,
            contact: Contact::new(setup.worker_id.clone()),
            callbacks,
            stopping: None,
            setup,
        }
    }

    /// Runs until the worker is stopped, drained or refused.
    pub(super) async fn live(&mut self, stop: &CancellationToken) -> Result<(), ClientError> {
        let limit = self.setup.drain_grace + FAREWELL;
        let ended = tokio::select! {
            ended = self.serve(stop) => ended,
            () = overtime(stop, limit) => {
                tracing::warn!("the last tasks could not be returned: their leases will expire");
                Ok(())
            }
        };
        if ended.is_ok() && self.is_registered {
            self.deregister().await;
        }
        ended
    }

    /// Whether the worker takes no more tasks and holds none.
    pub(super) fn is_done(&self) -> bool {
        !self.outbox.ledger().is_taking() && self.holds_nothing()
    }

    fn holds_nothing(&self) -> bool {
        self.outbox.ledger().held().is_empty()
    }

    /// Whether the worker was requested to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// When the running tasks are returned.
    pub(super) fn hard_stop_at(&self) -> Instant {
        self.stopping
            .and_then(|stopping| stopping.hard_stop_at)
            .unwrap_or_else(never)
    }

    /// Takes no more tasks, lets running ones finish, and announces the drain.
    pub(super) fn stop_gracefully(&mut self) {
        self.drain();
        self.stopping = Some(Stopping {
            hard_stop_at: Some(Instant::now() + self.setup.drain_grace),
        });
        // Without tasks it deregisters immediately: no drain is visible.
        if self.is_registered && !self.holds_nothing() {
            let (client, worker_id) = (self.client.clone(), self.setup.worker_id.clone());
            tokio::spawn(announce_drain(client, worker_id, self.incarnation));
        }
    }

    /// Takes no more tasks and reports how many it waits for.
    pub(super) fn drain(&mut self) {
        if self.outbox.ledger().is_taking() {
            self.outbox.stop_taking();
            let tasks = self.outbox.ledger().held().len();
            tracing::info!(worker = self.setup.worker_id, tasks, "draining");
            self.callbacks.draining(tasks);
        }
    }

    /// Returns the running tasks.
    pub(super) fn stop_hard(&mut self) {
        self.stopping = Some(Stopping { hard_stop_at: None });
        // A handler that has already ended is not reported as stopped.
        while let Some((task_id, ended)) = self.jobs.try_join_next() {
            self.outbox.report(task_id, Report::of_end(ended));
        }
        for task_id in std::mem::take(&mut self.jobs).keys() {
            tracing::warn!(task = task_id, "a task is returned");
            self.outbox.report(task_id.clone(), Report::of_stop());
        }
    }

    /// The leader knows the worker: from here on it receives tasks.
    pub(super) fn note_hello_ok(&mut self, hello_ok: v1::HelloOk) {
        self.contact.regain();
        if hello_ok.status() == v1::WorkerStatus::Draining {
            self.drain();
        }
        self.callbacks.ready();
    }

    async fn serve(&mut self, stop: &CancellationToken) -> Result<(), ClientError> {
        let mut backoff = Backoff::default();
        loop {
            match self.session(stop, &mut backoff).await {
                SessionEnd::Settled => return Ok(()),
                SessionEnd::Refused(error) => return Err(error),
                SessionEnd::Unregistered => self.is_registered = false,
                SessionEnd::Moved => {}
                SessionEnd::Lost(error) => self.contact.lose(&error),
            }
            tokio::select! {
                () = sleep(backoff.next_delay()) => {}
                () = stop.cancelled(), if self.holds_nothing() => return Ok(()),
            }
        }
    }

    /// One stream, from registration to its end.
    async fn session(&mut self, stop: &CancellationToken, backoff: &mut Backoff) -> SessionEnd {
        if stop.is_cancelled() && !self.is_stopping() {
            // The grace begins with the shutdown, not with the next stream.
            self.stop_gracefully();
        }
        let holds_nothing = self.holds_nothing();
        let connected = tokio::select! {
            connected = self.connect() => connected,
            () = stop.cancelled(), if holds_nothing => return SessionEnd::Settled,
        };
        let (mut link, hello_ok) = match connected {
            Ok(connected) => connected,
            Err(end) => return end,
        };
        self.note_hello_ok(hello_ok);
        let (opened, accepted) = (Instant::now(), self.outbox.reports_accepted());
        let end = self.talk(&mut link, stop).await;
        // A greeting alone proves nothing: a leader that greets and then breaks off would be called
        // several times a second by each of its workers.
        if self.outbox.reports_accepted() > accepted || opened.elapsed() >= PROVEN_AFTER {
            backoff.reset();
        }
        end
    }

    async fn connect(&mut self) -> Result<(Link, v1::HelloOk), SessionEnd> {
        if !self.is_registered {
            self.register().await.map_err(SessionEnd::from_error)?;
            self.is_registered = true;
        }
        let hello = self.outbox.open(v1::WorkerHello {
            namespace: self.client.namespace().to_owned(),
            worker_id: self.setup.worker_id.clone(),
            incarnation: self.incarnation,
            actions: self.setup.actions(),
            held_task_tokens: Vec::new(),
            supports_batches: true,
        });
        Link::open(&self.client, hello)
            .await
            .map_err(SessionEnd::from_failure)
    }

    /// Registers missing actions and the worker (A1, A20).
    async fn register(&mut self) -> Result<(), ClientError> {
        for name in self.setup.actions() {
            let request = v1::RegisterActionRequest {
                name,
                r#type: v1::ActionType::User.into(),
                only_if_missing: true,
                ..v1::RegisterActionRequest::default()
            };
            self.client.register_action(request).await?;
        }
        let request = v1::RegisterRequest {
            incarnation: self.incarnation,
            ..self.setup.record()
        };
        self.client.register_worker(request).await?;
        Ok(())
    }

    async fn deregister(&mut self) {
        let request = v1::DeregisterRequest {
            worker_id: self.setup.worker_id.clone(),
            incarnation: Some(self.incarnation),
            ..v1::DeregisterRequest::default()
        };
        if let Err(error) = self
            .client
            .with_timeout(GOODBYE)
            .deregister_worker(request)
            .await
        {
            tracing::warn!(worker = self.setup.worker_id, %error, "could not deregister");
        }
    }
}

/// Ends `limit` after the stop request.
async fn overtime(stop: &CancellationToken, limit: Duration) {
    stop.cancelled().await;
    sleep(limit).await;
}
