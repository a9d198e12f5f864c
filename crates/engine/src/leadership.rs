//! What a new leader says first (A4).

use crate::limits::LEADER_GRACE_MS;
use crate::reply::Reply;
use crate::tables::Cluster;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Begins a leader's term: every lease and every worker's health gets 10 s of grace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginTerm {}

pub(crate) fn begin_term(turn: &mut Turn<'_, '_>, _: &BeginTerm) -> Outcome<Reply> {
    let mut cluster = turn.cluster()?;
    cluster.grace_until_ms = turn.now_ms() + LEADER_GRACE_MS;
    turn.put::<Cluster>(&(), cluster);
    Ok(Reply::Done)
}
