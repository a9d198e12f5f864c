//! The host's functions in ABI 1, the module `flo` (A7).

use crate::abi::{self, FLO, KV_DELETE, KV_GET, KV_SET, LOG, SET_OUTCOME};
use crate::guest::Guest;
use crate::host::KvError;
use crate::log::LogLevel;
use crate::outcome::OutcomeName;
use crate::span::Span;
use wasmtime::{Caller, Extern, Linker};

/// Why a call of the host was not carried out: the guest gets its code as a negative number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallRefused {
    /// −1: no such key.
    NotFound,
    /// −3: the value is longer than the guest's buffer.
    BufferTooSmall,
    /// −5: the store did not answer.
    Store,
    /// −6: a stretch that is not within the guest's memory.
    BadPointer,
    /// −7: a name that is no outcome of an action (ours, as is `set_outcome`).
    BadOutcome,
}

/// Binds every function of [`Abi::imports`](crate::Abi).
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    type Call<'a> = Caller<'a, Guest>;
    linker.func_wrap(FLO, LOG, |mut call: Call<'_>, level, pointer, length| {
        log(&mut call, level, Span::new(pointer, length));
    })?;
    linker.func_wrap(
        FLO,
        KV_GET,
        |mut call: Call<'_>, key, key_length, buffer, buffer_length| {
            let (key, buffer) = (Span::new(key, key_length), Span::new(buffer, buffer_length));
            answer(kv_get(&mut call, key, buffer))
        },
    )?;
    linker.func_wrap(
        FLO,
        KV_SET,
        |mut call: Call<'_>, key, key_length, value, value_length| {
            let (key, value) = (Span::new(key, key_length), Span::new(value, value_length));
            answer(kv_set(&mut call, key, value))
        },
    )?;
    linker.func_wrap(FLO, KV_DELETE, |mut call: Call<'_>, key, key_length| {
        answer(kv_delete(&mut call, Span::new(key, key_length)))
    })?;
    linker.func_wrap(FLO, SET_OUTCOME, |mut call: Call<'_>, pointer, length| {
        answer(set_outcome(&mut call, Span::new(pointer, length)))
    })?;
    Ok(())
}

/// It answers nothing, so a line outside the memory can only be counted.
fn log(call: &mut Caller<'_, Guest>, level: i32, text: Span) {
    let Some((memory, guest)) = split(call) else {
        return;
    };
    match text.read(memory) {
        Some(text) => guest.logs.push(LogLevel::from_wire(level), text),
        None => guest.logs.drop_line(),
    }
}

/// The value's length, once it is in the buffer.
fn kv_get(call: &mut Caller<'_, Guest>, key: Span, buffer: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = split(call).ok_or(CallRefused::BadPointer)?;
    // The buffer is looked at first, so that a bad one costs no read of the store.
    buffer.read(memory).ok_or(CallRefused::BadPointer)?;
    let key = key.read(memory).ok_or(CallRefused::BadPointer)?;
    let value = guest
        .host
        .kv_get(key)
        .map_err(refused_by_store)?
        .ok_or(CallRefused::NotFound)?;
    let buffer = buffer.write(memory).ok_or(CallRefused::BadPointer)?;
    buffer
        .get_mut(..value.len())
        .ok_or(CallRefused::BufferTooSmall)?
        .copy_from_slice(&value);
    i32::try_from(value.len()).map_err(|_| CallRefused::BufferTooSmall)
}

fn kv_set(call: &mut Caller<'_, Guest>, key: Span, value: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = split(call).ok_or(CallRefused::BadPointer)?;
    let key = key.read(memory).ok_or(CallRefused::BadPointer)?;
    let value = value.read(memory).ok_or(CallRefused::BadPointer)?;
    guest.host.kv_set(key, value).map_err(refused_by_store)?;
    Ok(0)
}

fn kv_delete(call: &mut Caller<'_, Guest>, key: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = split(call).ok_or(CallRefused::BadPointer)?;
    let key = key.read(memory).ok_or(CallRefused::BadPointer)?;
    if guest.host.kv_delete(key).map_err(refused_by_store)? {
        Ok(0)
    } else {
        Err(CallRefused::NotFound)
    }
}

/// The last name given wins.
fn set_outcome(call: &mut Caller<'_, Guest>, name: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = split(call).ok_or(CallRefused::BadPointer)?;
    let name = name.read(memory).ok_or(CallRefused::BadPointer)?;
    let name = std::str::from_utf8(name).map_err(|_| CallRefused::BadOutcome)?;
    guest.outcome = OutcomeName::new(name).map_err(|_| CallRefused::BadOutcome)?;
    Ok(0)
}

/// The guest's memory beside the host's state. Inspection saw to it that there is a memory.
fn split<'a>(call: &'a mut Caller<'_, Guest>) -> Option<(&'a mut [u8], &'a mut Guest)> {
    let memory = call.get_export(abi::MEMORY).and_then(Extern::into_memory)?;
    Some(memory.data_and_store_mut(call))
}

fn refused_by_store(error: KvError) -> CallRefused {
    tracing::debug!(%error, "a WASM action's call of the key-value store failed");
    CallRefused::Store
}

fn answer(result: Result<i32, CallRefused>) -> i32 {
    match result {
        Ok(value) => value,
        Err(CallRefused::NotFound) => -1,
        Err(CallRefused::BufferTooSmall) => -3,
        Err(CallRefused::Store) => -5,
        Err(CallRefused::BadPointer) => -6,
        Err(CallRefused::BadOutcome) => -7,
    }
}
