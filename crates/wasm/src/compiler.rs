//! From bytes to a module that can be instantiated.

use crate::error::Broken;
use crate::guest::Guest;
use crate::imports;
use crate::inspection::{self, FEATURES, ModuleInfo};
use std::time::Instant;
use wasmtime::{Config, Engine, InstancePre, Linker, Module};

/// The engine with the host's functions.
pub(crate) struct Compiler {
    engine: Engine,
    linker: Linker<Guest>,
}

/// A module that passed inspection, with its imports bound.
pub(crate) struct CompiledModule {
    pub(crate) info: ModuleInfo,
    pub(crate) instance: InstancePre<Guest>,
}

impl Compiler {
    pub(crate) fn new() -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config.wasm_features(FEATURES.complement(), false);
        config.wasm_features(FEATURES, true);
        config.epoch_interruption(true);
        // A trap is told by its kind: frames would be collected and never shown.
        config.wasm_backtrace_max_frames(None);
        let engine = Engine::new(&config)?;
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker)?;
        Ok(Self { engine, linker })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Inspects and compiles. The bytes were inspected at registration; they are inspected again
    /// because what comes from storage may be of an older version, or damaged.
    pub(crate) fn compile(&self, bytes: &[u8]) -> Result<CompiledModule, Broken> {
        let info = inspection::read(bytes)?;
        let started = Instant::now();
        let instance = Module::from_binary(&self.engine, bytes)
            .and_then(|module| self.linker.instantiate_pre(&module))
            .map_err(|error| Broken::Compile {
                reason: format!("{error:#}"),
            })?;
        let elapsed = started.elapsed();
        tracing::debug!(bytes = bytes.len(), ?elapsed, "compiled a WASM module");
        Ok(CompiledModule { info, instance })
    }
}
