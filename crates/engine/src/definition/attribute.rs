//! Search attributes (W22).

use super::Path;
use crate::ids::AttributeName;
use serde::{Deserialize, Serialize};

/// A queryable field that is computed at start and again at completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchAttribute {
    /// Its name, unique in the definition.
    pub name: AttributeName,
    /// The type that the value must have; one of another type is absent.
    pub kind: AttributeKind,
    /// Where the value comes from.
    pub from: Path,
}

/// The types of search attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttributeKind {
    /// A JSON string.
    #[default]
    String,
    /// A JSON number.
    Number,
    /// An integer of milliseconds since the Unix epoch.
    Timestamp,
}
