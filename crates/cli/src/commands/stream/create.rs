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

/// Create a stream; the first append to a stream also creates it
///
/// Limits drop the oldest records, but never one that an enabled trigger has not consumed, unless
/// the stream reaches its hard limit.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Create {
    /// Name of the stream
    name: String,

    /// Number of partitions, which cannot change later; records with the same key share a partition
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    partitions: u32,

    /// Maximum number of records [default: no limit]
    #[arg(long, value_name = "N")]
    max_records: Option<u64>,

    /// Maximum age of a record in milliseconds [default: no limit]
    #[arg(long, value_name = "N")]
    max_age_ms: Option<u64>,

    /// Maximum size in bytes [default: no limit]
    #[arg(long, value_name = "N")]
    max_bytes: Option<u64>,

    /// Hard limit in bytes, including unconsumed records [default: 1 GiB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    hard_limit_bytes: Option<u64>,
}

impl Create {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = CreateStreamRequest {
            name: self.name.clone(),
            partitions: self.partitions,
            retention: Some(Retention {
                max_records: self.max_records,
                max_age_ms: self.max_age_ms,
                max_bytes: self.max_bytes,
            }),
            hard_limit_bytes: self.hard_limit_bytes,
            ..CreateStreamRequest::default()
        };
        let response = session.client()?.create_stream(request).await?;
        created::say(session, self.name, response.created)
    }
}
