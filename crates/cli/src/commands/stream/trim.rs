//! `flo stream trim`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::TrimStreamRequest;
use flotilla_client::v1::trim_stream_request::To;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo stream trim orders --keep 1000
  flo stream trim orders --before 1772357400250-0";

/// Delete the oldest records of a stream, including those that a trigger has not consumed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Trim {
    /// Name of the stream
    name: String,

    #[command(flatten)]
    to: Target,
}

/// Which records are kept.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// Keep this many of the newest records
    #[arg(long, value_name = "N")]
    keep: Option<u64>,

    /// Delete records with a smaller id
    #[arg(long, value_name = "ID")]
    before: Option<String>,
}

#[derive(Debug, Serialize)]
struct TrimmedView {
    name: String,
    trimmed: bool,
}

impl Trim {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let keep = self.to.keep.map(To::KeepRecords);
        let request = TrimStreamRequest {
            name: self.name.clone(),
            to: keep.or_else(|| self.to.before.map(To::BeforeId)),
            ..TrimStreamRequest::default()
        };
        session.client()?.trim_stream(request).await?;
        let view = TrimmedView {
            name: self.name,
            trimmed: true,
        };
        session
            .output
            .value(&view, |view| format!("{} trimmed", view.name))
    }
}
