//! Inspects a module at registration: validation and interface, without compiling it.

use crate::abi::{self, Abi, Export, Import, Signature, flo, preview1};
use crate::limits::{
    FUNCTION_BYTES_MAX, FUNCTION_LOCALS_MAX, FUNCTIONS_MAX, Limits, MODULE_LOCALS_MAX, PAGE_BYTES,
    TABLE_ELEMENTS_MAX, TABLES_MAX,
};
use crate::rejection::ModuleRejected;
use crate::text::shown;
use wasmparser::types::{EntityType, Types};
use wasmparser::{BinaryReaderError, FunctionBody, Parser, Payload, Validator, WasmFeatures};

/// The WebAssembly features that a module may use: WebAssembly 2.0 and what compilers add to it by
/// default.
///
/// Threads, 64-bit and multiple memories, garbage collection and components are excluded: each
/// would need its own limits. The engine compiles with the same set.
pub(crate) const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::TAIL_CALL)
    .difference(WasmFeatures::GC_TYPES);

/// What inspection finds out about a valid module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleInfo {
    /// The ABI that it follows.
    pub abi: Abi,
    /// The memory that it needs from the start. In bytes.
    pub memory_bytes_min: u64,
}

/// Checks that a binary module can be an action with these limits (A9).
///
/// A pure function of its arguments: it runs nothing and compiles nothing. Convert text to a binary
/// with [`to_binary`](crate::to_binary) first.
///
/// # Errors
/// [`ModuleRejected`] for a module that is malformed, imports anything but the host's functions,
/// lacks an export of its ABI or has one with another type, declares more memory or tables than it
/// may use, or has more code than can be compiled in a bounded time.
pub fn inspect(module: &[u8], limits: &Limits) -> Result<ModuleInfo, ModuleRejected> {
    let info = read(module)?;
    check_memory(&info, limits)?;
    Ok(info)
}

/// The part of [`inspect`] that does not depend on the action's limits.
pub(crate) fn read(module: &[u8]) -> Result<ModuleInfo, ModuleRejected> {
    if Parser::is_component(module) {
        return Err(ModuleRejected::Component);
    }
    let types = Validator::new_with_features(FEATURES)
        .validate_all(module)
        .map_err(|error| malformed(&error))?;
    check_code(module)?;
    let interface = Interface { types: &types };
    let abi = interface.detect_abi();
    interface.check_imports(abi)?;
    let memory_bytes_min = interface.check_memory_export()?;
    for export in abi.exports() {
        interface.check_export(export)?;
    }
    interface.check_tables()?;
    Ok(ModuleInfo {
        abi,
        memory_bytes_min,
    })
}

fn malformed(error: &BinaryReaderError) -> ModuleRejected {
    ModuleRejected::Malformed {
        offset: error.offset(),
        reason: shown(error.message()),
    }
}

/// Checks the functions of a valid module: the compiler's time and memory grow faster than a function's size.
fn check_code(module: &[u8]) -> Result<(), ModuleRejected> {
    let (mut function, mut locals) = (0, 0_u32);
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| malformed(&error))? {
            Payload::ImportSection(imports) => {
                // The functions of a module are counted from its imports on, which are all functions.
                function = imports.count();
            }
            Payload::CodeSectionStart { count, .. } if count > FUNCTIONS_MAX => {
                let count_max = FUNCTIONS_MAX;
                return Err(ModuleRejected::TooManyFunctions { count, count_max });
            }
            Payload::CodeSectionEntry(body) => {
                locals = locals.saturating_add(check_function(function, &body)?);
                function = function.saturating_add(1);
            }
            _ => {}
        }
    }
    if locals > MODULE_LOCALS_MAX {
        let count_max = MODULE_LOCALS_MAX;
        return Err(ModuleRejected::TooManyLocalsInAll { count_max });
    }
    Ok(())
}

/// The number of a function's local variables.
fn check_function(function: u32, body: &FunctionBody<'_>) -> Result<u32, ModuleRejected> {
    let bytes = body.range().len();
    if bytes > FUNCTION_BYTES_MAX {
        return Err(ModuleRejected::FunctionTooLarge {
            function,
            bytes,
            bytes_max: FUNCTION_BYTES_MAX,
        });
    }
    let mut count = 0_u32;
    let locals = body
        .get_locals_reader()
        .map_err(|error| malformed(&error))?;
    for group in locals {
        let (same, _) = group.map_err(|error| malformed(&error))?;
        count = count.saturating_add(same);
    }
    if count > FUNCTION_LOCALS_MAX {
        return Err(ModuleRejected::TooManyLocals {
            function,
            count,
            count_max: FUNCTION_LOCALS_MAX,
        });
    }
    Ok(count)
}

