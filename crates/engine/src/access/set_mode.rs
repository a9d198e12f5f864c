//! Opening and closing a cluster (X1).

use super::actor::Actor;
use super::authority::Authority;
use super::credentials;
use super::mode::AccessMode;
use super::permission::Permission;
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::reply::Done;
use crate::tables::{Access, AccessRecord};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Opens or closes the cluster. From its entry on, commands are judged by the new mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAccessMode {
    /// The new mode.
    pub mode: AccessMode,
}

impl SetAccessMode {
    pub(crate) fn authority<'c>(&'c self, _: &'c CommandScope) -> Authority<'c> {
        Authority::Caller(&[Permission::AccessWrite], &CommandScope::Cluster)
    }

    /// A caller without a credential may not close the cluster: it would lock itself out.
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        if turn.actor() == Actor::Anonymous && self.mode == AccessMode::Closed {
            return Err(AccessRejection::AccessNotBootstrapped.into());
        }
        let before = turn.get::<Access>(&())?;
        if before
            .as_deref()
            .is_none_or(|before| before.mode != self.mode)
        {
            let revision = before.map_or(0, |before| before.revision);
            let mode = self.mode;
            turn.put::<Access>(&(), AccessRecord { mode, revision });
            credentials::note_change(turn)?;
        }
        Ok(Done {})
    }
}
