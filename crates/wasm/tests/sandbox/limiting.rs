//! The limits of a call, and guests that exceed them (A9).

use crate::guests::{BASE, ECHO, answer, failure, handling, invoke, invoke_within, module, number};
use flotilla_wasm::{Failure, InvocationError, Limits};

const PAGE: usize = 65_536;

fn limits(max_memory_bytes: u64, max_output_bytes: u64) -> Limits {
    Limits::new(max_memory_bytes, max_output_bytes, 30_000).unwrap()
}

#[test]
fn memory_grows_to_the_limit_and_not_past_it() {
    let growing_by = |pages: i32| {
        handling(&format!(
            "(drop (memory.grow (i32.const {pages}))) (i64.const 0)"
        ))
    };
    let within = limits(4 * PAGE as u64, 1);
    answer(invoke_within(&growing_by(3), b"{}", within));
    assert_eq!(
        failure(invoke_within(&growing_by(4), b"{}", within)),
        Failure::MemoryExceeded {
            bytes_wanted: 5 * PAGE,
            bytes_max: 4 * PAGE
        }
    );
}

#[test]
fn growth_past_a_maximum_that_the_module_declares_is_the_guests_own_affair() {
    let guest = r#"
        (memory (export "memory") 1 2)
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))
        (func (export "handle") (param i32 i32) (result i64)
            (i32.store (i32.const 0) (memory.grow (i32.const 2)))
            (i64.const 4))"#;
    assert_eq!(number(invoke(&module(&[guest]), b"{}")), -1);
}

#[test]
fn a_limit_that_was_lowered_below_the_modules_minimum_is_an_execution_failure() {
    let guest = r#"
        (memory (export "memory") 4)
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))"#;
    let error = invoke_within(&module(&[guest, ECHO]), b"{}", limits(PAGE as u64, 1))
        .result
        .unwrap_err();
    assert!(matches!(error, InvocationError::Broken(_)), "{error:?}");
}

#[test]
fn tables_do_not_grow_past_their_bound() {
    let guest = r#"
        (table $functions 1 funcref)
        (func (export "handle") (param i32 i32) (result i64)
            (drop (table.grow $functions (ref.null func) (i32.const 1000000)))
            (i64.const 0))"#;
    let report = invoke(&module(&[BASE, guest]), b"{}");
    assert_eq!(
        failure(report),
        Failure::TableExceeded {
            elements_wanted: 1_000_001
        }
    );
}

#[test]
fn an_output_up_to_the_limit_is_answered_and_a_longer_one_is_a_failure() {
    let echo = module(&[BASE, ECHO]);
    let within = limits(PAGE as u64, 8);
    assert_eq!(
        answer(invoke_within(&echo, b"12345678", within)).1,
        b"12345678"
    );
    assert_eq!(
        failure(invoke_within(&echo, b"123456789", within)),
        Failure::OutputTooLarge {
            bytes: 9,
            bytes_max: 8
        }
    );
}

#[test]
fn an_output_outside_the_memory_is_a_failure() {
    let cases: [(u32, u32); 3] = [(65_536, 1), (65_535, 2), (0x7fff_ffff, u32::MAX)];
    for (pointer, length) in cases {
        let packed = (u64::from(pointer) << 32) | u64::from(length);
        let report = invoke(&handling(&format!("(i64.const {packed})")), b"{}");
        assert_eq!(
            failure(report),
            Failure::OutputOutOfBounds {
                pointer,
                length,
                memory_bytes: PAGE
            }
        );
    }
}

#[test]
fn an_input_that_alloc_gives_no_place_is_an_allocation_failure() {
    for pointer in [0, 65_535, -1, i32::MIN] {
        let guest = format!(
            r#"(memory (export "memory") 1)
               (func (export "alloc") (param i32) (result i32) (i32.const {pointer}))"#
        );
        let error = invoke(&module(&[&guest, ECHO]), b"{}").result.unwrap_err();
        assert_eq!(
            (error.outcome(), error.code()),
            ("failure", "allocation"),
            "{error}"
        );
    }
}

#[test]
fn an_input_larger_than_the_memory_is_an_allocation_failure() {
    let report = invoke(&module(&[BASE, ECHO]), &vec![b' '; PAGE]);
    assert_eq!(
        failure(report),
        Failure::InputNotPlaced {
            pointer: 1024,
            length: PAGE
        }
    );
}
