//! How a call can fail.

use crate::limits::{CODE_BYTES_MAX, COMPILE_CPU_SECONDS_MAX, TABLE_ELEMENTS_MAX};
use crate::rejection::{COMPILE_HINT, ModuleRejected};
use std::fmt;
use wasmtime::Trap;

/// Why a call failed: each kind is an outcome of A7.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvocationError {
    /// The action ran and failed: the outcome is `failure`.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The action could not be run: the outcome is `execution_failure`.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The action ran for too long: the outcome is `timeout`.
    #[error("expected a result within {timeout_ms} ms, but the action was still running")]
    TimedOut {
        /// The action's timeout. In milliseconds.
        timeout_ms: u64,
    },
}

/// How an action that ran failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// `handle` returned −1.
    #[error("expected the action to accept its input, but it reported it as invalid (-1)")]
    InvalidInput,
    /// `handle` returned −2.
    #[error("expected the action to have enough memory, but an allocation failed (-2)")]
    Allocation,
    /// `handle` returned −3.
    #[error("expected the action to succeed, but it reported an error (-3)")]
    Execution,
    /// `handle` returned another negative number.
    #[error("expected an output or a code from -1 to -3, but the action returned {code}")]
    UnknownCode {
        /// The returned value.
        code: i64,
    },
    /// `init` did not return 0.
    #[error("expected init to return 0, but it returned {code}")]
    InitFailed {
        /// The returned value.
        code: i32,
    },
    /// `alloc` returned 0, or a place that is not within the memory.
    #[error("expected alloc to return {length} bytes for the input, but it returned {pointer}")]
    InputNotPlaced {
        /// The returned value.
        pointer: u32,
        /// The input's length. In bytes.
        length: usize,
    },
    /// `handle` returned a place that is not within the memory.
    #[error(
        "expected the output within the {memory_bytes} bytes of memory, but it is {length} bytes \
         at {pointer}"
    )]
    OutputOutOfBounds {
        /// The output's address.
        pointer: u32,
        /// The output's length. In bytes.
        length: u32,
        /// The size of the memory. In bytes.
        memory_bytes: usize,
    },
    /// The output is longer than the action's limit.
    #[error("expected an output of at most {bytes_max} bytes, but it has {bytes}")]
    OutputTooLarge {
        /// The output's length.
        bytes: u32,
        /// The action's limit.
        bytes_max: usize,
    },
    /// A WASI command wrote more to stdout than the action's limit.
    #[error("expected an output of at most {bytes_max} bytes, but the action wrote more")]
    OutputOverrun {
        /// The action's limit.
        bytes_max: usize,
    },
    /// A WASI command exited with a status that is neither success nor pending (A8).
    #[error(fmt = write_exit)]
    Exited {
        /// The exit status.
        status: u32,
        /// The last line of stderr that is not blank.
        last_line: Option<String>,
        /// The first function for files or network that it called.
        denied: Option<&'static str>,
    },
    /// The memory grew past the action's limit.
    #[error(
        "expected the action to use at most {bytes_max} bytes of memory, but it asked for \
         {bytes_wanted}"
    )]
    MemoryExceeded {
        /// The size that the memory would have had.
        bytes_wanted: usize,
        /// The action's limit.
        bytes_max: usize,
    },
    /// A table grew past the limit.
    #[error(
        "expected tables of at most {TABLE_ELEMENTS_MAX} elements, but the action asked for \
         {elements_wanted}"
    )]
    TableExceeded {
        /// The size that the table would have had.
        elements_wanted: usize,
    },
    /// The calls nested too deeply.
    #[error("expected calls to return, but the stack is exhausted")]
    StackExhausted,
    /// Any other trap: out of bounds, unreachable, division by zero.
    #[error("expected the action to return, but it trapped: {reason}")]
    Trapped {
        /// The kind of trap.
        reason: String,
    },
}

