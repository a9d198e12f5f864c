//! The program of a WASM action: its module and its limits.

use crate::errors::Refusal;
use crate::workers::ActionKey;
use flotilla_api::v1;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view;
use flotilla_engine::{ActionType, WasmLimits};
use flotilla_wasm::{
    Broken, Host, Invocation, Limits, Logs, ModuleDigest, Report, Requests, Sandbox, Task,
};
use std::cell::Cell;

/// The program of a WASM action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Program {
    digest: [u8; 32],
    limits: Limits,
}

/// A program with its module.
type Stored = (Program, Vec<u8>);

impl Program {
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

/// One task, ready to run.
pub(super) struct Call<'a> {
    /// Where it runs.
    pub(super) sandbox: &'a Sandbox,
    /// The task, with its input.
    pub(super) task: &'a v1::TaskAssignment,
    /// The host functions that the program may call.
    pub(super) host: &'a dyn Fn() -> Box<dyn Host>,
}

impl Call<'_> {
    /// Runs a program once. `load` supplies its module if it is not compiled yet; if the action was
    /// re-registered meanwhile, the newer program runs.
    ///
    /// # Errors
    /// The refusal of `load`: it is unknown whether the module exists.
    pub(super) fn run(
        &self,
        program: Option<Program>,
        load: impl Fn() -> Result<Option<Stored>, Refusal>,
    ) -> Result<Report, Refusal> {
        let Some(program) = program else {
            return Ok(missing());
        };
        let (newer, refused) = (Cell::new(None), Cell::new(None));
        let module = || match load() {
            Ok(Some((stored, module))) if stored.digest == program.digest => Some(module),
            Ok(stored) => {
                newer.set(stored);
                None
            }
            Err(refusal) => {
                refused.set(Some(refusal));
                None
            }
        };
        let report = self.invoke(program, &module);
        if let Some(refusal) = refused.take() {
            return Err(refusal);
        }
        let Some((program, module)) = newer.take() else {
            return Ok(report);
        };
        let module = Cell::new(Some(module));
        Ok(self.invoke(program, &|| module.take()))
    }

    fn invoke(&self, program: Program, module: &dyn Fn() -> Option<Vec<u8>>) -> Report {
        let task = self.task;
        self.sandbox.invoke(Invocation {
            digest: ModuleDigest(program.digest),
            module,
            input: &task.input,
            limits: program.limits,
            task: Task {
                run_id: task.run_id.as_ref().unwrap_or(&task.action_run_id),
                action: &task.action,
                attempt: task.attempt,
            },
            host: (self.host)(),
        })
    }
}

/// The sandbox's report for an action without a module (A7).
fn missing() -> Report {
    Report {
        result: Err(Broken::Missing.into()),
        requests: Requests::default(),
        logs: Logs::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_wasm::{InvocationError, NoStore};

    /// A module that returns a digit for every input, with the digit as its digest.
    fn stored(digit: u8) -> Stored {
        let text = format!(
            r#"(module
                (memory (export "memory") 1)
                (data (i32.const 16) "{digit}")
                (func (export "alloc") (param i32) (result i32) i32.const 1024)
                (func (export "handle") (param i32 i32) (result i64) i64.const 68719476737))"#
        );
        let module = flotilla_wasm::to_binary(text.as_bytes()).unwrap();
        (program(digit), module.into_owned())
    }

    fn program(digit: u8) -> Program {
        Program {
            digest: [digit; 32],
            limits: Limits::default(),
        }
    }

    fn called(
        program: Option<Program>,
        load: impl Fn() -> Result<Option<Stored>, Refusal>,
    ) -> Result<Result<Vec<u8>, InvocationError>, Refusal> {
        let sandbox = Sandbox::new().unwrap();
        let task = v1::TaskAssignment {
            input: b"{}".as_slice().into(),
            ..v1::TaskAssignment::default()
        };
        let call = Call {
            sandbox: &sandbox,
            task: &task,
            host: &|| Box::new(NoStore),
        };
        let report = call.run(program, load)?;
        Ok(report.result.map(|answer| answer.output))
    }

    #[test]
    fn a_program_is_called_with_its_module() {
        let answer = called(Some(program(1)), || Ok(Some(stored(1))));
        assert_eq!(answer, Ok(Ok(b"1".to_vec())));
    }

    #[test]
    fn a_program_that_is_replaced_before_its_module_is_read_yields_to_the_newer_one() {
        let answer = called(Some(program(1)), || Ok(Some(stored(2))));
        assert_eq!(answer, Ok(Ok(b"2".to_vec())));
    }

    #[test]
    fn an_action_without_a_module_cannot_be_executed() {
        let missing = Ok(Err(InvocationError::Broken(Broken::Missing)));
        assert_eq!(called(None, || Ok(Some(stored(1)))), missing);
        assert_eq!(called(Some(program(1)), || Ok(None)), missing);
    }

    #[test]
    fn a_module_that_could_not_be_read_is_not_missing() {
        let refusal = Refusal::unavailable("expected to read, but the node stops");
        let answer = called(Some(program(1)), || Err(refusal.clone()));
        assert_eq!(answer, Err(refusal));
    }
}
