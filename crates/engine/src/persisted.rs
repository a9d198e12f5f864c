//! Versions of stored values (design rule 12, ADR 0025).
//!
//! A stored value is an enum of versions. The engine writes a value in the oldest version that can hold it, so its
//! bytes depend on its content alone, and members that know no newer version can read it until the cluster agrees on
//! the engine version that fills the new part. On read, an older version is converted to today's type.

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

/// A value with a single version so far.
#[derive(Serialize, Deserialize)]
pub(crate) enum OneVersion<T> {
    V1(T),
}

/// The same as [`OneVersion`], by reference: serde encodes both alike.
#[derive(Serialize)]
pub(crate) enum OneVersionRef<'a, T> {
    V1(&'a T),
}

/// How the versions of a type are written and read. A type whose shape has changed implements both functions with an
/// enum of versions; other types use the defaults.
pub(crate) trait Persisted: Serialize + DeserializeOwned {
    /// Writes the value in the oldest version that can hold it.
    ///
    /// # Errors
    /// Those of `serializer`.
    fn serialize_version<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        OneVersionRef::V1(self).serialize(serializer)
    }

    /// Reads a value of any version.
    ///
    /// # Errors
    /// Those of `deserializer`, including one for a version that this build does not know.
    fn deserialize_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let OneVersion::V1(value) = OneVersion::deserialize(deserializer)?;
        Ok(value)
    }
}

/// For `#[serde(with = …)]`: writes a value as [`Persisted`] does.
///
/// # Errors
/// Those of `serializer`.
pub(crate) fn serialize<T: Persisted, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.serialize_version(serializer)
}

/// For `#[serde(with = …)]`: reads a value of any version.
///
/// # Errors
/// Those of `deserializer`.
pub(crate) fn deserialize<'de, T: Persisted, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    T::deserialize_version(deserializer)
}

/// A value that is read in any of its versions.
#[derive(Deserialize)]
pub(crate) struct ByVersion<T: Persisted>(#[serde(deserialize_with = "deserialize")] pub(crate) T);

/// A value that is written in its version.
#[derive(Serialize)]
pub(crate) struct ByVersionRef<'a, T: Persisted>(
    #[serde(serialize_with = "serialize_ref")] pub(crate) &'a T,
);

fn serialize_ref<T: Persisted, S: Serializer>(
    value: &&T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.serialize_version(serializer)
}
