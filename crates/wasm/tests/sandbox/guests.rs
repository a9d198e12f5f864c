//! Guests as WebAssembly text, and calls of them.

use flotilla_wasm::{
    Failure, Host, Invocation, InvocationError, Limits, Module, ModuleDigest, NoStore, Report,
    Sandbox, Task, to_binary,
};

/// The task of every call.
const TASK: Task<'_> = Task {
    run_id: "run-7",
    action: "charge",
    attempt: 2,
};

/// The exports that most guests share: one page, and a place for the input at 1024.
pub(crate) const BASE: &str = r#"
    (memory (export "memory") 1)
    (func (export "alloc") (param i32) (result i32) (i32.const 1024))
"#;

/// Every function of the host, to be put before [`BASE`].
pub(crate) const IMPORTS: &str = r#"
    (import "flo" "log" (func $log (param i32 i32 i32)))
    (import "flo" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
    (import "flo" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
    (import "flo" "kv_delete" (func $kv_delete (param i32 i32) (result i32)))
    (import "flo" "set_outcome" (func $set_outcome (param i32 i32) (result i32)))
    (import "flo" "set_state_patch" (func $set_state_patch (param i32 i32) (result i32)))
    (import "flo" "set_usage" (func $set_usage (param i32 i32) (result i32)))
    (import "flo" "set_delay" (func $set_delay (param i64) (result i32)))
"#;

/// A `handle` that returns its input.
pub(crate) const ECHO: &str = r#"
    (func (export "handle") (param i32 i32) (result i64)
        (i64.or
            (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32))
            (i64.extend_i32_u (local.get 1))))
"#;

/// A module of the given parts.
pub(crate) fn module(parts: &[&str]) -> Vec<u8> {
    to_binary(format!("(module {})", parts.concat()).as_bytes())
        .unwrap()
        .into_owned()
}

/// A module whose `handle` has the given body, with all imports.
pub(crate) fn handling(body: &str) -> Vec<u8> {
    let handle = format!(r#"(func (export "handle") (param i32 i32) (result i64) {body})"#);
    module(&[IMPORTS, BASE, &handle])
}

/// A module whose `handle` returns four bytes: the value of an expression, little-endian.
pub(crate) fn answering(data: &str, expression: &str) -> Vec<u8> {
    let handle = format!(
        r#"(func (export "handle") (param i32 i32) (result i64)
            (i32.store (i32.const 0) {expression})
            (i64.const 4))"#
    );
    module(&[IMPORTS, BASE, data, &handle])
}

/// One call with default limits and no store.
pub(crate) fn invoke(module: &[u8], input: &[u8]) -> Report {
    invoke_within(module, input, Limits::default())
}

/// One call with the given limits and no store.
pub(crate) fn invoke_within(module: &[u8], input: &[u8], limits: Limits) -> Report {
    invoke_with(module, input, limits, Box::new(NoStore))
}

/// One call in a separate sandbox.
pub(crate) fn invoke_with(
    module: &[u8],
    input: &[u8],
    limits: Limits,
    host: Box<dyn Host>,
) -> Report {
    let sandbox = Sandbox::new().unwrap();
    match sandbox.compile(digest(0), module) {
        Ok(module) => sandbox.invoke(Invocation {
            module: &module,
            input,
            limits,
            task: TASK,
            host,
        }),
        Err(broken) => broken.into(),
    }
}

pub(crate) fn digest(number: u8) -> ModuleDigest {
    ModuleDigest([number; 32])
}

/// One call with default limits and no store, in a sandbox that is kept.
pub(crate) fn invoke_in(sandbox: &Sandbox, module: &Module) -> Report {
    sandbox.invoke(Invocation {
        module,
        input: b"{}",
        limits: Limits::default(),
        task: TASK,
        host: Box::new(NoStore),
    })
}

/// The outcome's name and the output of a successful call.
#[track_caller]
pub(crate) fn answer(report: Report) -> (String, Vec<u8>) {
    let answer = report.result.unwrap();
    (answer.outcome.to_string(), answer.output)
}

/// The failure of a call that ran and failed.
#[track_caller]
pub(crate) fn failure(report: Report) -> Failure {
    match report.result {
        Err(InvocationError::Failed(failure)) => failure,
        other => panic!("expected a failure, but the call ended in {other:?}"),
    }
}

/// The number in the output of an [`answering`] guest.
#[track_caller]
pub(crate) fn number(report: Report) -> i32 {
    i32::from_le_bytes(answer(report).1.try_into().unwrap())
}
