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
  flo stream group create orders audit --mode key_shared --start '$' --max-deliver 3";

/// Create a consumer group of a stream
///
/// Each record goes to one consumer, which acknowledges it in time or gets it again. A record that
/// was delivered too often goes to the stream STREAM.GROUP.dlq. Workers that join a missing group
/// create it with the defaults.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Create {
    #[command(flatten)]
    named: Named,

    /// How records are spread
    #[arg(long, value_enum, default_value_t = Mode::Shared)]
    mode: Mode,

    /// Where it begins: an id, `0-0` for the oldest record, `$` for what comes later
    #[arg(long, value_name = "ID", default_value = "0-0")]
    start: String,

    /// How long a consumer has to acknowledge
    #[arg(long, value_name = "N", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
    ack_timeout_ms: u64,

    /// Deliveries before a record goes to the dead-letter stream; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 10)]
    max_deliver: u32,
}

/// How a group spreads records (A31).
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
                deliveries_max: Some(self.max_deliver),
            }),
            ..CreateGroupRequest::default()
        };
        let response = session.client()?.create_group(request).await?;
        created::say(session, self.named.group, response.created)
    }
}
