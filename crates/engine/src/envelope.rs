//! Envelopes: commands with the actors on whose behalf they are carried out.

use crate::access::Actor;
use crate::codec::{self, DecodeError};
use crate::command::Command;
use serde::{Deserialize, Serialize};

/// A command on its way to the log and in the log: what is asked, and on whose behalf (X20).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnvelope {
    /// On whose behalf the command is carried out.
    pub actor: Actor,
    /// What is asked.
    pub command: Command,
}

impl CommandEnvelope {
    /// Encodes the envelope for forwarding to the leader.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes the output of [`CommandEnvelope::encode`].
    ///
    /// # Errors
    /// [`DecodeError`] for any other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}
