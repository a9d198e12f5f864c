//! A test-only engine version 2: a second version of a record, of a command and of a definition's encoding.
//!
//! It exercises the upgrade path while no real version 2 exists (ADR 0025). A node supports it only in a build with
//! debug assertions and only if its environment enables it. In any other build its values cannot be constructed.

use crate::version::ENGINE_VERSION;
use serde::{Deserialize, Serialize};

/// The engine version of the exercise.
pub const ENGINE_VERSION_EXERCISE: u32 = ENGINE_VERSION + 1;

/// The field that the second versions add.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark(pub u64);

/// The field that the second versions would add; uninhabited in this build.
#[cfg(not(debug_assertions))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mark {}
