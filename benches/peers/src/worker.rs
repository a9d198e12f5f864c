//! A worker of `flo bench steps` in a separate process, over the Rust SDK.

use crate::fault::Fault;
use clap::Args;
use flotilla_client::{ActionContext, ActionResult, Client, ClientOptions, HandlerError, Worker};
use serde::Deserialize;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};

/// Serve the steps of `flo bench steps` until SIGTERM
///
/// Prints `ready` when it can get tasks.
#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// The nodes
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', required = true)]
    endpoints: Vec<String>,

    /// The actions to serve
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    actions: Vec<String>,

    /// How many tasks at a time
    #[arg(long, value_name = "N", default_value_t = 256)]
    concurrency: u16,
}

impl WorkerArguments {
    /// Works until it is asked to stop.
    ///
    /// # Errors
    /// If the cluster refuses the worker for good.
    pub(crate) async fn run(self) -> Result<(), Fault> {
        let client = Client::connect(ClientOptions {
            endpoints: self.endpoints,
            ..ClientOptions::default()
        })?;
        let mut builder = Worker::builder(client).concurrency(self.concurrency.into());
        for action in self.actions {
            builder = builder.action(action, step);
        }
        let worker = builder.on_ready(|| println!("ready")).build()?;
        let mut stop = signal(SignalKind::terminate())?;
        let stop = async move {
            let _ = stop.recv().await;
        };
        worker.run(stop).await?;
        Ok(())
    }
}

/// The input and output of a step.
#[derive(Debug, Deserialize)]
struct Counted {
    n: u64,
}

/// Increments the number and adds the time, as the workers of `flo bench steps` do.
async fn step(context: ActionContext) -> Result<ActionResult, HandlerError> {
    let Counted { n } = context.json()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(ActionResult::success_json(format!(
        "{{\"n\":{},\"at\":{}}}",
        n + 1,
        now.as_micros()
    )))
}
