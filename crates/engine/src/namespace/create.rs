//! Namespaces begin with a command or with the first write of any kind (A41).

use crate::command::{Body, Command};
use crate::ids::Namespace;
use crate::limits::NAMESPACES_MAX;
use crate::rejection::Rejection;
use crate::reply::NamespaceCreated;
use crate::tables::{NamespaceRecord, Namespaces};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Creates the namespace that the command is sent to. One that is there is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateNamespace {}

impl CreateNamespace {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<NamespaceCreated> {
        let is_new = ensure(turn, namespace)?;
        Ok(NamespaceCreated { is_new })
    }
}

/// Creates the namespace of an accepted command that wrote something; called for each, so it costs
/// one look at a hot record once the namespace is there.
pub(crate) fn follow(turn: &mut Turn<'_, '_>, command: &Command) -> Outcome<()> {
    let is_leaving = matches!(command.body, Body::DeleteNamespace(_));
    if !is_leaving && turn.has_writes() {
        ensure(turn, &command.namespace)?;
    }
    Ok(())
}

/// True when the namespace is new.
fn ensure(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<bool> {
    if turn.get::<Namespaces>(namespace)?.is_some() {
        return Ok(false);
    }
    if turn.list::<Namespaces>(&(), NAMESPACES_MAX)?.len() == NAMESPACES_MAX {
        return Err(Rejection::too_many("namespaces", NAMESPACES_MAX).into());
    }
    let created_at_ms = turn.now_ms();
    turn.put::<Namespaces>(namespace, NamespaceRecord { created_at_ms });
    Ok(true)
}
