//! Deleting a key (A40).

use super::{live, remove};
use crate::ids::{KvKey, Namespace};
use crate::reply::Deleted;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Deletes a key. Deleting a missing key succeeds; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteKey {
    /// The key.
    pub key: KvKey,
}

impl DeleteKey {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<Deleted> {
        let key = (namespace.clone(), self.key.clone());
        let is_found = live(turn, &key)?.is_some();
        remove(turn, &key)?;
        Ok(Deleted { is_found })
    }
}
