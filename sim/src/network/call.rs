//! A call: a request and its response, each a message.

use super::{Network, Process, Route};
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Why a call has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// No process serves there: it certainly did not arrive.
    Refused,
    /// It may have arrived.
    Lost,
}

/// What a process does with a request; an echo sends it again.
type Ask<T> = Arc<dyn Fn(Process) -> BoxFuture<'static, T> + Send + Sync>;

/// The receiver of the first response.
type Answer<T> = Arc<Mutex<Option<oneshot::Sender<Result<T, CallError>>>>>;

impl Network {
    /// Sends a process a request that may arrive twice, and waits for its response or until it is known
    /// that none will come.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        route: Route,
        ask: impl Fn(Process) -> BoxFuture<'static, T> + Send + Sync + 'static,
    ) -> Result<T, CallError> {
        let ask: Ask<T> = Arc::new(ask);
        if let Some(echo_ms) = self.echo_ms() {
            // No caller waits for the response to an echo.
            self.ask_at(echo_ms, route, Arc::clone(&ask), Answer::default());
        }
        self.ask(route, ask).await
    }

    /// Sends a process a request that arrives at most once.
    pub(crate) async fn call_once<T: Send + 'static>(
        &self,
        route: Route,
        ask: impl Fn(Process) -> BoxFuture<'static, T> + Send + Sync + 'static,
    ) -> Result<T, CallError> {
        self.ask(route, Arc::new(ask)).await
    }

    async fn ask<T: Send + 'static>(&self, route: Route, ask: Ask<T>) -> Result<T, CallError> {
        let (sender, receiver) = oneshot::channel();
        let answer: Answer<T> = Arc::new(Mutex::new(Some(sender)));
        match self.arrival_ms(route) {
            Some(arrival_ms) => self.ask_at(arrival_ms, route, ask, answer),
            None => self.at(self.silence_ms(), move || {
                tell(&answer, Err(CallError::Lost));
            }),
        }
        receiver.await.unwrap_or(Err(CallError::Lost))
    }

    fn ask_at<T: Send + 'static>(&self, due_ms: u64, route: Route, ask: Ask<T>, answer: Answer<T>) {
        let network = self.clone();
        self.at(due_ms, move || {
            let Some(process) = network.process(route.to) else {
                let refused = move || tell(&answer, Err(CallError::Refused));
                let back_ms = network.arrival_ms(route.back());
                network.at(back_ms.unwrap_or_else(|| network.silence_ms()), refused);
                return;
            };
            let handle = process.handle.clone();
            handle.spawn(async move {
                let response = ask(process).await;
                match network.arrival_ms(route.back()) {
                    Some(back_ms) => network.at(back_ms, move || tell(&answer, Ok(response))),
                    None => network.at(network.silence_ms(), move || {
                        tell(&answer, Err(CallError::Lost));
                    }),
                }
            });
        });
    }
}

fn tell<T>(answer: &Answer<T>, response: Result<T, CallError>) {
    let sender = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(sender) = sender {
        // The caller may be gone.
        drop(sender.send(response));
    }
}
