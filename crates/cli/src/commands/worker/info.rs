//! `flo worker info`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::WorkerView;
use clap::Args;
use flotilla_client::v1::GetWorkerRequest;

/// Show a worker, with the counts of its processes, as JSON
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo worker info host-1f3a")]
pub(crate) struct Info {
    /// Id of the worker
    id: String,
}

impl Info {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetWorkerRequest {
            worker_id: self.id,
            ..GetWorkerRequest::default()
        };
        let worker = session.client()?.get_worker(request).await?;
        session.output.document(&WorkerView::from(worker))
    }
}
