//! `flo stream append`.

use crate::argument_source;
use crate::failure::Failure;
use crate::key_value;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{AppendRecordsRequest, AppendRecordsResponse, NewRecord};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo stream append orders '{\"id\": 7}'
  flo stream append orders '{\"id\": 7}' '{\"id\": 8}' --partition-key ada --header source=web";

/// Append records to a stream, all or none, and print their ids
///
/// Creates the stream if it does not exist.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Append {
    /// Name of the stream
    name: String,

    /// Payload of a record: any text, @FILE, or - for stdin; one record per argument, at most 1000
    #[arg(required = true, value_name = "PAYLOAD|@FILE|-")]
    payloads: Vec<String>,

    /// Partition key; records with the same key keep their order
    #[arg(
        long,
        value_name = "KEY",
        default_value = "",
        hide_default_value = true
    )]
    partition_key: String,

    /// Partition; overrides the partition key
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// Header of each record; repeatable
    #[arg(long = "header", value_name = "KEY=VALUE", value_parser = key_value::parse)]
    headers: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct AppendedView {
    ids: Vec<String>,
}

impl Append {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let record = NewRecord {
            headers: self.headers.into_iter().collect(),
            partition_key: self.partition_key,
            partition: self.partition,
            ..NewRecord::default()
        };
        argument_source::check_stdin(&self.payloads)?;
        let records = self.payloads.iter().map(|payload| {
            Ok(NewRecord {
                payload: argument_source::read(payload)?,
                ..record.clone()
            })
        });
        let request = AppendRecordsRequest {
            stream: self.name,
            records: records.collect::<Result<_, Failure>>()?,
            ..AppendRecordsRequest::default()
        };
        let AppendRecordsResponse { ids } = session.client()?.append_records(request).await?;
        session
            .output
            .value(&AppendedView { ids }, |view| view.ids.join("\n"))
    }
}
