//! The host's state for one call.

use crate::abi;
use crate::deadline::Deadline;
use crate::limiter::Limiter;
use crate::limits::Limits;
use crate::log::Logs;
use crate::ticker;
use wasmtime::{Caller, Extern, InstancePre, Store};

/// The host's side of one instance, dropped with it. `S` is what the instance's ABI adds.
pub(crate) struct Guest<S> {
    pub(crate) limiter: Limiter,
    pub(crate) deadline: Deadline,
    pub(crate) logs: Logs,
    pub(crate) state: S,
}

/// A store for one instance of a module, with its limits set. The call's time begins now.
pub(crate) fn open<S>(
    module: &InstancePre<Guest<S>>,
    state: S,
    limits: &Limits,
) -> Store<Guest<S>> {
    let guest = Guest {
        limiter: Limiter {
            max_memory_bytes: limits.max_memory_bytes(),
        },
        deadline: Deadline::starting_now(limits.timeout_ms()),
        logs: Logs::default(),
        state,
    };
    let mut store = Store::new(module.module().engine(), guest);
    store.limiter(|guest| &mut guest.limiter);
    store.set_epoch_deadline(ticker::ticks_in(limits.timeout_ms()));
    store
}

/// The guest's memory and the host's state. Inspection guarantees that there is a memory.
pub(crate) fn split<'a, S>(
    call: &'a mut Caller<'_, Guest<S>>,
) -> Option<(&'a mut [u8], &'a mut Guest<S>)> {
    let memory = call.get_export(abi::MEMORY).and_then(Extern::into_memory)?;
    Some(memory.data_and_store_mut(call))
}
