//! Compiles a module's bytes to one that can be instantiated.

use crate::abi::Abi;
use crate::cache::{CodeMeter, MeteredCode};
use crate::error::Broken;
use crate::flo::{self, Services};
use crate::guest::Guest;
use crate::inspection::{self, FEATURES, ModuleInfo};
use crate::limits::CODE_BYTES_MAX;
use crate::wasi::{self, Process};
use std::time::Instant;
use wasmtime::{Config, Engine, InstancePre, Linker, Module};

/// The engine with the host's functions, separate for each ABI.
pub(crate) struct Compiler {
    engine: Engine,
    flo: Linker<Guest<Services>>,
    wasi: Linker<Guest<Process>>,
    code: CodeMeter,
}

/// A module that passed inspection.
pub(crate) struct CompiledModule {
    pub(crate) info: ModuleInfo,
    pub(crate) instance: BoundModule,
    /// Its machine code, with tables and constants.
    pub(crate) code: MeteredCode,
}

/// A module with its imports bound, by its ABI.
pub(crate) enum BoundModule {
    Flo(InstancePre<Guest<Services>>),
    Wasi(InstancePre<Guest<Process>>),
}

impl Compiler {
    pub(crate) fn new() -> wasmtime::Result<Self> {
        let engine = engine()?;
        let (mut flo, mut wasi) = (Linker::new(&engine), Linker::new(&engine));
        flo::link(&mut flo)?;
        wasi::link(&mut wasi)?;
        Ok(Self {
            engine,
            flo,
            wasi,
            code: CodeMeter::default(),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The code of all modules that are in memory. In bytes.
    pub(crate) fn code_bytes(&self) -> usize {
        self.code.bytes()
    }

    /// Inspects and compiles. The bytes were inspected at registration; they are inspected again
    /// because stored bytes may be from an older version, or damaged.
    pub(crate) fn compile(&self, bytes: &[u8]) -> Result<CompiledModule, Broken> {
        let info = inspection::read(bytes)?;
        let started = Instant::now();
        let module =
            Module::from_binary(&self.engine, bytes).map_err(|error| not_compiled(&error))?;
        let instance = self
            .bind(&module, info.abi)
            .map_err(|error| not_compiled(&error))?;
        let image = module.image_range();
        let code_bytes = image.end.addr() - image.start.addr();
        check_code_bytes(code_bytes)?;
        let elapsed = started.elapsed();
        tracing::debug!(bytes = bytes.len(), ?elapsed, "compiled a WASM module");
        Ok(CompiledModule {
            info,
            instance,
            code: self.code.count(code_bytes),
        })
    }

    fn bind(&self, module: &Module, abi: Abi) -> wasmtime::Result<BoundModule> {
        Ok(match abi {
            Abi::Flo => BoundModule::Flo(self.flo.instantiate_pre(module)?),
            Abi::Wasi => BoundModule::Wasi(self.wasi.instantiate_pre(module)?),
        })
    }
}

/// Compiles a module and drops the result: for a process with limits, which finds out whether the module can
/// be compiled within them (A9). Returns the bytes of the compiled code.
///
/// # Errors
/// [`Broken`] if the module cannot be compiled.
pub fn try_compile(bytes: &[u8]) -> Result<usize, Broken> {
    inspection::read(bytes)?;
    let engine = engine().map_err(|error| Broken::Sandbox {
        reason: format!("{error:#}"),
    })?;
    let code = engine
        .precompile_module(bytes)
        .map_err(|error| not_compiled(&error))?;
    Ok(code.len())
}

fn engine() -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.wasm_features(FEATURES.complement(), false);
    config.wasm_features(FEATURES, true);
    config.epoch_interruption(true);
    // A trap is reported by its kind: frames would be collected and never shown.
    config.wasm_backtrace_max_frames(None);
    Engine::new(&config)
}

fn not_compiled(error: &wasmtime::Error) -> Broken {
    Broken::Compile {
        reason: format!("{error:#}"),
    }
}

/// Checks that a module's compiled code is not too large to be cached.
///
/// # Errors
/// [`Broken::CodeTooLarge`] otherwise.
pub fn check_code_bytes(bytes: usize) -> Result<(), Broken> {
    if bytes > CODE_BYTES_MAX {
        return Err(Broken::CodeTooLarge { bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::to_binary;

    /// A module that imports everything that its ABI provides, with the types of the table.
    fn importing_all(abi: Abi) -> Vec<u8> {
        let list = |kind: &str, types: &[wasmparser::ValType]| {
            let types = types.iter().map(|one| format!("({kind} {one})"));
            types.collect::<String>()
        };
        let imports = abi.imports().map(|(module, import)| {
            let (params, results) = (import.signature.params, import.signature.results);
            let (params, results) = (list("param", params), list("result", results));
            let name = import.name;
            format!(r#"(import "{module}" "{name}" (func {params} {results}))"#)
        });
        let imports: String = imports.collect();
        let exports = match abi {
            Abi::Flo => {
                r#"(func (export "alloc") (param i32) (result i32) unreachable)
                   (func (export "handle") (param i32 i32) (result i64) unreachable)"#
            }
            Abi::Wasi => r#"(func (export "_start"))"#,
        };
        let text = format!(r#"(module {imports} (memory (export "memory") 1) {exports})"#);
        to_binary(text.as_bytes()).unwrap().into_owned()
    }

    #[test]
    fn every_import_in_the_tables_is_bound_with_the_type_in_the_tables() {
        for (abi, count) in [(Abi::Flo, 8), (Abi::Wasi, 49)] {
            assert_eq!(abi.imports().count(), count);
            let compiled = Compiler::new().unwrap().compile(&importing_all(abi));
            assert_eq!(compiled.unwrap().info.abi, abi);
        }
    }
}
