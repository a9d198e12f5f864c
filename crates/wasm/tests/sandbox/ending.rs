//! How calls end (A7).

use crate::guests::{
    BASE, ECHO, IMPORTS, answer, digest, failure, handling, invoke, invoke_in, invoke_within,
    module, number,
};
use flotilla_wasm::{Broken, Failure, InvocationError, Limits, Report, Sandbox};

#[test]
fn an_answer_is_a_success_with_the_output() {
    let report = invoke(&module(&[BASE, ECHO]), br#"{"order":17}"#);
    assert_eq!(
        answer(report),
        ("success".to_owned(), br#"{"order":17}"#.to_vec())
    );
}

#[test]
fn an_empty_input_needs_no_allocation_and_an_empty_output_is_an_answer() {
    let alloc_traps = r#"
        (memory (export "memory") 1)
        (func (export "alloc") (param i32) (result i32) unreachable)"#;
    let report = invoke(&module(&[alloc_traps, ECHO]), b"");
    assert_eq!(answer(report), ("success".to_owned(), Vec::new()));
}

#[test]
fn every_call_begins_with_a_fresh_instance() {
    let counter = r#"
        (global $calls (mut i32) (i32.const 0))
        (func (export "handle") (param i32 i32) (result i64)
            (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
            (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (global.get $calls)))
            (i64.const 4))"#;
    let sandbox = Sandbox::new().unwrap();
    let module = sandbox.compile(digest(0), &module(&[BASE, counter]));
    let module = module.unwrap();
    for _ in 0..2 {
        let report = invoke_in(&sandbox, &module);
        assert_eq!(number(report), 1);
    }
}

#[test]
fn each_negative_answer_is_a_failure_of_its_kind() {
    let cases = [
        (-1, Failure::InvalidInput, "invalid_input"),
        (-2, Failure::Allocation, "allocation"),
        (-3, Failure::Execution, "execution_error"),
        (-4, Failure::UnknownCode { code: -4 }, "unknown_code"),
        (
            i64::MIN,
            Failure::UnknownCode { code: i64::MIN },
            "unknown_code",
        ),
    ];
    for (answered, expected, code) in cases {
        let report = invoke(&handling(&format!("(i64.const {answered})")), b"{}");
        let error = report.result.clone().unwrap_err();
        assert_eq!((error.outcome(), error.code()), ("failure", code));
        assert_eq!(failure(report), expected);
    }
}

#[test]
fn each_trap_is_a_failure_that_names_it() {
    let cases = [
        ("unreachable", "wasm `unreachable` instruction executed"),
        (
            "(i64.load (i32.const 65536))",
            "out of bounds memory access",
        ),
        (
            "(i64.div_u (i64.const 1) (i64.const 0))",
            "integer divide by zero",
        ),
    ];
    for (body, reason) in cases {
        let report = invoke(&handling(body), b"{}");
        assert_eq!(
            failure(report),
            Failure::Trapped {
                reason: reason.to_owned()
            }
        );
    }
}

#[test]
fn a_trap_while_starting_or_deallocating_is_a_failure_too() {
    let start = "(func $start unreachable) (start $start)";
    let dealloc = r#"(func (export "dealloc") (param i32 i32) unreachable)"#;
    let data = r#"(data (i32.const 65535) "too long")"#;
    for part in [start, dealloc, data] {
        let report = invoke(&module(&[BASE, ECHO, part]), b"{}");
        assert!(matches!(failure(report), Failure::Trapped { .. }), "{part}");
    }
}

#[test]
fn endless_recursion_is_a_failure() {
    let recursion = "(func $down (result i64) (i64.add (i64.const 1) (call $down)))
        (func (export \"handle\") (param i32 i32) (result i64) (call $down))";
    assert_eq!(
        failure(invoke(&module(&[BASE, recursion]), b"{}")),
        Failure::StackExhausted
    );
}

#[test]
fn an_endless_loop_times_out_wherever_it_is() {
    let endless = "(loop $again (br $again))";
    let handle = handling(&format!("{endless} unreachable"));
    let start = module(&[
        BASE,
        ECHO,
        &format!("(func $start {endless}) (start $start)"),
    ]);
    let init = format!(r#"(func (export "init") (result i32) {endless} unreachable)"#);
    let init = module(&[BASE, ECHO, &init]);
    let limits = Limits::new(1 << 20, 1 << 10, 50).unwrap();
    for module in [handle, start, init] {
        let error = invoke_within(&module, b"{}", limits).result.unwrap_err();
        assert_eq!(error, InvocationError::TimedOut { timeout_ms: 50 });
        assert_eq!(error.outcome(), "timeout");
    }
}

#[test]
fn init_runs_once_before_everything_else() {
    // `alloc` returns the address that `init` wrote, and `handle` returns how often `init` ran.
    let guest = r#"
        (memory (export "memory") 1)
        (global $inits (mut i32) (i32.const 0))
        (global $place (mut i32) (i32.const 0))
        (func (export "init") (result i32)
            (global.set $inits (i32.add (global.get $inits) (i32.const 1)))
            (global.set $place (i32.const 2048))
            (i32.const 0))
        (func (export "alloc") (param i32) (result i32) (global.get $place))
        (func (export "handle") (param i32 i32) (result i64)
            (i32.store (i32.const 0) (global.get $inits))
            (i64.const 4))"#;
    assert_eq!(number(invoke(&module(&[guest]), b"{}")), 1);
}

#[test]
fn an_init_that_answers_other_than_0_is_a_failure() {
    let init = r#"(func (export "init") (result i32) (i32.const 7))"#;
    let report = invoke(&module(&[BASE, ECHO, init]), b"{}");
    assert_eq!(failure(report), Failure::InitFailed { code: 7 });
}

#[test]
fn dealloc_is_given_the_output_once_it_was_read() {
    let guest = r#"
        (data (i32.const 2048) "answer")
        (func (export "handle") (param i32 i32) (result i64)
            (i64.or (i64.shl (i64.const 2048) (i64.const 32)) (i64.const 6)))
        (func (export "dealloc") (param $pointer i32) (param $length i32)
            (i64.store (local.get $pointer) (i64.const 0))
            (call $log (i32.const 2) (local.get $pointer) (local.get $length)))"#;
    let report = invoke(&module(&[IMPORTS, BASE, guest]), b"{}");
    assert_eq!(report.logs.lines()[0].text, "\0\0\0\0\0\0");
    assert_eq!(answer(report).1, b"answer");
}

#[test]
fn a_module_that_is_missing_or_no_action_is_an_execution_failure() {
    let without_handle = module(&[BASE]);
    let cases = [
        (Report::from(Broken::Missing), "module_missing"),
        (invoke(b"no module", b"{}"), "module_rejected"),
        (invoke(&without_handle, b"{}"), "module_rejected"),
    ];
    for (report, code) in cases {
        let error = report.result.unwrap_err();
        assert!(matches!(error, InvocationError::Broken(_)), "{error:?}");
        assert_eq!((error.outcome(), error.code()), ("execution_failure", code));
    }
    assert_eq!(
        Broken::Missing.to_string(),
        "expected the action's module to be stored, but it is missing"
    );
}
