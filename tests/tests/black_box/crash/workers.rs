//! The workers: three in this process, one for each node.

use super::orders;
use flotilla_client::{
    ActionContext, ActionResult, Client, ClientError, ClientOptions, HandlerError, Worker,
};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The running workers.
pub(crate) struct Workers {
    stop: CancellationToken,
    workers: Vec<JoinHandle<Result<(), ClientError>>>,
    log: Arc<FailureLog>,
}

/// How often each action of each order has failed, by every worker together.
#[derive(Debug, Default)]
struct FailureLog {
    failures: Mutex<BTreeMap<(String, u64), u64>>,
}

#[derive(Deserialize)]
struct Input {
    order: u64,
}

impl Workers {
    /// Starts workers and waits until they can get tasks.
    pub(crate) async fn start(endpoints: &[String]) -> Self {
        let mut workers = Self {
            stop: CancellationToken::new(),
            workers: Vec::new(),
            log: Arc::default(),
        };
        for turn in 0..endpoints.len() {
            let mut endpoints = endpoints.to_vec();
            endpoints.rotate_left(turn);
            workers.hire_one(turn, endpoints).await;
        }
        workers
    }

    /// How many attempts failed on purpose.
    pub(crate) fn failures(&self) -> u64 {
        let failures = self.log.failures.lock().expect("counting does not panic");
        failures.values().sum()
    }

    /// Lets the workers finish their tasks and stop.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        for worker in self.workers {
            let ended = worker.await.expect("a worker does not panic");
            ended.expect("a worker outlives every fault");
        }
    }

    async fn hire_one(&mut self, number: usize, endpoints: Vec<String>) {
        let client = Client::connect(ClientOptions {
            endpoints,
            ..ClientOptions::default()
        });
        let ready = Arc::new(Notify::new());
        let signal = ready.clone();
        let mut builder = Worker::builder(client.expect("the addresses are well-formed"))
            .worker_id(format!("worker-{number}"))
            .concurrency(8)
            .on_ready(move || signal.notify_one());
        for name in ["price-parcel", "pack-parcel", "ship-parcel"] {
            let log = self.log.clone();
            builder = builder.action(name, move |context| handle(context, log.clone()));
        }
        let worker = builder.build().expect("the settings are valid");
        let stop = self.stop.clone();
        let running = worker.run(async move { stop.cancelled().await });
        self.workers.push(tokio::spawn(running));
        ready.notified().await;
    }
}

async fn handle(
    context: ActionContext,
    log: Arc<FailureLog>,
) -> Result<ActionResult, HandlerError> {
    let Input { order } = context.json()?;
    // Work takes a moment, so that nodes are killed in the middle of it.
    tokio::time::sleep(Duration::from_millis(order % 30)).await;
    log.fail_at_first(context.action_name(), order)?;
    let price = orders::price(order);
    Ok(ActionResult::success(match context.action_name() {
        "price-parcel" => json!({"price": price}),
        "pack-parcel" => json!({"boxes": orders::boxes(order)}),
        _ => json!({"label": format!("parcel {order} for {price}")}),
    }))
}

impl FailureLog {
    /// Fails the first attempts of some orders.
    fn fail_at_first(&self, action: &str, order: u64) -> Result<(), HandlerError> {
        let mut failures = self.failures.lock().expect("counting does not panic");
        let count = failures.entry((action.to_owned(), order)).or_default();
        if *count >= orders::failures(order) {
            return Ok(());
        }
        *count += 1;
        Err(HandlerError::retry(format!(
            "attempt {count} of {action} fails"
        )))
    }
}
