//! `flo stream create`.

use crate::commands::created;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{CreateStreamRequest, Retention};

const EXAMPLES: &str = "\
Examples:
  flo stream create orders
  flo stream create orders --partitions 8 --max-age-ms 604800000 --max-records 1000000";

/// Create a stream; the first append to one does so too
///
/// Records go when a limit says so, the oldest first, but not before an enabled trigger has consumed
/// them, unless the stream reaches its hard limit.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Create {
    /// The stream's name
    name: String,

    /// How many partitions it has for good: records of one key share one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    partitions: u32,

    /// Keep at most so many records [default: no limit]
    #[arg(long, value_name = "N")]
    max_records: Option<u64>,

    /// Keep none that is older [default: no limit]
    #[arg(long, value_name = "N")]
    max_age_ms: Option<u64>,

    /// Keep at most so many bytes [default: no limit]
    #[arg(long, value_name = "N")]
    max_bytes: Option<u64>,

    /// The hard limit in bytes, unconsumed records included [default: 1 GiB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    hard_max_bytes: Option<u64>,
}

impl Create {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = CreateStreamRequest {
            name: self.name.clone(),
            partitions: self.partitions,
            retention: Some(Retention {
                records_max: self.max_records,
                age_ms_max: self.max_age_ms,
                bytes_max: self.max_bytes,
            }),
            hard_bytes_max: self.hard_max_bytes,
            ..CreateStreamRequest::default()
        };
        let response = session.client()?.create_stream(request).await?;
        created::say(session, self.name, response.created)
    }
}
