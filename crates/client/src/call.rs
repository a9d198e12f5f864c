//! One call: attempts at one node after another until a response is final.
//!
//! A node may be alive and stuck. So a call that waits for long also calls another node, while it
//! still waits for the first one: the first response wins, and the other calls are cancelled. A
//! request that is sent twice has the same id, so the cluster executes it once (design rule 9).

use crate::client::Client;
use crate::error::ClientError;
use crate::failure::{self, Blame, Failure, Verdict};
use crate::nodes::PickedNode;
use crate::pace::Pace;
use crate::requests::Prepare;
use crate::retry::{Intent, REPEATED_FOR_MAX, Retry};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// The code of a rejection because of the time in the request's id.
const REQUEST_TOO_OLD: &str = "request_too_old";

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

/// The nodes that are called at the same time for one call.
struct Race<'c> {
    client: &'c Client,
    /// The namespace in which the request acts; `None` if it acts on the cluster as a whole.
    namespace: Option<&'c str>,
    intent: Intent,
    pace: Pace,
    retry: Retry,
    /// The positions of the nodes that have not responded, in the order of the calls.
    busy: Vec<usize>,
    next: NextCall,
}

/// When another node is called, and why.
#[derive(Clone, Copy, Debug)]
enum NextCall {
    /// No node is called before another one has failed.
    Never,
    /// No node has the request, or one has failed.
    Due(Instant),
    /// The last node takes longer than a healthy one.
    Hedge(Instant),
    /// The last node counts as stuck.
    Stuck(Instant),
}

impl NextCall {
    fn at(self) -> Option<Instant> {
        match self {
            Self::Never => None,
            Self::Due(at) | Self::Hedge(at) | Self::Stuck(at) => Some(at),
        }
    }
}

