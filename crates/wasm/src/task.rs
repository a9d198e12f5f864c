//! What a call serves.

/// The task that a call serves. ABI 2 tells it the guest in its environment (A8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task<'a> {
    /// The id of the workflow run, or of the action run when it was invoked by itself: `FLO_RUN_ID`,
    /// as a command worker gives it (A10).
    pub run_id: &'a str,
    /// The action's name: `FLO_ACTION`, and the program's name.
    pub action: &'a str,
    /// The attempt, from 1: `FLO_ATTEMPT`.
    pub attempt: u32,
}
