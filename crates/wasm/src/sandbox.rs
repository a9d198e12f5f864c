//! The sandbox: one per node, shared by all threads that run actions.

use crate::cache::{ModuleCache, ModuleDigest};
use crate::compiler::{BoundModule, CompiledModule, Compiler};
use crate::error::{Broken, InvocationError};
use crate::host::Host;
use crate::inspection;
use crate::limits::{CODE_BYTES_MAX, Limits, MODULES_CACHED_BYTES_MAX};
use crate::log::Logs;
use crate::outcome::OutcomeName;
use crate::task::Task;
use crate::ticker::Ticker;
use crate::{flo, wasi};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs WASM actions (A7, A8, A9).
///
/// It owns the engine, the thread that advances epochs for timeouts, and the cache of compiled
/// modules. Dropping it ends the thread.
pub struct Sandbox {
    compiler: Compiler,
    cache: ModuleCache,
    compilations_count: AtomicU64,
    _ticker: Ticker,
}

/// A compiled module, ready to be called.
#[derive(Clone)]
pub struct Module(Arc<CompiledModule>);

/// One call of an action.
pub struct Invocation<'a> {
    /// The action's module.
    pub module: &'a Module,
    /// The action's input.
    pub input: &'a [u8],
    /// The action's limits.
    pub limits: Limits,
    /// The task of the call.
    pub task: Task<'a>,
    /// What it can reach. A WASI command ignores it.
    pub host: Box<dyn Host>,
}

/// The result and the log of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The answer, or why the call failed.
    pub result: Result<Answer, InvocationError>,
    /// What else it asked for, whether it succeeded or failed.
    pub requests: Requests,
    /// What the action logged, whether it succeeded or failed.
    pub logs: Logs,
}

/// What an action asks for beside its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// A patch of the run's state (W66), at most 256 KiB; empty: none. The sandbox does not check whether it is JSON.
    pub state_patch: Vec<u8>,
    /// What it has used, at most 16 KiB (W87); empty: nothing. The sandbox does not check whether it is JSON.
    pub usage: Vec<u8>,
    /// The delay of what follows, in milliseconds, at most 366 days; 0: none (W74).
    pub delay_ms: u64,
}

/// The outcome and the output of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `success` unless the action set another, or exited as pending.
    pub outcome: OutcomeName,
    /// The output's bytes; the sandbox does not check whether they are JSON.
    pub output: Vec<u8>,
}

/// Why a sandbox could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine does not work on this machine.
    #[error("expected the WASM engine to start, but {0:#}")]
    Engine(wasmtime::Error),
    /// The system could not create a thread.
    #[error("expected to start the WASM ticker thread, but {0}")]
    Ticker(#[source] std::io::Error),
}

impl Sandbox {
    /// A sandbox with an empty cache.
    ///
    /// # Errors
    /// [`SandboxError`] if the machine cannot run the engine or create a thread.
    pub fn new() -> Result<Self, SandboxError> {
        Self::with_cache(MODULES_CACHED_BYTES_MAX)
    }

    /// As [`new`](Self::new), with a cache for `code_bytes_max` bytes of code. One module always fits.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_cache(code_bytes_max: usize) -> Result<Self, SandboxError> {
        let compiler = Compiler::new().map_err(SandboxError::Engine)?;
        let ticker = Ticker::start(compiler.engine().clone()).map_err(SandboxError::Ticker)?;
        Ok(Self {
            compiler,
            cache: ModuleCache::new(code_bytes_max.max(CODE_BYTES_MAX)),
            compilations_count: AtomicU64::new(0),
            _ticker: ticker,
        })
    }

    /// The compiled module, if it is cached.
    #[must_use]
    pub fn find(&self, digest: ModuleDigest) -> Option<Module> {
        self.cache.get(digest).map(Module)
    }

    /// Compiles a binary module and caches it. It blocks for as long as the compiler takes, which [`try_compile`] in a
    /// process with limits has to bound first; calls of other modules are not delayed.
    ///
    /// # Errors
    /// [`Broken`] if the module is not a valid action, or cannot be compiled.
    ///
    /// [`try_compile`]: crate::try_compile
    pub fn compile(&self, digest: ModuleDigest, bytes: &[u8]) -> Result<Module, Broken> {
        self.compilations_count.fetch_add(1, Ordering::Relaxed);
        let compiled = Arc::new(self.compiler.compile(bytes)?);
        self.cache.put(digest, Arc::clone(&compiled));
        Ok(Module(compiled))
    }

    /// Runs an action once, in a fresh instance.
    ///
    /// It blocks until the action ends: at most for the timeout. Only a host that ignores the
    /// deadline it receives can block it for longer. The calling thread needs 1 MiB of free stack.
    #[must_use]
    pub fn invoke(&self, invocation: Invocation<'_>) -> Report {
        match run(&invocation.module.0, invocation) {
            Ok(report) => report,
            Err(broken) => broken.into(),
        }
    }

    /// How often a module was compiled since the start.
    #[must_use]
    pub fn compilations_count(&self) -> u64 {
        self.compilations_count.load(Ordering::Relaxed)
    }

    /// The code of all modules that are in memory: cached, or evicted but still in use. In bytes.
    #[must_use]
    pub fn code_bytes(&self) -> usize {
        self.compiler.code_bytes()
    }
}

/// The report on a call that could not be made.
impl From<Broken> for Report {
    fn from(broken: Broken) -> Self {
        Self {
            result: Err(broken.into()),
            requests: Requests::default(),
            logs: Logs::default(),
        }
    }
}

fn run(compiled: &CompiledModule, invocation: Invocation<'_>) -> Result<Report, Broken> {
    // The limit may have been lowered since the module was registered.
    inspection::check_memory(&compiled.info, &invocation.limits)?;
    Ok(match &compiled.instance {
        BoundModule::Flo(module) => flo::run(module, invocation),
        BoundModule::Wasi(module) => wasi::run(module, invocation),
    })
}
