//! Describes differences between requested and existing settings.

use std::fmt::Display;

/// Describes how a setting differs from the requested one; empty if they are equal.
pub(crate) fn difference<T: PartialEq + Display>(
    name: &str,
    found: T,
    requested: T,
) -> Option<String> {
    (found != requested).then(|| format!("{name} is {found}, not {requested}"))
}
