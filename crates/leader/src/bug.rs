//! Planted bugs, with which chaos tests and the simulation show that they would find them.

/// A bug that tests can plant in the leader's parts. Releases plant none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A task is given to two workers.
    DoubleLease,
    /// The slots that an entry offered and did not use are not offered again.
    LostSlots,
    /// Some timers never fire.
    LostTimer,
    /// A leader makes only the checks that its predecessor left open.
    LostChecks,
    /// A stream that grows wakes no trigger.
    LostWakeup,
}