/// Why an action could not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// Its module does not exist.
    #[error("expected the action's module to be stored, but it is missing")]
    Missing,
    /// Its module is not a valid action.
    #[error(transparent)]
    Rejected(#[from] ModuleRejected),
    /// Its module is valid, but cannot be compiled.
    #[error("expected the module to compile, but {reason}")]
    Compile {
        /// The compiler's error.
        reason: String,
    },
    /// Its module takes too long to compile.
    #[error(
        "expected the module to compile within {COMPILE_CPU_SECONDS_MAX} s of processor time, but \
         it takes longer"
    )]
    CompileTime,
    /// Its module takes too much memory to compile.
    #[error("expected the module to compile within {bytes_max} bytes of memory, but it takes more")]
    CompileMemory {
        /// What compiling may take on the node.
        bytes_max: usize,
    },
    /// Its module has too much compiled code.
    #[error("expected at most {CODE_BYTES_MAX} bytes of compiled code, but the module has {bytes}")]
    CodeTooLarge {
        /// The compiled code.
        bytes: usize,
    },
    /// A call of it may take more memory than the node gives to all calls.
    #[error(
        "expected a call to take at most {budget_bytes} bytes, the node's memory for WASM calls, \
         but it may take {call_bytes}"
    )]
    OverBudget {
        /// What the call may take.
        call_bytes: usize,
        /// The node's memory for WASM calls.
        budget_bytes: usize,
    },
    /// The sandbox itself failed: for example, the system refused it memory.
    #[error("expected the sandbox to run the module, but {reason}")]
    Sandbox {
        /// The error of the sandbox.
        reason: String,
    },
}

impl InvocationError {
    /// The outcome that the step sees (A7).
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Failed(_) => "failure",
            Self::Broken(_) => "execution_failure",
            Self::TimedOut { .. } => "timeout",
        }
    }

    /// A short stable name of the cause, for machines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failed(failure) => failure.code(),
            Self::Broken(broken) => broken.code(),
            Self::TimedOut { .. } => "timeout",
        }
    }

    /// Classifies an error of the engine: one of our own functions ended the call, the guest
    /// trapped, or the sandbox failed.
    pub(crate) fn from_engine(error: &wasmtime::Error, timeout_ms: u64) -> Self {
        if let Some(ended) = error.downcast_ref::<Self>() {
            return ended.clone();
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => Self::TimedOut { timeout_ms },
            Some(Trap::StackOverflow) => Failure::StackExhausted.into(),
            Some(trap) => {
                let text = trap.to_string();
                let reason = text.strip_prefix("wasm trap: ").unwrap_or(&text).to_owned();
                Failure::Trapped { reason }.into()
            }
            None => Broken::Sandbox {
                reason: format!("{error:#}"),
            }
            .into(),
        }
    }
}

impl Failure {
    /// The failure that a negative result of `handle` means.
    pub(crate) fn from_code(code: i64) -> Self {
        match code {
            -1 => Self::InvalidInput,
            -2 => Self::Allocation,
            -3 => Self::Execution,
            code => Self::UnknownCode { code },
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::Allocation | Self::InputNotPlaced { .. } => "allocation",
            Self::Execution => "execution_error",
            Self::UnknownCode { .. } => "unknown_code",
            Self::InitFailed { .. } => "init_failed",
            Self::OutputOutOfBounds { .. } => "output_out_of_bounds",
            Self::OutputTooLarge { .. } | Self::OutputOverrun { .. } => "output_limit",
            Self::Exited { .. } => "exit_status",
            Self::MemoryExceeded { .. } => "memory_limit",
            Self::TableExceeded { .. } => "table_limit",
            Self::StackExhausted => "stack_exhausted",
            Self::Trapped { .. } => "trap",
        }
    }
}

impl Broken {
    /// What its author can do about it, as one sentence, if it is the module's fault.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Rejected(rejected) => Some(rejected.hint()),
            Self::Compile { .. }
            | Self::CompileTime
            | Self::CompileMemory { .. }
            | Self::CodeTooLarge { .. } => Some(COMPILE_HINT),
            Self::OverBudget { .. } => Some("lower the action's memory limit"),
            Self::Missing | Self::Sandbox { .. } => None,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Missing => "module_missing",
            Self::Rejected(_) => "module_rejected",
            Self::Compile { .. }
            | Self::CompileTime
            | Self::CompileMemory { .. }
            | Self::CodeTooLarge { .. } => "module_not_compiled",
            Self::OverBudget { .. } => "memory_budget",
            Self::Sandbox { .. } => "sandbox",
        }
    }
}

/// The action's own message if it left one, since its owner knows it.
fn write_exit(
    status: &u32,
    last_line: &Option<String>,
    denied: &Option<&'static str>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match last_line {
        Some(line) => f.write_str(line)?,
        None => write!(
            f,
            "expected the action to exit with 0, but it exited with {status}"
        )?,
    }
    match denied {
        Some(name) => write!(
            f,
            " (it called `{name}`, but an action has neither files nor network)"
        ),
        None => Ok(()),
    }
}
