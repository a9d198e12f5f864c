//! `flo stream group create`.

use super::Named;
use crate::commands::created;
use crate::failure::Failure;
use crate::session::Session;
use clap::{Args, ValueEnum};
use flotilla_client::v1::{CreateGroupRequest, GroupMode, GroupSettings};

const EXAMPLES: &str = "\
Examples:
  flo stream group create orders billing
  flo stream group create orders audit --mode key_shared --start '$' --max-deliveries 3";

/// Create a consumer group of a stream
///
/// Each record is delivered to one consumer, and again if that consumer does not acknowledge it in
/// time. After too many deliveries the record goes to the stream STREAM.GROUP.dlq. Workers that
/// join a missing group create it with the defaults.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Create {
    #[command(flatten)]
    named: Named,

    /// How records are distributed to consumers
    #[arg(long, value_enum, default_value_t = Mode::Shared)]
    mode: Mode,

    /// Where to start: a record id, `0-0` for the oldest record, `$` for new records only
    #[arg(long, value_name = "ID", default_value = "0-0")]
    start: String,

    /// Time in milliseconds in which a consumer must acknowledge a record
    #[arg(long, value_name = "N", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
    ack_timeout_ms: u64,

    /// Deliveries before a record goes to the dead-letter stream; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 10)]
    max_deliveries: u32,
}

/// How a group distributes records (A31).
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Mode {
    /// Each record to any consumer
    Shared,
    /// All records to one consumer, in order
    Exclusive,
    /// Records of one key to one consumer at a time, in order
    KeyShared,
}

impl From<Mode> for GroupMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Shared => Self::Shared,
            Mode::Exclusive => Self::Exclusive,
            Mode::KeyShared => Self::KeyShared,
        }
    }
}

impl Create {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = CreateGroupRequest {
            stream: self.named.stream,
            group: self.named.group.clone(),
            settings: Some(GroupSettings {
                mode: GroupMode::from(self.mode).into(),
                start: self.start,
                ack_timeout_ms: Some(self.ack_timeout_ms),
                max_deliveries: Some(self.max_deliveries),
            }),
            ..CreateGroupRequest::default()
        };
        let response = session.client()?.create_group(request).await?;
        created::say(session, self.named.group, response.created)
    }
}
