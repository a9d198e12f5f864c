//! How a call can end without an answer.

use crate::limits::TABLE_ELEMENTS_MAX;
use crate::rejection::ModuleRejected;
use std::fmt;
use wasmtime::Trap;

/// Why a call has no answer: each kind is an outcome of A7.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvocationError {
    /// The action ran and failed: the outcome is `failure`.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The action could not be run: the outcome is `execution_failure`.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The action ran for too long: the outcome is `timeout`.
    #[error("expected an answer within {timeout_ms} ms, but the action was still running")]
    TimedOut {
        /// The action's timeout. In milliseconds.
        timeout_ms: u64,
    },
}

/// How an action that ran failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// `handle` answered −1.
    #[error("expected the action to accept its input, but it called it invalid (-1)")]
    InvalidInput,
    /// `handle` answered −2.
    #[error("expected the action to have memory enough, but an allocation failed (-2)")]
    Allocation,
    /// `handle` answered −3.
    #[error("expected the action to succeed, but it reported an error (-3)")]
    Execution,
    /// `handle` answered another negative number.
    #[error("expected an output or a code of -1 to -3, but the action answered {code}")]
    UnknownCode {
        /// What it answered.
        code: i64,
    },
    /// `init` answered other than 0.
    #[error("expected init to answer 0, but it answered {code}")]
    InitFailed {
        /// What it answered.
        code: i32,
    },
    /// `alloc` answered 0, or a place that is not within the memory.
    #[error("expected alloc to give {length} bytes for the input, but it answered {pointer}")]
    InputNotPlaced {
        /// What it answered.
        pointer: u32,
        /// The input's length. In bytes.
        length: usize,
    },
    /// `handle` answered a place that is not within the memory.
    #[error(
        "expected the output within the {memory_bytes} bytes of memory, but it is {length} bytes \
         at {pointer}"
    )]
    OutputOutOfBounds {
        /// Where it would be.
        pointer: u32,
        /// How long it would be. In bytes.
        length: u32,
        /// How large the memory is. In bytes.
        memory_bytes: usize,
    },
    /// The output is longer than the action may answer.
    #[error("expected an output of at most {bytes_max} bytes, but it has {bytes}")]
    OutputTooLarge {
        /// The output's length.
        bytes: u32,
        /// The action's limit.
        bytes_max: usize,
    },
    /// What a WASI command wrote to stdout is longer than the action may answer.
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
        /// The first function for files or network that it called in vain.
        denied: Option<&'static str>,
    },
    /// The memory grew past the action's limit.
    #[error(
        "expected the action to use at most {bytes_max} bytes of memory, but it asked for \
         {bytes_wanted}"
    )]
    MemoryExceeded {
        /// How large the memory would have become.
        bytes_wanted: usize,
        /// The action's limit.
        bytes_max: usize,
    },
    /// A table grew past the bound.
    #[error(
        "expected tables of at most {TABLE_ELEMENTS_MAX} elements, but the action asked for \
         {elements_wanted}"
    )]
    TableExceeded {
        /// How large the table would have become.
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
    /// Its module is not there.
    #[error("expected the action's module to be stored, but it is missing")]
    Missing,
    /// Its module is no action.
    #[error(transparent)]
    Rejected(#[from] ModuleRejected),
    /// Its module is valid, and still cannot be compiled.
    #[error("expected the module to compile, but {reason}")]
    Compile {
        /// What the compiler says.
        reason: String,
    },
    /// The sandbox itself failed: the system refused it memory, for example.
    #[error("expected the sandbox to run the module, but {reason}")]
    Sandbox {
        /// The cause.
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

    /// Sorts what the engine reports: what one of our own functions ended the call with, a trap as
    /// the guest's failure, and the rest as ours.
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
    /// What `handle` means by a negative number.
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
    fn code(&self) -> &'static str {
        match self {
            Self::Missing => "module_missing",
            Self::Rejected(_) => "module_rejected",
            Self::Compile { .. } => "module_not_compiled",
            Self::Sandbox { .. } => "sandbox",
        }
    }
}

/// The action's own words where it left some, since its owner knows those.
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
            " (it called `{name}`, but an action is given neither files nor network)"
        ),
        None => Ok(()),
    }
}
