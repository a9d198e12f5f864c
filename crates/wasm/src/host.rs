//! What a guest may reach outside itself.

use std::time::Instant;

/// The services behind a guest's imports in ABI 1; one value serves one call.
///
/// It is `Send` so that a call can be prepared on one thread and run on another, and its functions
/// block that thread. Time spent in them counts towards the call's timeout: each is told when that
/// ends and is to give up then, since nothing can interrupt it. What it answers later is not seen,
/// because the call has timed out.
///
/// Keys and values are at most 64 KiB: the sandbox refuses longer ones without asking (A40). The store
/// may have narrower rules.
pub trait Host: Send {
    /// The value of a key, or nothing.
    ///
    /// # Errors
    /// [`KvError`] when the store refuses or cannot answer; the guest sees −5.
    fn kv_get(&mut self, key: &[u8], deadline: Instant) -> Result<Option<Vec<u8>>, KvError>;

    /// Sets a key's value.
    ///
    /// # Errors
    /// [`KvError`] when the store refuses or cannot answer; the guest sees −5. The value may be set then.
    fn kv_set(&mut self, key: &[u8], value: &[u8], deadline: Instant) -> Result<(), KvError>;

    /// Deletes a key, and says whether it was there.
    ///
    /// # Errors
    /// [`KvError`] when the store refuses or cannot answer; the guest sees −5. The key may be gone then.
    fn kv_delete(&mut self, key: &[u8], deadline: Instant) -> Result<bool, KvError>;
}

/// Why the key-value store did not do what a guest asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the key-value store to answer, but {reason}")]
pub struct KvError {
    /// The cause, for the call's log: the guest sees a code only.
    pub reason: String,
}

/// A host without a key-value store: every call answers −5.
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
        reason: "this node has none".to_owned(),
    }
}
