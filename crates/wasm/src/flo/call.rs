//! One call of an ABI 1 module, from an empty instance to its output (A7).

use super::Services;
use crate::abi::{self, flo};
use crate::error::{Broken, Failure, InvocationError};
use crate::guest::{self, Guest};
use crate::limits::Limits;
use crate::outcome::OutcomeName;
use crate::sandbox::{Answer, Invocation, Report, Requests};
use crate::span::Span;
use wasmtime::{Instance, InstancePre, Memory, Store, WasmParams, WasmResults};

/// Runs a module once, in a fresh instance.
pub(crate) fn run(module: &InstancePre<Guest<Services>>, invocation: Invocation<'_>) -> Report {
    let limits = &invocation.limits;
    let services = Services {
        host: invocation.host,
        outcome: OutcomeName::SUCCESS,
        requests: Requests::default(),
    };
    let mut store = guest::open(module, services, limits);
    let output = FloCall::begin(module, &mut store, limits)
        .and_then(|mut call| call.handle(invocation.input));
    let Guest { logs, state, .. } = store.into_data();
    Report {
        result: output.map(|output| Answer {
            outcome: state.outcome,
            output,
        }),
        requests: state.requests,
        logs,
    }
}

/// A fresh, initialized instance of an ABI 1 module.
struct FloCall<'a> {
    store: &'a mut Store<Guest<Services>>,
    instance: Instance,
    memory: Memory,
    limits: &'a Limits,
}

impl<'a> FloCall<'a> {
    fn begin(
        module: &InstancePre<Guest<Services>>,
        store: &'a mut Store<Guest<Services>>,
        limits: &'a Limits,
    ) -> Result<Self, InvocationError> {
        let instance = module
            .instantiate(&mut *store)
            .map_err(|error| InvocationError::from_engine(&error, limits.timeout_ms()))?;
        let memory = instance
            .get_memory(&mut *store, abi::MEMORY)
            .ok_or_else(|| Broken::Sandbox {
                reason: "an inspected module has no memory".to_owned(),
            })?;
        let mut call = Self {
            store,
            instance,
            memory,
            limits,
        };
        if call.exports(flo::INIT) {
            match call.invoke(flo::INIT, ())? {
                0 => {}
                code => return Err(Failure::InitFailed { code }.into()),
            }
        }
        Ok(call)
    }

    fn handle(&mut self, input: &[u8]) -> Result<Vec<u8>, InvocationError> {
        let input = self.place(input)?;
        let answer: i64 = self.invoke(flo::HANDLE, (input.pointer, input.length))?;
        let output = unpack(answer)?;
        let bytes = self.read(output)?;
        if output.length > 0 && self.exports(flo::DEALLOC) {
            // The output only: the guest owns the input.
            self.invoke::<_, ()>(flo::DEALLOC, (output.pointer, output.length))?;
        }
        Ok(bytes)
    }

    /// Copies the input to the memory that the guest allocates. An empty input needs none.
    fn place(&mut self, input: &[u8]) -> Result<Span, InvocationError> {
        let not_placed = |pointer| Failure::InputNotPlaced {
            pointer,
            length: input.len(),
        };
        let length = u32::try_from(input.len()).map_err(|_| not_placed(0))?;
        if length == 0 {
            return Ok(Span::new(0, 0));
        }
        let pointer: u32 = self.invoke(flo::ALLOC, (length,))?;
        let span = Span::new(pointer, length);
        span.write(self.memory.data_mut(&mut *self.store))
            .filter(|_| pointer != 0)
            .ok_or_else(|| not_placed(pointer))?
            .copy_from_slice(input);
        Ok(span)
    }

    fn read(&self, output: Span) -> Result<Vec<u8>, Failure> {
        let bytes_max = self.limits.max_output_bytes();
        let memory = self.memory.data(&*self.store);
        let Span { pointer, length } = output;
        match output.read(memory) {
            Some(bytes) if bytes.len() <= bytes_max => Ok(bytes.to_vec()),
            Some(_) => Err(Failure::OutputTooLarge {
                bytes: length,
                bytes_max,
            }),
            None => Err(Failure::OutputOutOfBounds {
                pointer,
                length,
                memory_bytes: memory.len(),
            }),
        }
    }

    fn exports(&mut self, name: &str) -> bool {
        self.instance.get_func(&mut *self.store, name).is_some()
    }

    /// Calls an export, whose type was inspected.
    fn invoke<Params, Results>(
        &mut self,
        name: &str,
        params: Params,
    ) -> Result<Results, InvocationError>
    where
        Params: WasmParams,
        Results: WasmResults,
    {
        self.instance
            .get_typed_func::<Params, Results>(&mut *self.store, name)
            .and_then(|function| function.call(&mut *self.store, params))
            .map_err(|error| InvocationError::from_engine(&error, self.limits.timeout_ms()))
    }
}

/// The high half is the pointer, the low half the length; a negative number is a code.
fn unpack(answer: i64) -> Result<Span, Failure> {
    if answer < 0 {
        return Err(Failure::from_code(answer));
    }
    let [a, b, c, d, e, f, g, h] = answer.to_be_bytes();
    Ok(Span::new(
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    ))
}
