//! Watching a run through lost connections.

use crate::backoff::Backoff;
use crate::call::{OpenCall, REPLY_BYTES_MAX};
use crate::client::Client;
use crate::code::ClientCode;
use crate::error::ClientError;
use crate::failure::{Failure, Verdict};
use crate::names::PublishedName;
use crate::requests::Prepare;
use flotilla_api::v1;
use flotilla_api::v1::watch_run_response::Update;
use flotilla_api::v1::workflow_service_client::WorkflowServiceClient;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::Streaming;

/// One update of a watched run.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchUpdate {
    /// The next event of its history.
    Event(v1::Event),
    /// Its status, sent when it changes.
    Status(v1::RunStatusChange),
}

impl WatchUpdate {
    /// Whether it is the last update: the run has ended.
    #[must_use]
    pub fn is_last(&self) -> bool {
        match self {
            Self::Event(_) => false,
            Self::Status(status) => is_end(status),
        }
    }
}

impl Client {
    /// A run's events after `after_seq` and its status changes, as they happen, until the run has
    /// ended.
    ///
    /// A lost connection is resumed, at another node if necessary: no event is lost or repeated.
    /// The stream ends with an error if the run does not exist, or if no node serves for the
    /// client's timeout. The timeout does not limit the run itself.
    #[must_use]
    pub fn watch_run(
        &self,
        mut request: v1::WatchRunRequest,
    ) -> BoxStream<'static, Result<WatchUpdate, ClientError>> {
        request.prepare(self.namespace());
        try_unfold(Watch::new(self.clone(), request), |mut watch| async move {
            Ok(watch.next().await?.map(|update| (update, watch)))
        })
        .boxed()
    }

    /// Waits until a run has ended and returns how it ended, at most until the deadline, if there
    /// is one. `observe` receives the updates meanwhile.
    ///
    /// # Errors
    /// Those of [`Self::watch_run`], and `Retryable` with the code `wait_timeout` if the deadline
    /// passes; the run continues. A failed run is not an error.
    pub async fn wait_for_run(
        &self,
        run_id: &str,
        deadline: Option<Instant>,
        mut observe: impl FnMut(&WatchUpdate),
    ) -> Result<v1::RunStatusChange, ClientError> {
        let mut status = None;
        let end = self.last_status(run_id, |update| {
            if let WatchUpdate::Status(change) = update {
                status = Some(change.status());
            }
            observe(update);
        });
        let Some(deadline) = deadline else {
            return end.await;
        };
        match timeout_at(deadline, end).await {
            Ok(end) => end,
            Err(_elapsed) => Err(unfinished(run_id, status)),
        }
    }

    /// Starts a run and waits until it has ended, in one call, at most until the deadline, if there
    /// is one. If the call ends before the run, it continues as [`Self::wait_for_run`].
    ///
    /// # Errors
    /// Those of [`Self::start_run`] and of [`Self::wait_for_run`]. A failed run is not an error.
    pub async fn start_and_wait(
        &self,
        mut request: v1::StartRunRequest,
        deadline: Option<Instant>,
    ) -> Result<(v1::StartRunResponse, v1::RunStatusChange), ClientError> {
        request.wait = true;
        let mut started = self.start_run(request).await?;
        let end = match started.end.take() {
            Some(end) => end,
            None => self.wait_for_run(&started.run_id, deadline, |_| {}).await?,
        };
        Ok((started, end))
    }

    async fn last_status(
        &self,
        run_id: &str,
        mut observe: impl FnMut(&WatchUpdate),
    ) -> Result<v1::RunStatusChange, ClientError> {
        let mut updates = self.watch_run(v1::WatchRunRequest {
            run_id: run_id.to_owned(),
            ..v1::WatchRunRequest::default()
        });
        while let Some(update) = updates.try_next().await? {
            observe(&update);
            match update {
                WatchUpdate::Status(change) if is_end(&change) => return Ok(change),
                WatchUpdate::Status(_) | WatchUpdate::Event(_) => {}
            }
        }
        let message = "expected a watch to end with the run's last status, but it did not";
        Err(ClientError::new(ClientCode::WatchEnded, message))
    }
}

struct Watch {
    client: Client,
    /// Invariant: `after_seq` is the last event that was returned.
    request: v1::WatchRunRequest,
    stream: Option<OpenCall<Streaming<v1::WatchRunResponse>>>,
    /// The last status that was returned.
    status: Option<v1::RunStatusChange>,
    /// When the first stream was lost since the last message.
    lost: Option<Instant>,
    backoff: Backoff,
}

