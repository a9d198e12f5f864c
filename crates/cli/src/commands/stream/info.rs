//! `flo stream info`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::StreamView;
use clap::Args;
use flotilla_client::v1::GetStreamRequest;

/// Show a stream, its limits and its size as JSON
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo stream info orders")]
pub(crate) struct Info {
    /// Name of the stream
    name: String,
}

impl Info {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetStreamRequest {
            name: self.name,
            ..GetStreamRequest::default()
        };
        let stream = session.client()?.get_stream(request).await?;
        session.output.document(&StreamView::from(stream))
    }
}
