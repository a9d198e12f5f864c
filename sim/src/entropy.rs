//! Replaces the operating system's entropy by the seed's.
//!
//! Hash tables, `tokio::select!` and openraft's election timeouts all draw from it, through the C
//! library's `getrandom`. If a process defines a function with that name, the linker prefers it to the
//! library's. So no other code in this process has to know the seed.

#![allow(
    unsafe_code,
    reason = "a symbol of the C library is replaced, and it is given memory by its caller"
)]

use crate::random::Random;
use std::ffi::{c_uint, c_void};
use std::sync::{Mutex, PoisonError};

static SOURCE: Mutex<Random> = Mutex::new(Random::new(0));

/// From here on all entropy of this process follows from `seed`.
///
/// Entropy that was drawn earlier stays as it is, and so does that of each running thread: call this first, and
/// run what must be repeatable on a thread that is started afterwards.
pub(crate) fn seed(seed: u64) {
    *SOURCE.lock().unwrap_or_else(PoisonError::into_inner) = Random::new(seed);
}

/// Fills the caller's memory, as the function of the C library would.
///
/// # Safety
/// `memory` must be valid for writes of `length` bytes, as `getrandom(2)` asks.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(memory: *mut c_void, length: usize, _flags: c_uint) -> isize {
    let mut source = SOURCE.lock().unwrap_or_else(PoisonError::into_inner);
    if length > 0 {
        // SAFETY: the caller guarantees `length` bytes at `memory`, as the C library's contract says.
        let memory = unsafe { std::slice::from_raw_parts_mut(memory.cast::<u8>(), length) };
        for piece in memory.chunks_mut(size_of::<u64>()) {
            let bytes = source.draw().to_le_bytes();
            piece.copy_from_slice(&bytes[..piece.len()]);
        }
    }
    isize::try_from(length).unwrap_or(isize::MAX)
}
