//! Limits a guest's memory and tables.

use crate::error::{Failure, InvocationError};
use crate::limits::{TABLE_ELEMENTS_MAX, TABLES_MAX};
use wasmtime::ResourceLimiter;

/// Ends a call that requests more than its limit.
///
/// By WebAssembly's rules `memory.grow` would return −1, and guests turn that into an `unreachable`
/// without a trace of its cause. Ending the call here keeps the cause, so that the action's owner
/// reads "memory limit" and not "unreachable". Growth past a maximum that the module itself
/// declares still returns −1.
pub(crate) struct Limiter {
    pub(crate) max_memory_bytes: usize,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let bytes_max = self.max_memory_bytes;
        if desired > bytes_max {
            let exceeded = Failure::MemoryExceeded {
                bytes_wanted: desired,
                bytes_max,
            };
            return Err(InvocationError::from(exceeded).into());
        }
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        if desired > TABLE_ELEMENTS_MAX {
            let exceeded = Failure::TableExceeded {
                elements_wanted: desired,
            };
            return Err(InvocationError::from(exceeded).into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        const { TABLES_MAX as usize }
    }

    fn memories(&self) -> usize {
        1
    }
}
