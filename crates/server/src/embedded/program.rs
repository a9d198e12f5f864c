//! The program of a WASM action: its module and its limits.

use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view;
use flotilla_engine::{ActionType, WasmLimits};
use flotilla_leader::ActionKey;
use flotilla_wasm::{Limits, ModuleDigest};

/// The program of a WASM action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Program {
    digest: [u8; 32],
    limits: Limits,
}

/// A program with its module.
type Stored = (Program, Vec<u8>);

impl Program {
    /// The identity of its module.
    pub(super) fn digest(&self) -> ModuleDigest {
        ModuleDigest(self.digest)
    }

    /// The limits of a call.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// The program of an action; `None` if the action was deleted or is no longer a WASM action.
    pub(super) fn find(reader: &dyn Reader, key: &ActionKey) -> Result<Option<Self>, StoreError> {
        let Some(record) = view::action_record(reader, &key.0, &key.1)? else {
            return Ok(None);
        };
        let ActionType::Wasm { digest, limits } = record.kind else {
            return Ok(None);
        };
        let WasmLimits {
            max_memory_bytes,
            max_output_bytes,
        } = limits;
        let limits = Limits::new(max_memory_bytes, max_output_bytes, record.timeout_ms);
        Ok(Some(Self {
            digest,
            // The limits were validated when the action was registered.
            limits: limits.unwrap_or_default(),
        }))
    }

    /// The program of an action and its module, both from the same state.
    pub(super) fn load(reader: &dyn Reader, key: &ActionKey) -> Result<Option<Stored>, StoreError> {
        let Some(program) = Self::find(reader, key)? else {
            return Ok(None);
        };
        let module = view::module(reader, &key.0, &key.1)?;
        Ok(module
            .filter(|module| module.digest == program.digest)
            .map(|module| (program, module.bytes)))
    }
}
