//! What a guest can reach outside itself.

use std::time::Instant;

/// The services behind a guest's imports in ABI 1; one value serves one call.
///
/// It is `Send` so that a call can be prepared on one thread and run on another, and its functions
/// block that thread. Time spent in them counts towards the call's timeout: each receives the
/// deadline and must give up then, since nothing can interrupt it. A later result is discarded,
/// because the call has timed out.
///
/// Keys and values are at most 64 KiB: the sandbox refuses longer ones itself (A40). The store may
/// have stricter limits.
pub trait Host: Send {
    /// The value of a key, if it exists.
    ///
    /// # Errors
    /// [`KvError`] if the store refuses or does not respond; the guest gets −5.
    fn kv_get(&mut self, key: &[u8], deadline: Instant) -> Result<Option<Vec<u8>>, KvError>;

    /// Sets a key's value.
    ///
    /// # Errors
    /// [`KvError`] if the store refuses or does not respond; the guest gets −5. The value may have
    /// been set.
    fn kv_set(&mut self, key: &[u8], value: &[u8], deadline: Instant) -> Result<(), KvError>;

    /// Deletes a key, and returns whether it existed.
    ///
    /// # Errors
    /// [`KvError`] if the store refuses or does not respond; the guest gets −5. The key may have
    /// been deleted.
    fn kv_delete(&mut self, key: &[u8], deadline: Instant) -> Result<bool, KvError>;
}

/// Why the key-value store refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the key-value store to respond, but {reason}")]
pub struct KvError {
    /// The cause, for the call's log: the guest gets only a code.
    pub reason: String,
}

/// A host without a key-value store: every call returns −5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoStore;

impl Host for NoStore {
    fn kv_get(&mut self, _key: &[u8], _deadline: Instant) -> Result<Option<Vec<u8>>, KvError> {
        Err(no_store())
    }

    fn kv_set(&mut self, _key: &[u8], _value: &[u8], _deadline: Instant) -> Result<(), KvError> {
        Err(no_store())
    }

    fn kv_delete(&mut self, _key: &[u8], _deadline: Instant) -> Result<bool, KvError> {
        Err(no_store())
    }
}

fn no_store() -> KvError {
    KvError {
        reason: "this node has no store".to_owned(),
    }
}
