//! The tables of ABI 1, Flo's own (A7).
//!
//! The store's functions return 0 or a length, or one of these codes: −1 if the key does not exist,
//! −3 if the value does not fit into the buffer, −5 if the store refuses or does not respond, and
//! −6 for an invalid pointer. After −5 a write may have been applied. Keys are those of the
//! action's namespace: text of 1 to 256 bytes without control characters; values have at most 64
//! KiB and stay until they are deleted.

use super::{Export, Import, import, optional, required, signature};
use wasmparser::ValType::{I32, I64};

/// `alloc(length) -> pointer`; 0 means "no memory".
pub(crate) const ALLOC: &str = "alloc";
/// `handle(pointer, length) -> i64`; packs the output's pointer and length, or is a negative code.
pub(crate) const HANDLE: &str = "handle";
/// `dealloc(pointer, length)`; frees the output once the host has copied it.
pub(crate) const DEALLOC: &str = "dealloc";
/// `init() -> i32`; called once, before anything else; 0 means success.
pub(crate) const INIT: &str = "init";

/// The module name of the host's functions.
pub(crate) const MODULE: &str = "flo";
/// `log(level, pointer, length)`.
pub(crate) const LOG: &str = "log";
/// `kv_get(key pointer, key length, buffer pointer, buffer length) -> length or code`.
pub(crate) const KV_GET: &str = "kv_get";
/// `kv_set(key pointer, key length, value pointer, value length) -> 0 or code`.
pub(crate) const KV_SET: &str = "kv_set";
/// `kv_delete(key pointer, key length) -> 0 or code`.
pub(crate) const KV_DELETE: &str = "kv_delete";
/// `set_outcome(pointer, length) -> 0 or code`.
pub(crate) const SET_OUTCOME: &str = "set_outcome";
/// `set_state_patch(pointer, length) -> 0 or code`.
pub(crate) const SET_STATE_PATCH: &str = "set_state_patch";
/// `set_usage(pointer, length) -> 0 or code`.
pub(crate) const SET_USAGE: &str = "set_usage";
/// `set_delay(milliseconds) -> 0 or code`.
pub(crate) const SET_DELAY: &str = "set_delay";

/// What a module of this ABI may import, in addition to [`REQUESTS`].
pub(super) const IMPORTS: [Import; 5] = [
    import(LOG, signature(&[I32, I32, I32], &[])),
    import(KV_GET, signature(&[I32, I32, I32, I32], &[I32])),
    import(KV_SET, signature(&[I32, I32, I32, I32], &[I32])),
    import(KV_DELETE, signature(&[I32, I32], &[I32])),
    import(SET_OUTCOME, signature(&[I32, I32], &[I32])),
];

/// What a module of any ABI may import.
pub(super) const REQUESTS: [Import; 3] = [
    import(SET_STATE_PATCH, signature(&[I32, I32], &[I32])),
    import(SET_USAGE, signature(&[I32, I32], &[I32])),
    import(SET_DELAY, signature(&[I64], &[I32])),
];

/// What a module must or may export, in addition to its memory.
pub(super) const EXPORTS: [Export; 4] = [
    required(ALLOC, signature(&[I32], &[I32])),
    required(HANDLE, signature(&[I32, I32], &[I64])),
    optional(DEALLOC, signature(&[I32, I32], &[])),
    optional(INIT, signature(&[], &[I32])),
];
