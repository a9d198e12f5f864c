//! One call: attempts at one node after another until a response is final.

use crate::client::Client;
use crate::error::ClientError;
use crate::failure::{self, Blame, Failure};
use crate::nodes::PickedNode;
use crate::retry::{Intent, Retry};
use tokio::time::{sleep, timeout_at};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// The maximum response size: a run's status contains the outputs of all its steps.
pub(crate) const REPLY_BYTES_MAX: usize = 64 << 20;

/// An open response stream. If it breaks, the node matters.
#[derive(Debug)]
pub(crate) struct OpenCall<A> {
    /// The position of the node that answered.
    pub(crate) position: usize,
    /// Its response.
    pub(crate) answer: A,
}

impl Client {
    /// Sends a request until a response is final, with the caller's deadline for the server.
    pub(crate) async fn call<Q, A, S, F>(
        &self,
        intent: Intent,
        request: Q,
        send: S,
    ) -> Result<A, ClientError>
    where
        Q: Clone,
        S: Fn(Channel, Request<Q>) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let retry = Retry::new(self.bounds(intent));
        let deadline = retry.deadline();
        let attempt = |channel| {
            let mut request = self.request(request.clone());
            request.set_timeout(deadline.saturating_duration_since(tokio::time::Instant::now()));
            send(channel, request)
        };
        Ok(self.attempts(retry, attempt).await?.answer)
    }

    /// Opens a response stream. The caller's timeout applies only to the opening: the server gets
    /// no deadline, because the stream lasts.
    pub(crate) async fn open<Q, A, S, F>(
        &self,
        request: Q,
        send: S,
    ) -> Result<OpenCall<A>, ClientError>
    where
        Q: Clone,
        S: Fn(Channel, Request<Q>) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let retry = Retry::new(self.bounds(Intent::Read));
        self.attempts(retry, |channel| {
            send(channel, self.request(request.clone()))
        })
        .await
    }

    async fn attempts<A, S, F>(&self, mut retry: Retry, send: S) -> Result<OpenCall<A>, ClientError>
    where
        S: Fn(Channel) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        loop {
            let PickedNode {
                position,
                address,
                channel,
            } = self.nodes().pick();
            retry.begin_attempt(address);
            let answer = timeout_at(retry.deadline(), send(channel)).await;
            let status = match answer {
                Err(_elapsed) => {
                    self.nodes().mark_not_serving(position);
                    return Err(retry.timed_out());
                }
                Ok(Ok(response)) => {
                    self.nodes().mark_served(position);
                    self.nodes().learn_leader(response.metadata());
                    return Ok(OpenCall {
                        position,
                        answer: response.into_inner(),
                    });
                }
                Ok(Err(status)) => status,
            };
            let failure = self.note_status(position, &status);
            tracing::debug!(error = %failure.error, verdict = ?failure.verdict, "a call failed");
            sleep(retry.after(failure, self.nodes().count())?).await;
        }
    }

    /// Judges a failed attempt and records what it reveals about the nodes.
    pub(crate) fn note_status(&self, position: usize, status: &Status) -> Failure {
        let finding = self.nodes().finding(position);
        let failure = match finding.filter(|finding| failure::explains(finding, status)) {
            Some(finding) => Failure::unsafe_connection(&finding, &self.nodes().address(position)),
            None => Failure::from_status(status, &self.nodes().address(position)),
        };
        self.note_failure(position, &failure);
        self.nodes().learn_leader(status.metadata());
        failure
    }

    /// Records what a failed attempt reveals about the node.
    pub(crate) fn note_failure(&self, position: usize, failure: &Failure) {
        match failure.blame {
            Blame::Connection => self.nodes().mark_unreachable(position),
            Blame::Node => self.nodes().mark_not_serving(position),
            Blame::Nobody => {}
        }
    }
}
