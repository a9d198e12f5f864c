//! The host's functions in ABI 1, the module `flo` (A7).

use super::refusal::{CallRefused, answer};
use super::{Services, requests};
use crate::abi::flo::{KV_DELETE, KV_GET, KV_SET, LOG, MODULE, SET_OUTCOME};
use crate::guest::{self, Guest};
use crate::host::KvError;
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::log::{LogLevel, Logs};
use crate::outcome::OutcomeName;
use crate::span::Span;
use wasmtime::Linker;

type Caller<'a> = wasmtime::Caller<'a, Guest<Services>>;

/// Binds every function of the module `flo`.
pub(crate) fn link(linker: &mut Linker<Guest<Services>>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        LOG,
        |mut call: Caller<'_>, level, pointer, length| {
            log(&mut call, level, Span::new(pointer, length));
        },
    )?;
    linker.func_wrap(
        MODULE,
        KV_GET,
        |mut call: Caller<'_>, key, key_length, buffer, buffer_length| {
            let (key, buffer) = (Span::new(key, key_length), Span::new(buffer, buffer_length));
            let result = kv_get(&mut call, key, buffer);
            answer_in_time(&call, result)
        },
    )?;
    linker.func_wrap(
        MODULE,
        KV_SET,
        |mut call: Caller<'_>, key, key_length, value, value_length| {
            let (key, value) = (Span::new(key, key_length), Span::new(value, value_length));
            let result = kv_set(&mut call, key, value);
            answer_in_time(&call, result)
        },
    )?;
    linker.func_wrap(
        MODULE,
        KV_DELETE,
        |mut call: Caller<'_>, key, key_length| {
            let result = kv_delete(&mut call, Span::new(key, key_length));
            answer_in_time(&call, result)
        },
    )?;
    linker.func_wrap(
        MODULE,
        SET_OUTCOME,
        |mut call: Caller<'_>, pointer, length| {
            answer(set_outcome(&mut call, Span::new(pointer, length)))
        },
    )?;
    requests::link(linker)
}

/// It returns nothing, so a line outside the memory can only be counted.
fn log(call: &mut Caller<'_>, level: i32, text: Span) {
    let Some((memory, guest)) = guest::split(call) else {
        return;
    };
    match text.read(memory) {
        Some(text) => guest.logs.push(LogLevel::from_wire(level), text),
        None => guest.logs.drop_line(),
    }
}

/// The value's length, once it is in the buffer.
fn kv_get(call: &mut Caller<'_>, key: Span, buffer: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = guest::split(call).ok_or(CallRefused::BadPointer)?;
    // The buffer is checked first, so that an invalid one costs no read of the store.
    buffer.read(memory).ok_or(CallRefused::BadPointer)?;
    let key = within(memory, key, KEY_BYTES_MAX)?;
    let found = guest.state.host.kv_get(key, guest.deadline.at());
    let value = found
        .map_err(|error| refused_by_store(&error, &mut guest.logs))?
        .ok_or(CallRefused::NotFound)?;
    let buffer = buffer.write(memory).ok_or(CallRefused::BadPointer)?;
    buffer
        .get_mut(..value.len())
        .ok_or(CallRefused::BufferTooSmall)?
        .copy_from_slice(&value);
    i32::try_from(value.len()).map_err(|_| CallRefused::BufferTooSmall)
}

fn kv_set(call: &mut Caller<'_>, key: Span, value: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = guest::split(call).ok_or(CallRefused::BadPointer)?;
    let key = within(memory, key, KEY_BYTES_MAX)?;
    let value = within(memory, value, VALUE_BYTES_MAX)?;
    let deadline = guest.deadline.at();
    let set = guest.state.host.kv_set(key, value, deadline);
    set.map_err(|error| refused_by_store(&error, &mut guest.logs))?;
    Ok(0)
}

fn kv_delete(call: &mut Caller<'_>, key: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = guest::split(call).ok_or(CallRefused::BadPointer)?;
    let key = within(memory, key, KEY_BYTES_MAX)?;
    let deadline = guest.deadline.at();
    let deleted = guest.state.host.kv_delete(key, deadline);
    if deleted.map_err(|error| refused_by_store(&error, &mut guest.logs))? {
        Ok(0)
    } else {
        Err(CallRefused::NotFound)
    }
}

/// The last name given wins.
fn set_outcome(call: &mut Caller<'_>, name: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = guest::split(call).ok_or(CallRefused::BadPointer)?;
    let name = name.read(memory).ok_or(CallRefused::BadPointer)?;
    let name = std::str::from_utf8(name).map_err(|_| CallRefused::BadValue)?;
    guest.state.outcome = OutcomeName::new(name).map_err(|_| CallRefused::BadValue)?;
    Ok(0)
}

/// A key or a value for the store, within its size limit.
fn within(memory: &[u8], span: Span, bytes_max: usize) -> Result<&[u8], CallRefused> {
    let bytes = span.read(memory).ok_or(CallRefused::BadPointer)?;
    if bytes.len() > bytes_max {
        return Err(CallRefused::Store);
    }
    Ok(bytes)
}

/// The guest gets a code; the cause is logged to the call's log, for the action's author.
fn refused_by_store(error: &KvError, logs: &mut Logs) -> CallRefused {
    logs.push(LogLevel::Warn, error.to_string().as_bytes());
    CallRefused::Store
}

/// The result of a function that may have waited: the call ends here once its time is over.
fn answer_in_time(call: &Caller<'_>, result: Result<i32, CallRefused>) -> wasmtime::Result<i32> {
    call.data().deadline.check()?;
    Ok(answer(result))
}
