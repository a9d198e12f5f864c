//! The contracts between a module and its host, as tables of names and types.
//!
//! Inspection checks a module against these tables and knows no name by itself, so a second ABI
//! (A8: a WASI command module, known by its export `_start`) is a variant, two tables and a way to
//! call it.

use std::fmt;
use wasmparser::ValType::{self, I32, I64};

/// The contract that a module follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abi {
    /// ABI 1, Flo's own: the host calls `alloc`, writes the input and calls `handle` (A7).
    Flo,
}

/// The name under which the guest's memory is exported, in every ABI.
pub(crate) const MEMORY: &str = "memory";
/// `alloc(length) -> pointer`; 0 is "no memory".
pub(crate) const ALLOC: &str = "alloc";
/// `handle(pointer, length) -> i64`; packs the output's pointer and length, or is a negative code.
pub(crate) const HANDLE: &str = "handle";
/// `dealloc(pointer, length)`; takes the output back once the host has copied it.
pub(crate) const DEALLOC: &str = "dealloc";
/// `init() -> i32`; called once, before anything else; 0 is success.
pub(crate) const INIT: &str = "init";
/// The entry point of a WASI command (A8).
pub(crate) const WASI_START: &str = "_start";

/// The module name of the host's functions in ABI 1.
pub(crate) const FLO: &str = "flo";
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

/// The type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature<'a> {
    pub(crate) params: &'a [ValType],
    pub(crate) results: &'a [ValType],
}

/// A function that the host offers.
pub(crate) struct Import {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    pub(crate) signature: Signature<'static>,
}

/// A function that a module offers.
pub(crate) struct Export {
    pub(crate) name: &'static str,
    pub(crate) signature: Signature<'static>,
    pub(crate) is_required: bool,
}

impl Abi {
    /// Everything that a module may import.
    pub(crate) fn imports(self) -> &'static [Import] {
        match self {
            Self::Flo => &FLO_IMPORTS,
        }
    }

    /// The functions that a module must or may export, beside [`MEMORY`].
    pub(crate) fn exports(self) -> &'static [Export] {
        match self {
            Self::Flo => &FLO_EXPORTS,
        }
    }
}

const fn signature(params: &'static [ValType], results: &'static [ValType]) -> Signature<'static> {
    Signature { params, results }
}

const fn import(name: &'static str, signature: Signature<'static>) -> Import {
    Import {
        module: FLO,
        name,
        signature,
    }
}

const fn required(name: &'static str, signature: Signature<'static>) -> Export {
    Export {
        name,
        signature,
        is_required: true,
    }
}

const fn optional(name: &'static str, signature: Signature<'static>) -> Export {
    Export {
        name,
        signature,
        is_required: false,
    }
}

const FLO_IMPORTS: [Import; 5] = [
    import(LOG, signature(&[I32, I32, I32], &[])),
    import(KV_GET, signature(&[I32, I32, I32, I32], &[I32])),
    import(KV_SET, signature(&[I32, I32, I32, I32], &[I32])),
    import(KV_DELETE, signature(&[I32, I32], &[I32])),
    import(SET_OUTCOME, signature(&[I32, I32], &[I32])),
];

const FLO_EXPORTS: [Export; 4] = [
    required(ALLOC, signature(&[I32], &[I32])),
    required(HANDLE, signature(&[I32, I32], &[I64])),
    optional(DEALLOC, signature(&[I32, I32], &[])),
    optional(INIT, signature(&[], &[I32])),
];

impl fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |types: &[ValType]| {
            types
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        write!(f, "({})", list(self.params))?;
        match self.results {
            [] => Ok(()),
            [one] => write!(f, " -> {one}"),
            many => write!(f, " -> ({})", list(many)),
        }
    }
}
