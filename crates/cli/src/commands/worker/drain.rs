//! `flo worker drain`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::DrainRequest;
use serde::Serialize;

/// Drain a worker: it finishes the tasks that it holds and gets no new ones
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo worker drain host-1f3a")]
pub(crate) struct Drain {
    /// Id of the worker
    id: String,
}

#[derive(Debug, Serialize)]
struct DrainingView {
    worker_id: String,
    status: &'static str,
}

impl Drain {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DrainRequest {
            worker_id: self.id.clone(),
            ..DrainRequest::default()
        };
        session.client()?.drain_worker(request).await?;
        let view = DrainingView {
            worker_id: self.id,
            status: "draining",
        };
        session
            .output
            .value(&view, |view| format!("{} draining", view.worker_id))
    }
}
