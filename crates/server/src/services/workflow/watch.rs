//! Watches a run: streams its events as this node applies them, and its status.

use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::{OUTGOING_BYTES_MAX, WATCH_UPDATES_MAX};
use crate::request;
use crate::sending::{Counted, CountedStream, ResponseMemory};
use crate::watch::{self, LookRange, RunChanges, RunLook};
use flotilla_api::v1;
use flotilla_api::v1::watch_run_response::Update;
use flotilla_engine::Rejection;
use flotilla_engine::ids::{Namespace, RunId};
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, EventView, RunEnding};
use flotilla_leader::channel::{Bounds, NotSent, Sender, channel};
use prost::Message;
use std::sync::Arc;
use tokio::time::Instant;
use tonic::Status;

/// One caller's watch of one run.
struct RunWatch {
    context: CallContext,
    namespace: Namespace,
    run_id: RunId,
    /// The attempt at the run whose changes are awaited.
    watched: RunId,
    changes: RunChanges,
    /// The last event that was sent.
    seq: u64,
    /// Whether the events that existed when the watch began are sent: from then on, it reads what all watchers of the run
    /// read.
    has_caught_up: bool,
    updates: Sender<Counted<Result<v1::WatchRunResponse, Status>>>,
    memory: ResponseMemory,
}

/// The caller disconnected.
struct CallerGone;

/// Serves `WatchRun`.
pub(super) async fn watch(
    context: &CallContext,
    request: v1::WatchRunRequest,
    (deadline, memory): (Instant, ResponseMemory),
) -> Result<CountedStream<Result<v1::WatchRunResponse, Status>>, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let run_id = request::run_id(request.run_id)?;
    // The watch begins before the read, so that no change is missed between the two.
    let changes = context
        .watchers
        .runs
        .watch(&namespace, (namespace.clone(), run_id.clone()))?;
    let look_up = |reader: &dyn Reader| view::find_run(reader, &namespace, &run_id);
    let found = gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    found.ok_or_else(|| Rejection::RunNotFound(run_id.clone()))?;
    let (updates, receiver) = channel(Bounds {
        messages_max: WATCH_UPDATES_MAX,
        bytes_max: OUTGOING_BYTES_MAX,
    });
    let responses = memory.stream(receiver);
    let seq = request.after_seq;
    let watch = RunWatch {
        context: context.clone(),
        namespace,
        watched: run_id.clone(),
        run_id,
        changes,
        seq,
        has_caught_up: false,
        updates,
        memory,
    };
    tokio::spawn(watch.serve());
    Ok(responses)
}

impl RunWatch {
    /// Sends changes until the run ends, the caller disconnects or callers cannot wait here any longer.
    async fn serve(mut self) {
        let mut last_status = None;
        loop {
            let (context, updates) = (self.context.clone(), self.updates.clone());
            // It may wait for memory, or for the caller to read.
            let caught_up = tokio::select! {
                caught_up = self.catch_up(&mut last_status) => caught_up,
                () = updates.closed() => return,
                refusal = watch::interrupted(&context) => {
                    let _ = updates.try_send(Counted::small(Err(refusal.into())), 0);
                    return;
                }
            };
            match caught_up {
                Ok(is_open) => {
                    if !is_open {
                        return;
                    }
                }
                Err(Stop::Gone(CallerGone)) => return,
                Err(Stop::Refused(refusal)) => {
                    // The caller may be gone as well; then nothing is sent.
                    if let Ok(room) = self.updates.reserve(0).await {
                        room.send(Counted::small(Err(refusal.into())));
                    }
                    return;
                }
            }
            tokio::select! {
                () = self.changes.notified() => {}
                () = self.updates.closed() => return,
                refusal = watch::interrupted(&self.context) => {
                    let refused = Counted::small(Err(refusal.into()));
                    let _ = self.updates.try_send(refused, 0);
                    return;
                }
            }
        }
    }

