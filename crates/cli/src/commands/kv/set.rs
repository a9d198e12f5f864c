//! `flo kv set`.

use crate::argument_source;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::SetKeyRequest;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo kv set config/limit 100
  flo kv set locks/import ada --if-absent --ttl-ms 60000
  flo kv set config/limit 200 --if-version 7
  printf '@ada' | flo kv set handle -";

/// Set the value of a key
///
/// If a condition does not hold, the command exits with 3 and changes nothing.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Set {
    /// Key to set
    key: String,

    /// Value, at most 64 KiB: any text, @FILE, or - for stdin
    #[arg(value_name = "VALUE|@FILE|-")]
    value: String,

    /// Only if the key does not exist
    #[arg(long, conflicts_with = "if_version")]
    if_absent: bool,

    /// Only if the key has this version
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,

    /// Lifetime in milliseconds; a set without it never expires [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ttl_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct SetView {
    key: String,
    version: u64,
}

impl Set {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = SetKeyRequest {
            key: self.key.clone(),
            value: argument_source::read(&self.value)?,
            if_absent: self.if_absent,
            if_version: self.if_version,
            ttl_ms: self.ttl_ms,
            ..SetKeyRequest::default()
        };
        let response = session.client()?.set_key(request).await?;
        let view = SetView {
            key: self.key,
            version: response.version,
        };
        session.output.value(&view, |view| {
            format!("{} version {}", view.key, view.version)
        })
    }
}
