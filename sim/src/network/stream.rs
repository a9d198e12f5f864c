//! A stream of questions and answers over one connection.

use super::{Network, Process, Route};
use flotilla_replica::{Answers, PeerError, PeerResult, Requests};
use futures::future::BoxFuture;
use futures::stream::{Stream, StreamExt};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_stream::wrappers::ReceiverStream;

/// Messages that have arrived and that the process has not taken; more break the connection.
const ARRIVED_MAX: usize = 65_536;

/// How a process answers a stream of questions.
pub(super) type Open<Q, A> = fn(Process, Requests<Q>) -> BoxFuture<'static, PeerResult<Answers<A>>>;

impl Network {
    /// Opens a connection, sends the questions, and returns the answers once the process has taken it.
    pub(super) async fn stream<Q: Send + 'static, A: Send + 'static>(
        &self,
        route: Route,
        mut questions: Requests<Q>,
        open: Open<Q, A>,
    ) -> PeerResult<Answers<A>> {
        let line = Line::new(self);
        let (question_sender, question_receiver) = mpsc::channel(ARRIVED_MAX);
        let (answer_sender, answer_receiver) = mpsc::channel(ARRIVED_MAX);
        let (opened_sender, opened) = oneshot::channel();
        let mut forth = Pipe::new(route, (question_sender, &line));
        let mut back = Pipe::new(route.back(), (answer_sender, &line));
        let network = self.clone();
        forth.carry(move || {
            let Some(process) = network.process(route.to) else {
                let refused = PeerError::Unreachable("nobody serves there".to_owned());
                return drop(opened_sender.send(Err(refused)));
            };
            let handle = process.handle.clone();
            handle.spawn(async move {
                let questions: Requests<Q> = Box::pin(ReceiverStream::new(question_receiver));
                match open(process, questions).await {
                    Ok(mut answers) => {
                        back.carry(move || drop(opened_sender.send(Ok(()))));
                        while let Some(answer) = answers.next().await {
                            back.send(answer);
                        }
                    }
                    Err(error) => back.carry(move || drop(opened_sender.send(Err(error)))),
                }
            });
        });
        let pump = tokio::spawn(async move {
            while let Some(question) = questions.next().await {
                forth.send(question);
            }
        });
        // Whoever drops the answers, or gives up before they come, closes the connection.
        let guard = Closing(pump.abort_handle());
        let lost = || PeerError::Failed("the connection was lost".to_owned());
        opened.await.map_err(|_| lost())??;
        let answers = ReceiverStream::new(answer_receiver);
        Ok(Box::pin(Guarded { answers, guard }))
    }
}

/// A connection: once a message on it is lost nothing more arrives in either direction, and after a
/// silence both ends learn it.
struct Line {
    network: Network,
    is_broken: AtomicBool,
    /// What tells the ends.
    ends: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl Line {
    fn new(network: &Network) -> Arc<Self> {
        Arc::new(Self {
            network: network.clone(),
            is_broken: AtomicBool::new(false),
            ends: Mutex::default(),
        })
    }

    fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    fn add_end(&self, end: impl FnOnce() + Send + 'static) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.push(Box::new(end));
    }

    fn break_down(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        for end in ends.drain(..) {
            self.network.at(self.network.silence_ms(), end);
        }
    }
}

/// One direction of a connection: what is sent arrives in order.
struct Pipe<T: Send + 'static> {
    line: Arc<Line>,
    route: Route,
    arrived: Arrived<T>,
    last_ms: u64,
}

/// Where messages arrive, as long as the connection lasts.
type Arrived<T> = Arc<Mutex<Option<mpsc::Sender<T>>>>;

impl<T: Send + 'static> Pipe<T> {
    fn new(route: Route, (arrived, line): (mpsc::Sender<T>, &Arc<Line>)) -> Self {
        let arrived = Arc::new(Mutex::new(Some(arrived)));
        let end = Arc::clone(&arrived);
        line.add_end(move || close(&end));
        Self {
            line: Arc::clone(line),
            route,
            arrived,
            last_ms: 0,
        }
    }

    fn send(&mut self, message: T) {
        let arrived = Arc::clone(&self.arrived);
        self.carry(move || {
            let sender = arrived
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            if sender.is_some_and(|sender| sender.try_send(message).is_err()) {
                close(&arrived);
            }
        });
    }

    /// Has something done at the other end, behind all that was sent before.
    fn carry(&mut self, delivery: impl FnOnce() + Send + 'static) {
        if self.line.is_broken() {
            return;
        }
        let network = &self.line.network;
        match network.arrival_ms(self.route) {
            Some(arrival_ms) => {
                self.last_ms = self.last_ms.max(arrival_ms);
                network.at(self.last_ms, delivery);
            }
            None => {
                self.line.break_down();
                // Kept for as long: what waits for it must not learn it sooner.
                network.at(network.silence_ms(), move || drop(delivery));
            }
        }
    }
}

impl<T: Send + 'static> Drop for Pipe<T> {
    /// The other end learns of the end in order, if it does not learn of a loss.
    fn drop(&mut self) {
        let arrived = Arc::clone(&self.arrived);
        self.carry(move || close(&arrived));
    }
}

fn close<T>(arrived: &Arrived<T>) {
    let sender = arrived
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    drop(sender);
}

struct Closing(AbortHandle);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Answers that close their connection when nobody wants more.
struct Guarded<A> {
    answers: ReceiverStream<PeerResult<A>>,
    guard: Closing,
}

impl<A: Send + 'static> Stream for Guarded<A> {
    type Item = PeerResult<A>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.answers).poll_next(context);
        if matches!(next, Poll::Ready(None)) {
            self.guard.0.abort();
        }
        next
    }
}
