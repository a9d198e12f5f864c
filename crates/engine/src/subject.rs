//! The subject of a command: what a panic in it quarantines.

use crate::ids::{ActionRunNumber, RunId, RunNumber, StreamNumber, WorkerId};
use crate::tables::{DefinitionNumber, QuarantinedItem, TimerKey};

/// The subject on whose behalf a command works; a panic quarantines it (design rule 10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A run by its id.
    Run(RunId),
    /// A run by its number.
    RunNumber(RunNumber),
    /// The run that an action run belongs to, or the action run itself.
    ActionRun(ActionRunNumber),
    /// A timer.
    Timer(TimerKey),
    /// A worker.
    Worker(WorkerId),
    /// The schedule of a definition.
    Schedule(DefinitionNumber),
    /// The trigger of a definition.
    Trigger(DefinitionNumber),
    /// A stream.
    Stream(StreamNumber),
    /// An item that is already quarantined.
    Quarantined(QuarantinedItem),
    /// Nothing that can be quarantined.
    Nothing,
}
