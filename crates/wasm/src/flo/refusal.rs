//! The codes that the host's functions of the module `flo` return.

/// Why a host call failed: the guest gets the code as a negative number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallRefused {
    /// −1: no such key.
    NotFound,
    /// −3: the value is longer than the guest's buffer.
    BufferTooSmall,
    /// −5: the store did not respond, or the key or value exceeds its limits.
    Store,
    /// −6: a range that is not within the guest's memory.
    BadPointer,
    /// −7: not a valid outcome of an action, state patch or delay (ours, as are the functions that set them).
    BadValue,
}

/// What a function returns to the guest.
pub(super) fn answer(result: Result<i32, CallRefused>) -> i32 {
    match result {
        Ok(value) => value,
        Err(CallRefused::NotFound) => -1,
        Err(CallRefused::BufferTooSmall) => -3,
        Err(CallRefused::Store) => -5,
        Err(CallRefused::BadPointer) => -6,
        Err(CallRefused::BadValue) => -7,
    }
}
