//! Why a module is rejected.

use crate::abi::preview1;

/// Why a module is rejected at registration, or cannot run (A9). [`ModuleRejected::hint`] says what
/// to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleRejected {
    /// Neither a binary module nor valid WebAssembly text.
    #[error("expected WebAssembly text, but {reason}")]
    MalformedText {
        /// The parser's error, with line and column.
        reason: String,
    },
    /// The bytes are not a valid module.
    #[error("expected a valid WebAssembly module, but at byte {offset}: {reason}")]
    Malformed {
        /// The position in the module.
        offset: usize,
        /// The validator's error.
        reason: String,
    },
    /// A component instead of a module.
    #[error("expected a core WebAssembly module, but this is a component")]
    Component,
    /// It imports what the host of its ABI does not provide.
    #[error("expected only imports that the host provides, but it imports `{module}.{name}`")]
    ForeignImport {
        /// The module of its ABI.
        offered: &'static str,
        /// The import's module.
        module: String,
        /// The import's name.
        name: String,
    },
    /// It imports a function of the host with another type.
    #[error("expected to import `{module}.{name}` as {expected}, but it is imported as {actual}")]
    MistypedImport {
        /// The import's module.
        module: &'static str,
        /// The import's name.
        name: &'static str,
        /// The host's type.
        expected: String,
        /// The module's type.
        actual: String,
    },
    /// It lacks a required export.
    #[error("expected the module to export `{name}` as {expected}, but it exports no such name")]
    MissingExport {
        /// The export's name.
        name: &'static str,
        /// The required type.
        expected: String,
    },
    /// It exports a name of the ABI with another type.
    #[error("expected the module to export `{name}` as {expected}, but it is exported as {actual}")]
    MistypedExport {
        /// The export's name.
        name: &'static str,
        /// The required type.
        expected: String,
        /// The module's type.
        actual: String,
    },
    /// It declares more memory than the action may use.
    #[error("expected a memory of at most {bytes_max} bytes, but the module declares {bytes_min}")]
    MemoryTooLarge {
        /// The declared size.
        bytes_min: u64,
        /// The action's limit.
        bytes_max: usize,
    },
    /// It defines too many functions.
    #[error("expected at most {count_max} functions, but the module defines {count}")]
    TooManyFunctions {
        /// The number of functions.
        count: u32,
        /// The maximum number.
        count_max: u32,
    },
    /// It has a function with too much code.
    #[error("expected functions of at most {bytes_max} bytes, but function {function} has {bytes}")]
    FunctionTooLarge {
        /// The function's index in the module.
        function: u32,
        /// The bytes of its code.
        bytes: usize,
        /// The maximum.
        bytes_max: usize,
    },
    /// It has a function with too many local variables.
    #[error(
        "expected functions with at most {count_max} local variables, but function {function} has \
         {count}"
    )]
    TooManyLocals {
        /// The function's index in the module.
        function: u32,
        /// The number of local variables.
        count: u32,
        /// The maximum number.
        count_max: u32,
    },
    /// Its functions have too many local variables together.
    #[error("expected at most {count_max} local variables in all functions, but there are more")]
    TooManyLocalsInAll {
        /// The maximum number.
        count_max: u32,
    },
    /// It declares too many tables.
    #[error("expected at most {count_max} tables, but the module declares {count}")]
    TooManyTables {
        /// The declared number.
        count: u32,
        /// The maximum number of tables.
        count_max: u32,
    },
    /// It declares a table with too many elements.
    #[error(
        "expected tables of at most {elements_max} elements, but the module declares {elements}"
    )]
    TableTooLarge {
        /// The declared number.
        elements: u64,
        /// The maximum number of elements.
        elements_max: usize,
    },
}

/// What the author of a module can do that is too much for the compiler.
pub(crate) const COMPILE_HINT: &str = "build the module with optimization for size, and split large functions and \
                                       large generated tables";

impl ModuleRejected {
    /// What its author can do about it, as one sentence.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::MalformedText { .. } => "give a binary module (.wasm) or WebAssembly text (.wat)",
            Self::Malformed { .. } => {
                "build for the target wasm32-unknown-unknown or wasm32-wasip1, without threads, \
                 garbage collection or 64-bit memory, and check that the file was copied whole"
            }
            Self::Component => {
                "build a core module, for example with the target wasm32-unknown-unknown or \
                 wasm32-wasip1"
            }
            Self::ForeignImport { offered, .. } if *offered == preview1::MODULE => {
                "a WASI command may import only the functions of WASI preview 1, and set_state_patch, set_usage \
                 and set_delay from `flo`; build it for the target wasm32-wasip1, without libraries that need \
                 their own host"
            }
            Self::ForeignImport { .. } => {
                "a module with `handle` may import log, kv_get, kv_set, kv_delete, set_outcome, \
                 set_state_patch, set_usage and set_delay from `flo`: build it for the target wasm32-unknown-unknown; a program that needs \
                 WASI is built as a command, which exports `_start` and no `handle`"
            }
            Self::MistypedImport { .. } => "declare the import with the type named above",
            Self::MissingExport { .. } | Self::MistypedExport { .. } => {
                "export `memory`, `alloc(i32) -> i32` and `handle(i32, i32) -> i64`, optionally \
                 with `dealloc(i32, i32)` and `init() -> i32`; or build a WASI command, which \
                 exports `memory` and `_start()`"
            }
            Self::MemoryTooLarge { .. } => {
                "raise the action's memory limit, or build the module with a smaller stack and \
                 less static data"
            }
            Self::TooManyFunctions { .. }
            | Self::FunctionTooLarge { .. }
            | Self::TooManyLocals { .. }
            | Self::TooManyLocalsInAll { .. } => COMPILE_HINT,
            Self::TooManyTables { .. } | Self::TableTooLarge { .. } => {
                "build the module with fewer functions whose address is taken"
            }
        }
    }
}