impl Client {
    /// Sends a request until a response is final, with the caller's deadline for the server.
    pub(crate) async fn call<Q, A, S, F>(
        &self,
        intent: Intent,
        mut request: Q,
        send: S,
    ) -> Result<A, ClientError>
    where
        Q: Clone + Prepare,
        S: Fn(Channel, Request<Q>) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        request.prepare(self.namespace());
        let (started, mut has_own_id) = (Instant::now(), false);
        if let Some(id) = request.id()
            && id.is_empty()
        {
            *id = self.clock().new_request_id();
            has_own_id = true;
        }
        let result = self.call_prepared(intent, &request, &send).await;
        let is_new = has_own_id && started.elapsed() < REPEATED_FOR_MAX;
        match result {
            // No copy of it was or will be applied: it is this machine's clock that is behind, and
            // the rejection has corrected that.
            Err(error) if is_new && error.code() == REQUEST_TOO_OLD => {
                if let Some(id) = request.id() {
                    *id = self.clock().new_request_id();
                }
                self.call_prepared(intent, &request, &send).await
            }
            result => result,
        }
    }

    async fn call_prepared<Q, A, S, F>(
        &self,
        intent: Intent,
        request: &Q,
        send: &S,
    ) -> Result<A, ClientError>
    where
        Q: Clone + Prepare,
        S: Fn(Channel, Request<Q>) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let race = Race::new(self, request.namespace(), intent, request.pace());
        let deadline = race.retry.deadline();
        let attempt = |channel| {
            let mut request = self.request(request.clone());
            request.set_timeout(deadline.saturating_duration_since(Instant::now()));
            send(channel, request)
        };
        Ok(race.run(attempt).await?.answer)
    }

    /// Opens a response stream. The caller's timeout applies only to the opening: the server gets
    /// no deadline, because the stream lasts.
    pub(crate) async fn open<Q, A, S, F>(
        &self,
        request: &Q,
        send: S,
    ) -> Result<OpenCall<A>, ClientError>
    where
        Q: Clone + Prepare,
        S: Fn(Channel, Request<Q>) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let race = Race::new(self, request.namespace(), Intent::Read, request.pace());
        race.run(|channel| send(channel, self.request(request.clone())))
            .await
    }

    /// Judges a failed attempt in the client's namespace and records what it reveals about the nodes.
    pub(crate) fn note_status(&self, position: usize, status: &Status) -> Failure {
        self.note_status_in(Some(self.namespace()), position, status)
    }

    /// The same for an attempt in the given namespace; `None` for the cluster as a whole.
    pub(crate) fn note_status_in(
        &self,
        namespace: Option<&str>,
        position: usize,
        status: &Status,
    ) -> Failure {
        let finding = self.nodes().finding(position);
        let failure = match finding.filter(|finding| failure::explains(finding, status)) {
            Some(finding) => Failure::unsafe_connection(&finding, &self.nodes().address(position)),
            None => Failure::from_status(status, &self.nodes().address(position)),
        };
        self.note_failure(position, &failure);
        self.nodes().learn_leader(namespace, status.metadata());
        if failure.error.code() == REQUEST_TOO_OLD {
            self.clock().learn(status);
        }
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

/// Waits until `at`. Timers have whole milliseconds: one for a time that has come would still wait for the next.
async fn reached(at: Instant) {
    if at > Instant::now() {
        sleep_until(at).await;
    }
}

impl<'c> Race<'c> {
    fn new(client: &'c Client, namespace: Option<&'c str>, intent: Intent, pace: Pace) -> Self {
        if intent == Intent::Read {
            client.hedges().earn();
        }
        Self {
            client,
            namespace,
            intent,
            pace,
            retry: Retry::new(client.bounds(intent)),
            busy: Vec::new(),
            next: NextCall::Due(Instant::now()),
        }
    }

    async fn run<A, S, F>(mut self, send: S) -> Result<OpenCall<A>, ClientError>
    where
        S: Fn(Channel) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let deadline = self.retry.deadline();
        let mut calls = FuturesUnordered::new();
        loop {
            let next = self.next.at();
            tokio::select! {
                biased;
                Some((position, result)) = calls.next() => match result {
                    Ok(response) => return Ok(self.finish(position, response)),
                    Err(status) => self.fail(position, &status)?,
                },
                () = sleep_until(deadline) => {
                    self.avoid(&self.busy);
                    return Err(self.retry.timed_out());
                }
                () = reached(next.unwrap_or(deadline)), if next.is_some() => {
                    if let Some(node) = self.next_node() {
                        let (position, call) = (node.position, send(node.channel));
                        calls.push(async move { (position, call.await) });
                    }
                }
            }
        }
    }

    fn finish<A>(&self, position: usize, response: Response<A>) -> OpenCall<A> {
        let mut in_order = self.busy.split(|busy| *busy == position);
        // Even if one of them leads: other calls should not have to find out too.
        self.avoid(in_order.next().unwrap_or_default());
        let nodes = self.client.nodes();
        nodes.mark_served(position);
        nodes.learn_leader(self.namespace, response.metadata());
        OpenCall {
            position,
            answer: response.into_inner(),
        }
    }

    /// These nodes are silent for too long: they are avoided for a while.
    fn avoid(&self, silent: &[usize]) {
        for position in silent {
            self.client.nodes().mark_unreachable(*position);
        }
    }

    /// The next node to call, if there is one; decides when the one after it is called.
    fn next_node(&mut self) -> Option<PickedNode> {
        let (reason, nodes) = (self.next, self.client.nodes());
        if let NextCall::Stuck(_) = reason {
            self.avoid(&self.busy);
        }
        let Some(node) = nodes.pick_besides(self.namespace, &self.busy) else {
            self.next = NextCall::Never;
            return None;
        };
        let now = Instant::now();
        let stuck_at = self.pace.stuck_at(self.intent, now, self.retry.deadline());
        let stuck_at = stuck_at.filter(|at| self.retry.may_repeat(*at));
        self.next = stuck_at.map_or(NextCall::Never, NextCall::Stuck);
        if matches!(reason, NextCall::Hedge(_)) && !self.client.hedges().spend() {
            return None;
        }
        // One hedge is enough: if the second node is slow too, all of them are.
        if self.busy.is_empty()
            && let Some(hedge_at) = self.pace.hedge_at(self.intent, now)
        {
            self.next = NextCall::Hedge(hedge_at);
        }
        self.retry.begin_attempt(node.address.clone());
        self.busy.push(node.position);
        Some(node)
    }

    /// A node has failed: decides when the next one is called.
    ///
    /// # Errors
    /// The error to return, if the response is final or no further call is made or awaited.
    fn fail(&mut self, position: usize, status: &Status) -> Result<(), ClientError> {
        self.busy.retain(|busy| *busy != position);
        let nodes = self.client.nodes();
        let client = self.client;
        let failure = client.note_status_in(self.namespace, position, status);
        tracing::debug!(error = %failure.error, verdict = ?failure.verdict, "a call failed");
        let is_final = failure.verdict == Verdict::Final;
        self.retry.begin_attempt(nodes.address(position));
        self.next = match self.retry.after(failure, nodes.count()) {
            Ok(delay) => NextCall::Due(Instant::now() + delay),
            Err(_) if !is_final && !self.busy.is_empty() => NextCall::Never,
            Err(error) => return Err(error),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::options::ClientOptions;
    use crate::pace::{HEDGE_DELAY, PATIENCE_MIN};
    use futures::FutureExt;
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// A client that no node is connected to: tests respond to its calls.
    fn client(nodes_count: usize) -> Client {
        let endpoints = (1..=nodes_count).map(|number| format!("n{number}:1"));
        Client::connect(ClientOptions {
            endpoints: endpoints.collect(),
            ..ClientOptions::default()
        })
        .expect("well-formed")
    }

    /// The result of a call, how often it was sent and how long it took. Only the last node of
    /// `sent_max` responds.
    async fn race(
        client: &Client,
        (intent, pace): (Intent, Pace),
        sent_max: usize,
    ) -> (Result<usize, ClientError>, Duration) {
        let (sent, started) = (AtomicUsize::new(0), Instant::now());
        let send = |_| {
            let number = sent.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(number <= sent_max, "too many nodes are called");
            async move {
                if number < sent_max {
                    pending::<()>().await;
                }
                Ok(Response::new(number))
            }
        };
        let raced = Race::new(client, None, intent, pace).run(send).await;
        (raced.map(|call| call.answer), started.elapsed())
    }

    #[tokio::test]
    async fn a_call_is_sent_without_waiting_for_a_timer() {
        let client = client(1);
        let send = |_| async { Ok(Response::new(7)) };
        let race = Race::new(&client, None, Intent::Write, Pace::Prompt).run(send);
        let raced = race.now_or_never().expect("its node responds immediately");
        assert_eq!(raced.expect("a response").answer, 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_at_a_silent_node_is_answered_by_another_one() {
        let client = client(3);
        let (answer, time) = race(&client, (Intent::Read, Pace::Prompt), 2).await;
        assert_eq!((answer, time), (Ok(2), HEDGE_DELAY));
        assert_eq!(client.nodes().pick(None).position, 1, "it has just served");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_beyond_the_budget_of_hedges_leaves_a_node_after_a_third_of_its_time() {
        let client = client(3);
        while client.hedges().spend() {}
        let (answer, time) = race(&client, (Intent::Read, Pace::Prompt), 2).await;
        assert_eq!(answer, Ok(2));
        let third = (client.timeout() - HEDGE_DELAY) / 3;
        // Timers have whole milliseconds.
        assert_eq!(time.as_millis(), (HEDGE_DELAY + third).as_millis() + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_waits_is_not_sent_twice_while_it_waits() {
        let client = client(2);
        let wait = Duration::from_secs(4);
        let (answer, time) = race(&client, (Intent::Read, Pace::Waits(wait)), 2).await;
        assert_eq!(answer, Ok(2));
        assert_eq!(time, wait + (client.timeout() - wait) / 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_leaves_a_node_after_half_of_its_time_if_its_repeat_is_recognized() {
        let client = client(2);
        let (answer, time) = race(&client, (Intent::Write, Pace::Prompt), 2).await;
        assert_eq!((answer, time), (Ok(2), client.timeout() / 2));

        let unknown = Pace::Unknown;
        let send = |_| pending::<Result<Response<()>, Status>>();
        let raced = Race::new(&client, None, Intent::Write, unknown)
            .run(send)
            .await;
        let error = raced.expect_err("no node responds");
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Unknown, "timeout")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_node_may_still_respond_first() {
        let client = client(2);
        let sent = AtomicUsize::new(0);
        let send = |_| {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            async move {
                if number > 0 {
                    pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_millis(9_000)).await;
                Ok(Response::new(number))
            }
        };
        let raced = Race::new(&client, None, Intent::Read, Pace::Prompt).run(send);
        assert_eq!(raced.await.expect("in time").answer, 0);
        assert_eq!(sent.into_inner(), 2, "no third node is known");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_fails_while_another_is_silent_is_not_the_end() {
        let client = client(2);
        let sent = AtomicUsize::new(0);
        let send = |_| {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            async move {
                match number {
                    0 => pending().await,
                    1 => Err(Status::unavailable("expected a leader")),
                    _ => Ok(Response::new(number)),
                }
            }
        };
        let raced = Race::new(&client, None, Intent::Read, Pace::Prompt).run(send);
        assert_eq!(raced.await.expect("the node recovers").answer, 2);
        assert!(HEDGE_DELAY < PATIENCE_MIN);
    }
}