impl Watch {
    fn new(client: Client, request: v1::WatchRunRequest) -> Self {
        Self {
            client,
            request,
            stream: None,
            status: None,
            lost: None,
            backoff: Backoff::default(),
        }
    }

    async fn next(&mut self) -> Result<Option<WatchUpdate>, ClientError> {
        if self.status.as_ref().is_some_and(is_end) {
            return Ok(None);
        }
        loop {
            let OpenCall { position, answer } = self.stream().await?;
            let position = *position;
            let failure = match answer.message().await {
                Ok(Some(response)) => {
                    self.lost = None;
                    self.backoff.reset();
                    if let Some(update) = response.update.and_then(|update| self.admit(update)) {
                        return Ok(Some(update));
                    }
                    continue;
                }
                Ok(None) => {
                    let message = "expected the run's end, but the stream ended before it";
                    let failure = Failure::stream_lost(message);
                    self.client.note_failure(position, &failure);
                    failure
                }
                Err(status) => {
                    let namespace = Some(&*self.request.namespace);
                    self.client.note_status_in(namespace, position, &status)
                }
            };
            self.lose(failure).await?;
        }
    }

    /// Filters out updates that were returned before.
    fn admit(&mut self, update: Update) -> Option<WatchUpdate> {
        match update {
            Update::Event(event) if event.seq <= self.request.after_seq => None,
            Update::Event(event) => {
                self.request.after_seq = event.seq;
                Some(WatchUpdate::Event(event))
            }
            Update::Status(status) if self.has_passed_on(&status) => None,
            Update::Status(status) => {
                self.status = Some(status.clone());
                Some(WatchUpdate::Status(status))
            }
        }
    }

    /// Whether the status was returned before, or is older and comes from a node that lags.
    fn has_passed_on(&self, status: &v1::RunStatusChange) -> bool {
        self.status
            .as_ref()
            .is_some_and(|last| last.seq > status.seq || last == status)
    }

    async fn stream(
        &mut self,
    ) -> Result<&mut OpenCall<Streaming<v1::WatchRunResponse>>, ClientError> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                self.client
                    .open(&self.request, |channel, request| async move {
                        let client = WorkflowServiceClient::new(channel);
                        client
                            .max_decoding_message_size(REPLY_BYTES_MAX)
                            .watch_run(request)
                            .await
                    })
                    .await?
            }
        };
        Ok(self.stream.insert(stream))
    }

    /// Waits before the stream is opened again, unless a retry is pointless.
    async fn lose(&mut self, failure: Failure) -> Result<(), ClientError> {
        self.stream = None;
        // A run that has waited for long has sent nothing for as long.
        let lost = *self.lost.get_or_insert_with(Instant::now);
        if lost.elapsed() >= self.client.timeout() || failure.verdict == Verdict::Final {
            return Err(failure.error);
        }
        sleep(self.backoff.next_delay()).await;
        Ok(())
    }
}

fn unfinished(run_id: &str, status: Option<v1::RunStatus>) -> ClientError {
    let found = match status.and_then(PublishedName::published_name) {
        Some(status) => format!("it is still {status}"),
        None => "no node reported its status".to_owned(),
    };
    let message = format!("expected run {run_id} to end before the deadline, but {found}");
    ClientError::new(ClientCode::WaitTimeout, message)
        .with_hint("the run continues: check its status or wait again")
}

fn is_end(status: &v1::RunStatusChange) -> bool {
    match status.status() {
        v1::RunStatus::Completed
        | v1::RunStatus::Failed
        | v1::RunStatus::Cancelled
        | v1::RunStatus::TimedOut => true,
        v1::RunStatus::Unspecified
        | v1::RunStatus::Pending
        | v1::RunStatus::Running
        | v1::RunStatus::Waiting => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ClientOptions;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_run_that_has_waited_for_long_is_watched_at_another_node() {
        let client = Client::connect(ClientOptions::default()).expect("well-formed");
        let timeout = client.timeout();
        let mut watch = Watch::new(client, v1::WatchRunRequest::default());
        let mut lose = async || watch.lose(Failure::stream_lost("expected an update")).await;
        tokio::time::advance(Duration::from_secs(3_600)).await;
        assert_eq!(lose().await, Ok(()), "nothing has failed before");
        tokio::time::advance(timeout / 2).await;
        assert_eq!(lose().await, Ok(()));
        tokio::time::advance(timeout / 2).await;
        let error = lose()
            .await
            .expect_err("no node has served for the timeout");
        assert_eq!(error.code(), "stream_lost");
    }
}
