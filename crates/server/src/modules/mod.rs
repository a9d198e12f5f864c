//! The modules of WASM actions: compiled once, within bounds of time and memory (A9, ADR 0038).
//!
//! A module's author chooses what the compiler has to do, so a child process with limits compiles the module first. A
//! module that passes this trial is compiled in this process, too. One that fails is refused when it is registered, and
//! if a node sees it only later, its calls fail. Verdicts are remembered, so a module that fails is not tried with each
//! call.
//!
//! Callers of a module that is being compiled wait for the result. They hold no slot meanwhile, and callers of other
//! modules do not wait.

mod locks;
mod threads;
mod trial;
mod verdicts;

pub(crate) use threads::GuestThreads;
pub(crate) use trial::Trial;

use crate::errors::Refusal;
use crate::limits::REGISTRATION_TRIALS_MAX;
use crate::memory::{ModuleMemory, Reservation};
use flotilla_wasm::{Broken, Module, ModuleDigest, Sandbox};
use locks::Locks;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use verdicts::{Verdict, Verdicts};

/// The modules that this node has tried and compiled.
pub(crate) struct Modules {
    /// `None` if the engine does not work on this machine.
    sandbox: Option<Arc<Sandbox>>,
    threads: GuestThreads,
    /// `None`: modules are compiled in this process only.
    trial: Option<Trial>,
    verdicts: Verdicts,
    locks: Locks,
    /// For trials and compilations in progress.
    memory: ModuleMemory,
    /// Fewer, so that registrations do not delay calls.
    registrations: Arc<Semaphore>,
    shutdown: CancellationToken,
}

/// Why a module is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// It cannot be run.
    Broken(Broken),
    /// The node could not find out.
    Unknown(Refusal),
}

impl From<Broken> for Unavailable {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<Refusal> for Unavailable {
    fn from(refusal: Refusal) -> Self {
        Self::Unknown(refusal)
    }
}

impl Modules {
    /// No module is known yet. Trials and compilations use `memory`. What is tried ends with `shutdown`.
    pub(crate) fn new(
        threads: GuestThreads,
        trial: Option<Trial>,
        memory: ModuleMemory,
        shutdown: CancellationToken,
    ) -> Self {
        let sandbox = Sandbox::with_cache(memory.code_bytes_max)
            .inspect_err(|error| tracing::error!(%error, "WASM actions cannot run on this node"))
            .ok();
        Self {
            sandbox: sandbox.map(Arc::new),
            threads,
            trial,
            verdicts: Verdicts::default(),
            locks: Locks::default(),
            memory,
            registrations: Arc::new(Semaphore::new(REGISTRATION_TRIALS_MAX)),
            shutdown,
        }
    }

    /// Where modules run, unless the engine does not work on this machine.
    pub(crate) fn sandbox(&self) -> Option<&Arc<Sandbox>> {
        self.sandbox.as_ref()
    }

    /// The threads on which modules run and are compiled.
    pub(crate) fn threads(&self) -> &GuestThreads {
        &self.threads
    }

    /// Tries a module that is being registered. Once begun, the trial continues if its caller gives up, so that a
    /// repeated call finds the verdict.
    ///
    /// # Errors
    /// [`Unavailable`] if the module cannot be compiled within the limits, or the node could not find out.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        digest: ModuleDigest,
        module: Vec<u8>,
    ) -> Result<(), Unavailable> {
        if let Some(verdict) = self.verdicts.get(&digest) {
            return Ok(verdict?);
        }
        let permit = self.registrations.clone().acquire_owned().await;
        let modules = Arc::clone(self);
        let trial = tokio::spawn(async move {
            let _permit = permit;
            let lock = modules.locks.of(digest);
            let _locked = lock.lock().await;
            modules.judge(digest, &module).await
        });
        trial
            .await
            .map_err(|error| Refusal::internal(format!("the module's trial failed: {error}")))?
    }

    /// The module, or why it cannot be run; `None` if it has to be [compiled](Self::compile).
    pub(crate) fn find(&self, digest: ModuleDigest) -> Option<Result<Module, Broken>> {
        let compiled = self
            .sandbox
            .as_ref()
            .and_then(|sandbox| sandbox.find(digest));
        match (compiled, self.verdicts.get(&digest)) {
            (Some(module), _) => Some(Ok(module)),
            (None, Some(Err(broken))) => Some(Err(broken)),
            (None, Some(Ok(())) | None) => None,
        }
    }

    /// Tries and compiles a module, unless another caller has done so meanwhile.
    ///
    /// # Errors
    /// [`Unavailable`] if the module cannot be compiled within the limits, or the node could not find out.
    pub(crate) async fn compile(
        &self,
        digest: ModuleDigest,
        module: Vec<u8>,
    ) -> Result<Module, Unavailable> {
        let lock = self.locks.of(digest);
        let _locked = lock.lock().await;
        if let Some(found) = self.find(digest) {
            return Ok(found?);
        }
        self.judge(digest, &module).await?;
        let Some(sandbox) = self.sandbox.clone() else {
            let message = "expected a working WASM engine, but this machine cannot run it";
            return Err(Refusal::unavailable(message).into());
        };
        let memory = self.reserve().await;
        let compile = move || {
            // It continues if its caller gives up.
            let _held = memory;
            sandbox.compile(digest, &module)
        };
        let compiled = self.threads.run(compile).await?;
        if let Err(broken) = &compiled {
            self.verdicts.put(digest, Err(broken.clone()));
        }
        Ok(compiled?)
    }

    /// The compiled code of all modules. In bytes.
    pub(crate) fn code_bytes(&self) -> usize {
        self.sandbox
            .as_ref()
            .map_or(0, |sandbox| sandbox.code_bytes())
    }

    /// The memory that one trial or compilation may take. A compilation in this process takes about as much as its trial did.
    async fn reserve(&self) -> Option<Reservation> {
        let ModuleMemory {
            compilations,
            compilation_bytes,
            ..
        } = &self.memory;
        compilations.reserve(*compilation_bytes).await
    }

    /// The verdict on a module, by a trial unless it is known.
    async fn judge(&self, digest: ModuleDigest, module: &[u8]) -> Result<(), Unavailable> {
        if let Some(verdict) = self.verdicts.get(&digest) {
            return Ok(verdict?);
        }
        let Some(trial) = &self.trial else {
            return Ok(());
        };
        let _memory = self.reserve().await;
        let verdict: Verdict = tokio::select! {
            tried = trial.run(module) => tried?,
            () = self.shutdown.cancelled() => return Err(Refusal::shutting_down().into()),
        };
        self.verdicts.put(digest, verdict.clone());
        Ok(verdict?)
    }
}

#[cfg(test)]
mod tests;