    /// Sends all events that have not been sent, then the resulting status if it differs from the
    /// last; false if that is the end.
    async fn catch_up(
        &mut self,
        last_status: &mut Option<v1::RunStatusChange>,
    ) -> Result<bool, Stop> {
        loop {
            // Until all of it is sent, or queued.
            let _memory = self.memory.reserve_view().await;
            let look = self.look().await?;
            for event in &look.events {
                self.send_event(event.clone()).await?;
            }
            let Some(run) = look.run.clone() else {
                continue;
            };
            self.has_caught_up = true;
            let mut is_open = true;
            let mut status = convert::run::status_change(run);
            // All attempts are one run, which ends with the last one (W77).
            match &look.ending {
                None | Some(RunEnding::Open) => {}
                // What has changed before it is watched is read again.
                Some(RunEnding::Retried { latest }) => match self.follow(latest)? {
                    true => continue,
                    false => return Ok(true),
                },
                // The events are those of the attempt that is watched.
                Some(RunEnding::Ended(end)) => {
                    is_open = false;
                    status = v1::RunStatusChange {
                        seq: status.seq,
                        ..convert::run::status_change(end.clone())
                    };
                }
            }
            if last_status
                .as_ref()
                .is_none_or(|last| is_other(last, &status))
            {
                self.send(Update::Status(status.clone())).await?;
                *last_status = Some(status);
            }
            return Ok(is_open);
        }
    }

    /// Waits for changes of a later attempt from now on; returns whether it was another one before.
    fn follow(&mut self, latest: &RunId) -> Result<bool, Refusal> {
        let is_other = self.watched != *latest;
        if is_other {
            let key = (self.namespace.clone(), latest.clone());
            let runs = &self.context.watchers.runs;
            self.changes = runs.watch(&self.namespace, key)?;
            self.watched = latest.clone();
        }
        Ok(is_other)
    }

    /// The next events, and the run after the last one, if that is among them.
    async fn look(&mut self) -> Result<Arc<RunLook>, Refusal> {
        let last_notification = self.changes.last_notification();
        let range = LookRange {
            namespace: self.namespace.clone(),
            run_id: self.run_id.clone(),
            after_seq: self.seq,
        };
        let read = || read(&self.context, range.clone());
        if self.has_caught_up {
            let others_count = self.changes.others_count();
            let shared = self.changes.shared();
            shared
                .find(last_notification, range.clone(), others_count, read)
                .await
        } else {
            read().await.map(Arc::new)
        }
    }

    async fn send_event(&mut self, event: EventView) -> Result<(), CallerGone> {
        self.seq = event.seq;
        self.send(Update::Event(convert::event::message(event)))
            .await
    }

    async fn send(&self, update: Update) -> Result<(), CallerGone> {
        let response = self.context.visible(v1::WatchRunResponse {
            update: Some(update),
        });
        let bytes = response.encoded_len();
        let room = self.updates.reserve(bytes).await;
        let room = room.map_err(|NotSent| CallerGone)?;
        let memory = self.memory.reserve_message(bytes).await;
        room.send(Counted::new(Ok(response), memory));
        Ok(())
    }
}

async fn read(context: &CallContext, range: LookRange) -> Result<RunLook, Refusal> {
    context.metrics.count_watch_read();
    let missing = Rejection::RunNotFound(range.run_id.clone());
    let gateway = context.gateway.of(&range.namespace);
    let look = move |reader: &dyn Reader| RunLook::read(reader, &range);
    let found = gateway.scan_here(look).await?;
    found.ok_or_else(|| missing.into())
}

/// Why a watch ends before its run.
enum Stop {
    Gone(CallerGone),
    Refused(Refusal),
}

impl From<CallerGone> for Stop {
    fn from(gone: CallerGone) -> Self {
        Self::Gone(gone)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Whether the caller should get this status: a new position in the history alone is not a change.
fn is_other(last: &v1::RunStatusChange, status: &v1::RunStatusChange) -> bool {
    (last.status, &last.terminal, &last.detail) != (status.status, &status.terminal, &status.detail)
}
