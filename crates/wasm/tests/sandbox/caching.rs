//! Compiled modules are cached (A9).

use crate::guests::{BASE, ECHO, answer, digest, invoke_in, module};
use flotilla_wasm::Sandbox;

#[test]
fn a_compiled_module_is_found_by_its_digest() {
    let sandbox = Sandbox::new().unwrap();
    assert!(sandbox.find(digest(1)).is_none());
    let echo = module(&[BASE, ECHO]);
    sandbox.compile(digest(1), &echo).unwrap();
    answer(invoke_in(&sandbox, &sandbox.find(digest(1)).unwrap()));
    assert!(sandbox.find(digest(2)).is_none());
    assert_eq!(sandbox.compilations_count(), 1);
}

#[test]
fn a_module_that_is_not_compiled_is_not_cached() {
    let sandbox = Sandbox::new().unwrap();
    assert!(sandbox.compile(digest(1), b"no module").is_err());
    assert!(sandbox.find(digest(1)).is_none());
    assert_eq!(sandbox.code_bytes(), 0);
}

#[test]
fn the_least_recently_used_module_is_evicted() {
    let sandbox = Sandbox::new().unwrap();
    let echo = module(&[BASE, ECHO]);
    for number in 0..64 {
        sandbox.compile(digest(number), &echo).unwrap();
    }
    assert!(sandbox.find(digest(0)).is_some(), "it is now the newest");
    sandbox.compile(digest(64), &echo).unwrap();
    assert!(sandbox.find(digest(0)).is_some());
    assert!(sandbox.find(digest(1)).is_none());
}

#[test]
fn compiled_code_is_counted_until_it_is_evicted() {
    let sandbox = Sandbox::new().unwrap();
    let echo = module(&[BASE, ECHO]);
    sandbox.compile(digest(0), &echo).unwrap();
    let one = sandbox.code_bytes();
    assert!(one > 0);
    sandbox.compile(digest(0), &echo).unwrap();
    assert_eq!(sandbox.code_bytes(), one, "it has replaced itself");
    for number in 1..100 {
        sandbox.compile(digest(number), &echo).unwrap();
    }
    assert_eq!(sandbox.code_bytes(), 64 * one);
}

/// A module with a table of `bytes` bytes, which are a part of its image.
fn with_data(bytes: usize) -> Vec<u8> {
    let memory = r#"(memory (export "memory") 200)
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))"#;
    let data = format!(r#"(data (i32.const 65536) "{}")"#, "x".repeat(bytes));
    module(&[memory, ECHO, &data])
}

#[test]
fn compiled_code_is_bounded_in_bytes() {
    let sandbox = Sandbox::new().unwrap();
    let large = with_data(4 << 20);
    for number in 0..40 {
        sandbox.compile(digest(number), &large).unwrap();
        assert!(sandbox.code_bytes() <= 128 << 20);
        assert!(sandbox.find(digest(number)).is_some(), "{number}");
    }
    assert!(sandbox.find(digest(0)).is_none());
}

#[test]
fn a_smaller_cache_holds_less_and_counts_what_is_still_in_use() {
    let sandbox = Sandbox::with_cache(32 << 20).unwrap();
    let large = with_data(4 << 20);
    let used = sandbox.compile(digest(0), &large).unwrap();
    let one = sandbox.code_bytes();
    for number in 1..20 {
        sandbox.compile(digest(number), &large).unwrap();
    }
    assert!(sandbox.find(digest(0)).is_none(), "it was evicted");
    let with_evicted = sandbox.code_bytes();
    drop(used);
    assert_eq!(sandbox.code_bytes(), with_evicted - one);
    assert!(sandbox.code_bytes() <= 32 << 20);
}
