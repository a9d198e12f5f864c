//! Namespaces (A41).

use super::tables;
use crate::exercise::Mark;
use crate::ids::Namespace;
use crate::persisted::Persisted;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

tables! {
    /// By name. Live until they are deleted.
    50 Namespaces(Namespace) -> NamespaceRecord, HOT; versions;
}

/// A namespace, which lives in the Raft group that has this row. It is stored as an enum of versions, so that a later
/// version can say that the namespace lives elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// When it was created or first written to, in milliseconds.
    pub created_at_ms: u64,
    /// The mark of the last marked create; from version 2 on, the exercise's.
    pub mark: Option<Mark>,
}

/// A namespace in version 1.
#[derive(Serialize, Deserialize)]
struct NamespaceRecordV1 {
    created_at_ms: u64,
}

impl From<NamespaceRecordV1> for NamespaceRecord {
    fn from(record: NamespaceRecordV1) -> Self {
        Self {
            created_at_ms: record.created_at_ms,
            mark: None,
        }
    }
}

#[derive(Deserialize)]
enum Versions {
    V1(NamespaceRecordV1),
    V2(NamespaceRecord),
}

#[derive(Serialize)]
enum VersionsRef<'a> {
    V1(NamespaceRecordV1),
    V2(&'a NamespaceRecord),
}

impl Persisted for NamespaceRecord {
    fn serialize_version<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let versions = match self.mark {
            None => VersionsRef::V1(NamespaceRecordV1 {
                created_at_ms: self.created_at_ms,
            }),
            Some(_) => VersionsRef::V2(self),
        };
        versions.serialize(serializer)
    }

    fn deserialize_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Versions::deserialize(deserializer)? {
            Versions::V1(record) => record.into(),
            Versions::V2(record) => record,
        })
    }
}
