//! A worker of the Rust SDK, for what a command worker cannot answer: error codes and delays.

use crate::wire;
use flotilla_client::{
    ActionContext, ActionResult, Client, ClientError, ClientOptions, HandlerError, Worker,
};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running worker for one action.
pub(crate) struct SdkWorker {
    runtime: Runtime,
    stop: CancellationToken,
    running: JoinHandle<Result<(), ClientError>>,
}

impl SdkWorker {
    /// Starts it, and waits until it can get tasks.
    pub(crate) fn start<H>(endpoint: String, action: &str, handle: H) -> Self
    where
        H: Fn(&ActionContext) -> Result<ActionResult, HandlerError> + Send + Sync + 'static,
    {
        let runtime = wire::runtime();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let ready = Arc::new(Notify::new());
        let signal = ready.clone();
        let action = action.to_owned();
        let handle = Arc::new(handle);
        let running = runtime.spawn(async move {
            let client = Client::connect(ClientOptions {
                endpoints: vec![endpoint],
                ..ClientOptions::default()
            });
            let worker = Worker::builder(client?)
                .worker_id("sdk")
                .on_ready(move || signal.notify_one())
                .action(action, move |context| {
                    let handle = handle.clone();
                    async move { handle(&context) }
                })
                .build()?;
            worker.run(async move { stopped.cancelled().await }).await
        });
        runtime.block_on(ready.notified());
        Self {
            runtime,
            stop,
            running,
        }
    }

    /// Drains it, and waits until it has ended.
    pub(crate) fn drain(self) {
        self.stop.cancel();
        let ended = self.runtime.block_on(self.running);
        ended
            .expect("a worker does not panic")
            .expect("a worker drains");
    }
}
