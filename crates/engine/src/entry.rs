//! A log entry: a batch of commands under one stamp (design rules 1–3).

use crate::codec::{self, DecodeError};
use crate::envelope::CommandEnvelope;
use crate::offer::Offer;
use crate::persisted::{OneVersion, OneVersionRef};
use crate::stamp::Stamp;
use serde::{Deserialize, Serialize};

/// A slot of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The entry's time, seed and leader.
    pub stamp: Stamp,
    /// The polls that were open at the time of proposal.
    pub offers: Vec<Offer>,
    /// The commands, applied in order.
    pub commands: Vec<CommandEnvelope>,
}

impl Entry {
    /// Encodes the entry for the log.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(&OneVersionRef::V1(self))
    }

    /// Decodes the output of [`Entry::encode`].
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that no version known to this build has written: the process must exit (design rule
    /// 12).
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let OneVersion::V1(entry) = codec::decode(bytes)?;
        Ok(entry)
    }
}
