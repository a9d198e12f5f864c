//! `flo stream read`.

use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::RecordView;
use clap::Args;
use flotilla_client::v1::ReadRecordsRequest;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  flo stream read orders --limit 100
  flo stream read orders --start 1772357400250-0 --end '$'
  flo stream read orders --start '$' --block-ms 30000  wait for the next record";

/// Print the records of a stream in the order of their ids
///
/// A payload that is JSON is shown as JSON, any other as a string.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Read {
    /// Name of the stream
    name: String,

    /// First record id; `0-0` is the oldest record, `$` means new records only
    #[arg(
        long,
        visible_alias = "page-token",
        value_name = "ID",
        default_value = "0-0"
    )]
    start: String,

    /// Last record id; `$` is the newest
    #[arg(long, value_name = "ID", default_value = "$")]
    end: String,

    /// Only this partition [default: all]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// Maximum number of records
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    /// How long to wait for the first record, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=300_000))]
    block_ms: u64,
}

impl Read {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let ends_at = Instant::now() + Duration::from_millis(self.block_ms);
        let mut request = ReadRecordsRequest {
            stream: self.name.clone(),
            start: self.start,
            end: self.end,
            partition: self.partition,
            limit: self.limit,
            ..ReadRecordsRequest::default()
        };
        let client = session.client()?;
        let response = loop {
            let wait = ends_at.saturating_duration_since(Instant::now());
            request.block_ms = crate::period::millis(wait);
            let client = client.with_timeout(client.timeout() + wait);
            let response = client.read_records(request.clone()).await?;
            if !response.records.is_empty() || Instant::now() >= ends_at {
                break response;
            }
            // A stopping node ends a wait early.
            request.start = response.next_start;
        };
        let records = response.records.into_iter();
        let page = Page {
            items: records
                .map(|record| RecordView::new(&self.name, record))
                .collect(),
            next_page_token: response.has_more.then_some(response.next_start),
        };
        session.output.page(&page)
    }
}