/// Checks that a module's memory fits into the action's limit.
pub(crate) fn check_memory(info: &ModuleInfo, limits: &Limits) -> Result<(), ModuleRejected> {
    let bytes_max = limits.max_memory_bytes();
    match usize::try_from(info.memory_bytes_min) {
        Ok(bytes_min) if bytes_min <= bytes_max => Ok(()),
        _ => Err(ModuleRejected::MemoryTooLarge {
            bytes_min: info.memory_bytes_min,
            bytes_max,
        }),
    }
}

/// The names and types of a valid module's imports and exports.
struct Interface<'a> {
    types: &'a Types,
}

impl Interface<'_> {
    /// A module with the entry points of both ABIs follows Flo's own: compilers export `_start` by
    /// default, but `handle` is never exported by accident.
    fn detect_abi(&self) -> Abi {
        if self.export(preview1::START).is_some() && self.export(flo::HANDLE).is_none() {
            Abi::Wasi
        } else {
            Abi::Flo
        }
    }

    fn check_imports(&self, abi: Abi) -> Result<(), ModuleRejected> {
        for (module, name, entity) in self.types.as_ref().core_imports().into_iter().flatten() {
            let offered = abi
                .imports()
                .find(|(of, import)| module == *of && name == import.name);
            let Some((of, Import { name, signature })) = offered else {
                return Err(ModuleRejected::ForeignImport {
                    offered: abi.module(),
                    module: shown(module),
                    name: shown(name),
                });
            };
            if self.signature(entity) != Some(*signature) {
                return Err(ModuleRejected::MistypedImport {
                    module: of,
                    name,
                    expected: signature.to_string(),
                    actual: self.describe(entity),
                });
            }
        }
        Ok(())
    }

    /// The memory's minimum in bytes.
    fn check_memory_export(&self) -> Result<u64, ModuleRejected> {
        let (name, expected) = (abi::MEMORY, "a memory".to_owned());
        match self.export(name) {
            Some(EntityType::Memory(memory)) => {
                Ok(memory.initial.saturating_mul(const { PAGE_BYTES as u64 }))
            }
            Some(entity) => {
                let actual = self.describe(entity);
                Err(ModuleRejected::MistypedExport {
                    name,
                    expected,
                    actual,
                })
            }
            None => Err(ModuleRejected::MissingExport { name, expected }),
        }
    }

    fn check_export(&self, export: &Export) -> Result<(), ModuleRejected> {
        let (name, expected) = (export.name, export.signature);
        match self.export(name) {
            Some(entity) if self.signature(entity) == Some(expected) => Ok(()),
            Some(entity) => Err(ModuleRejected::MistypedExport {
                name,
                expected: expected.to_string(),
                actual: self.describe(entity),
            }),
            None if export.is_required => Err(ModuleRejected::MissingExport {
                name,
                expected: expected.to_string(),
            }),
            None => Ok(()),
        }
    }

    fn check_tables(&self) -> Result<(), ModuleRejected> {
        let count = self.types.as_ref().table_count();
        if count > TABLES_MAX {
            return Err(ModuleRejected::TooManyTables {
                count,
                count_max: TABLES_MAX,
            });
        }
        for index in 0..count {
            let elements = self.types.as_ref().table_at(index).initial;
            if elements > const { TABLE_ELEMENTS_MAX as u64 } {
                let elements_max = TABLE_ELEMENTS_MAX;
                return Err(ModuleRejected::TableTooLarge {
                    elements,
                    elements_max,
                });
            }
        }
        Ok(())
    }

    fn export(&self, wanted: &str) -> Option<EntityType> {
        let mut exports = self.types.as_ref().core_exports()?;
        exports
            .find(|(name, _)| *name == wanted)
            .map(|(_, entity)| entity)
    }

    /// The type of a function; `None` for any other entity.
    fn signature(&self, entity: EntityType) -> Option<Signature<'_>> {
        let EntityType::Func(id) = entity else {
            return None;
        };
        let function = self.types[id].unwrap_func();
        Some(Signature {
            params: function.params(),
            results: function.results(),
        })
    }

    fn describe(&self, entity: EntityType) -> String {
        match entity {
            EntityType::Memory(_) => "a memory".to_owned(),
            EntityType::Table(_) => "a table".to_owned(),
            EntityType::Global(_) => "a global".to_owned(),
            EntityType::Tag(_) => "a tag".to_owned(),
            EntityType::Func(_) | EntityType::FuncExact(_) => self
                .signature(entity)
                .map_or_else(|| "a function".to_owned(), |s| shown(&s.to_string())),
        }
    }
}
