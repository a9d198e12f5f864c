//! The task of a call.

/// The task of a call. ABI 2 passes it to the guest in its environment (A8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task<'a> {
    /// The id of the workflow run, or of a stand-alone action run: `FLO_RUN_ID`, as a command
    /// worker sets it (A10).
    pub run_id: &'a str,
    /// The action's name: `FLO_ACTION`, and the program's name.
    pub action: &'a str,
    /// The attempt, from 1: `FLO_ATTEMPT`.
    pub attempt: u32,
}
