//! What a module asks for beside its result, in any ABI: a state patch (W66), its usage (W87), a delay (W74).

use super::refusal::{CallRefused, answer};
use crate::abi::flo::{MODULE, SET_DELAY, SET_STATE_PATCH, SET_USAGE};
use crate::guest::{self, Guest};
use crate::limits::{DELAY_MS_MAX, STATE_PATCH_BYTES_MAX, USAGE_BYTES_MAX};
use crate::sandbox::Requests;
use crate::span::Span;
use wasmtime::Linker;

type Caller<'a, S> = wasmtime::Caller<'a, Guest<S>>;

/// The state of a guest that can ask for more than its result.
pub(crate) trait HasRequests: 'static {
    /// What it has asked for so far.
    fn requests(&mut self) -> &mut Requests;
}

/// Binds the functions that set what a module asks for.
pub(crate) fn link<S: HasRequests>(linker: &mut Linker<Guest<S>>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        SET_STATE_PATCH,
        |mut call: Caller<'_, S>, pointer, length| {
            answer(set_state_patch(&mut call, Span::new(pointer, length)))
        },
    )?;
    linker.func_wrap(
        MODULE,
        SET_USAGE,
        |mut call: Caller<'_, S>, pointer, length| {
            answer(set_usage(&mut call, Span::new(pointer, length)))
        },
    )?;
    linker.func_wrap(
        MODULE,
        SET_DELAY,
        |mut call: Caller<'_, S>, delay_ms: i64| answer(set_delay(&mut call, delay_ms)),
    )?;
    Ok(())
}

/// The last patch given wins. Whether it is JSON is checked with the report.
fn set_state_patch<S: HasRequests>(
    call: &mut Caller<'_, S>,
    patch: Span,
) -> Result<i32, CallRefused> {
    let (memory, guest) = guest::split(call).ok_or(CallRefused::BadPointer)?;
    let patch = patch.read(memory).ok_or(CallRefused::BadPointer)?;
    if patch.len() > STATE_PATCH_BYTES_MAX {
        return Err(CallRefused::BadValue);
    }
    guest.state.requests().state_patch = patch.to_vec();
    Ok(0)
}

/// The last usage given wins. Whether it is JSON is checked with the report.
fn set_usage<S: HasRequests>(call: &mut Caller<'_, S>, usage: Span) -> Result<i32, CallRefused> {
    let (memory, guest) = guest::split(call).ok_or(CallRefused::BadPointer)?;
    let usage = usage.read(memory).ok_or(CallRefused::BadPointer)?;
    if usage.len() > USAGE_BYTES_MAX {
        return Err(CallRefused::BadValue);
    }
    guest.state.requests().usage = usage.to_vec();
    Ok(0)
}

/// The last delay given wins; 0 is none.
fn set_delay<S: HasRequests>(call: &mut Caller<'_, S>, delay_ms: i64) -> Result<i32, CallRefused> {
    let delay_ms = u64::try_from(delay_ms).ok();
    let delay_ms = delay_ms.filter(|delay_ms| *delay_ms <= DELAY_MS_MAX);
    call.data_mut().state.requests().delay_ms = delay_ms.ok_or(CallRefused::BadValue)?;
    Ok(0)
}
