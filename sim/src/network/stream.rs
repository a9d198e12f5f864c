//! A stream of requests and responses over one connection.

use super::{Network, Process, Route};
use flotilla_replica::{PeerError, PeerResult, Requests, Responses};
use futures::future::BoxFuture;
use futures::stream::{Stream, StreamExt};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_stream::wrappers::ReceiverStream;

/// How many messages may wait for the process; more break the connection.
const ARRIVED_MAX: usize = 65_536;

/// How a process handles a stream of requests.
pub(crate) type Open<Q, A> =
    fn(Process, Requests<Q>) -> BoxFuture<'static, PeerResult<Responses<A>>>;

impl Network {
    /// Opens a connection, sends the requests, and returns the responses once the process has accepted it.
    pub(crate) async fn stream<Q: Send + 'static, A: Send + 'static>(
        &self,
        route: Route,
        mut questions: Requests<Q>,
        open: Open<Q, A>,
    ) -> PeerResult<Responses<A>> {
        let line = Line::new(self);
        let (question_sender, question_receiver) = mpsc::channel(ARRIVED_MAX);
        let (answer_sender, answer_receiver) = mpsc::channel(ARRIVED_MAX);
        let (opened_sender, opened) = oneshot::channel();
        let mut forth = Pipe::new(route, question_sender, &line);
        let mut back = Pipe::new(route.back(), answer_sender, &line);
        let network = self.clone();
        forth.carry(move || {
            let Some(process) = network.process(route.to) else {
                let refused = PeerError::Unreachable("no process serves there".to_owned());
                return drop(opened_sender.send(Err(refused)));
            };
            let handle = process.handle.clone();
            handle.spawn(async move {
                let questions: Requests<Q> = Box::pin(ReceiverStream::new(question_receiver));
                match open(process, questions).await {
                    Ok(mut responses) => {
                        back.carry(move || drop(opened_sender.send(Ok(()))));
                        while let Some(answer) = responses.next().await {
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
        // If the responses are dropped, or the caller gives up before they come, the connection closes.
        let guard = Closing(pump.abort_handle());
        let lost = || PeerError::Failed("the connection was lost".to_owned());
        opened.await.map_err(|_| lost())??;
        let responses = ReceiverStream::new(answer_receiver);
        Ok(Box::pin(Guarded { responses, guard }))
    }
}

/// A connection: once a message on it is lost, nothing more arrives in either direction, and after a
/// silence both ends notice it.
struct Line {
    network: Network,
    is_broken: AtomicBool,
    /// Notifies the ends.
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

/// One direction of a connection: messages arrive in order.
struct Pipe<T: Send + 'static> {
    line: Arc<Line>,
    route: Route,
    arrived: Arrived<T>,
    last_ms: u64,
}

/// The receiver, as long as the connection lasts.
type Arrived<T> = Arc<Mutex<Option<mpsc::Sender<T>>>>;

impl<T: Send + 'static> Pipe<T> {
    fn new(route: Route, arrived: mpsc::Sender<T>, line: &Arc<Line>) -> Self {
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

    /// Schedules a job at the other end, after all that was sent before.
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
                // Kept for as long: the receiver must not notice it earlier.
                network.at(network.silence_ms(), move || drop(delivery));
            }
        }
    }
}

impl<T: Send + 'static> Drop for Pipe<T> {
    /// The other end sees the end in order, unless it notices a loss first.
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

/// Responses that close their connection when they are dropped.
struct Guarded<A> {
    responses: ReceiverStream<PeerResult<A>>,
    guard: Closing,
}

impl<A: Send + 'static> Stream for Guarded<A> {
    type Item = PeerResult<A>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.responses).poll_next(context);
        if matches!(next, Poll::Ready(None)) {
            self.guard.0.abort();
        }
        next
    }
}
