//! The sandbox: one per node, shared by all threads that run actions.

use crate::cache::{ModuleCache, ModuleDigest};
use crate::compiler::{BoundModule, CompiledModule, Compiler};
use crate::error::{Broken, InvocationError};
use crate::host::Host;
use crate::inspection;
use crate::limits::Limits;
use crate::log::Logs;
use crate::outcome::OutcomeName;
use crate::task::Task;
use crate::ticker::Ticker;
use crate::{flo, wasi};

/// Runs WASM actions (A7, A8, A9).
///
/// It owns the engine, the thread that counts epochs for timeouts, and the cache of compiled
/// modules. Dropping it ends the thread.
pub struct Sandbox {
    compiler: Compiler,
    cache: ModuleCache,
    _ticker: Ticker,
}

/// One call of an action.
pub struct Invocation<'a> {
    /// Which module, as the cache knows it.
    pub digest: ModuleDigest,
    /// Fetches the binary module; asked only when it is not cached. `None`: there is none.
    pub module: &'a dyn Fn() -> Option<Vec<u8>>,
    /// What the action is given.
    pub input: &'a [u8],
    /// What it may use.
    pub limits: Limits,
    /// What the call serves.
    pub task: Task<'a>,
    /// What it may reach. A WASI command reaches nothing.
    pub host: Box<dyn Host>,
}

/// All that one call left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The answer, or why there is none.
    pub result: Result<Answer, InvocationError>,
    /// What the action logged, whether it answered or not.
    pub logs: Logs,
}

/// What an action answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `success` unless the action set another, or exited as pending.
    pub outcome: OutcomeName,
    /// The output's bytes; the sandbox does not ask whether they are JSON.
    pub output: Vec<u8>,
}

/// Why a sandbox could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine does not work on this machine.
    #[error("expected the WASM engine to start, but {0:#}")]
    Engine(wasmtime::Error),
    /// The system gave no thread.
    #[error("expected to start the WASM ticker thread, but {0}")]
    Ticker(#[source] std::io::Error),
}

impl Sandbox {
    /// A sandbox with nothing compiled.
    ///
    /// # Errors
    /// [`SandboxError`] when the machine cannot run the engine or has no thread left.
    pub fn new() -> Result<Self, SandboxError> {
        let compiler = Compiler::new().map_err(SandboxError::Engine)?;
        let ticker = Ticker::start(compiler.engine().clone()).map_err(SandboxError::Ticker)?;
        Ok(Self {
            compiler,
            cache: ModuleCache::new(),
            _ticker: ticker,
        })
    }

    /// Runs an action once, in an instance of its own.
    ///
    /// It blocks until the action ends, at most for the limits' timeout beside the compilation of a
    /// module that is not cached. Only a host that does not give up at the deadline it is told can
    /// hold it for longer. The calling thread needs 1 MiB of free stack.
    #[must_use]
    pub fn invoke(&self, invocation: Invocation<'_>) -> Report {
        let compiled = self.cache.get_or_compile(invocation.digest, || {
            let bytes = (invocation.module)().ok_or(Broken::Missing)?;
            self.compiler.compile(&bytes)
        });
        match compiled.and_then(|compiled| run(&compiled, invocation)) {
            Ok(report) => report,
            Err(broken) => Report {
                result: Err(broken.into()),
                logs: Logs::default(),
            },
        }
    }

    /// How many modules were compiled since the start.
    #[must_use]
    pub fn compilations_count(&self) -> u64 {
        self.cache.compilations_count()
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
