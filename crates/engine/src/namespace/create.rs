//! Creating namespaces, with a command or with the first write (A41).

use crate::access::{self, Permission};
use crate::command_scope::CommandScope;
use crate::exercise::{ENGINE_VERSION_EXERCISE, Mark};
use crate::ids::Namespace;
use crate::limits::NAMESPACES_MAX;
use crate::persisted::Persisted;
use crate::quota;
use crate::rejection::Rejection;
use crate::reply::NamespaceCreated;
use crate::tables::{NamespaceRecord, Namespaces};
use crate::turn::{Turn, TurnResult};
use crate::version::ENGINE_VERSION_FIRST;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Creates the command's namespace. An existing one is unchanged except for its mark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateNamespace {
    /// What the namespace is marked with; from version 2 on, the exercise's.
    pub mark: Option<Mark>,
}

/// [`CreateNamespace`] in version 1.
#[derive(Serialize, Deserialize)]
struct CreateNamespaceV1 {}

#[derive(Serialize, Deserialize)]
enum Versions {
    V1(CreateNamespaceV1),
    V2(CreateNamespace),
}

impl Persisted for CreateNamespace {
    fn serialize_version<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let version = match self.mark {
            None => Versions::V1(CreateNamespaceV1 {}),
            Some(_) => Versions::V2(self.clone()),
        };
        version.serialize(serializer)
    }

    fn deserialize_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Versions::deserialize(deserializer)? {
            Versions::V1(CreateNamespaceV1 {}) => Self::default(),
            Versions::V2(create) => create,
        })
    }
}

impl CreateNamespace {
    /// The engine version that it needs.
    pub(crate) fn since(&self) -> u32 {
        match self.mark {
            None => ENGINE_VERSION_FIRST,
            Some(_) => ENGINE_VERSION_EXERCISE,
        }
    }

    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<NamespaceCreated> {
        let is_new = ensure(turn, namespace)?;
        let is_marked = self.set_mark(turn, namespace)?;
        Ok(NamespaceCreated {
            is_new: is_new || is_marked,
        })
    }

    /// Whether the namespace had another mark, or none.
    fn set_mark(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<bool> {
        if self.mark.is_none() || !turn.has_agreed_on(ENGINE_VERSION_EXERCISE) {
            return Ok(false);
        }
        let before = turn.edit::<Namespaces, _>(namespace, |record| {
            std::mem::replace(&mut record.mark, self.mark)
        })?;
        Ok(before.flatten() != self.mark)
    }
}

/// Creates the namespace of an accepted command that wrote something. Called for every command in a namespace except the
/// namespace's deletion; once the namespace exists, it costs one read of a hot record, and nothing if the last command of
/// the entry in a namespace was in the same one.
pub(crate) fn follow(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<()> {
    if turn.has_writes() {
        if !turn.is_of_last_command(namespace) {
            ensure(turn, namespace)?;
        }
        turn.set_namespace(namespace);
    }
    Ok(())
}

/// True when the namespace is new.
fn ensure(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<bool> {
    if turn.get::<Namespaces>(namespace)?.is_some() {
        return Ok(false);
    }
    let scope = CommandScope::Namespace(namespace.clone());
    access::judge_turn(turn, &[Permission::NamespaceCreate], &scope)?;
    if turn.cluster().namespaces_count >= NAMESPACES_MAX as u64 {
        return Err(Rejection::too_many("namespaces", NAMESPACES_MAX).into());
    }
    quota::check_room_in_tree(turn, namespace)?;
    quota::begin(turn, namespace)?;
    turn.cluster_mut().namespaces_count += 1;
    let created_at_ms = turn.now_ms();
    turn.put::<Namespaces>(
        namespace,
        NamespaceRecord {
            created_at_ms,
            mark: None,
        },
    );
    Ok(true)
}
