//! Modules are compiled once per node (A9).

use crate::guests::{BASE, ECHO, answer, invoke_in, module};
use flotilla_wasm::Sandbox;
use std::sync::Barrier;
use std::thread;

#[test]
fn a_cached_module_is_neither_fetched_nor_compiled_again() {
    let sandbox = Sandbox::new().unwrap();
    let echo = module(&[BASE, ECHO]);
    answer(invoke_in(&sandbox, 1, &|| Some(echo.clone())));
    answer(invoke_in(&sandbox, 1, &|| panic!("fetched a second time")));
    assert_eq!(sandbox.compilations_count(), 1);
    answer(invoke_in(&sandbox, 2, &|| Some(echo.clone())));
    assert_eq!(sandbox.compilations_count(), 2);
}

#[test]
fn first_calls_at_the_same_time_compile_once() {
    let sandbox = Sandbox::new().unwrap();
    let echo = module(&[BASE, ECHO]);
    let together = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                together.wait();
                answer(invoke_in(&sandbox, 1, &|| Some(echo.clone())));
            });
        }
    });
    assert_eq!(sandbox.compilations_count(), 1);
}

#[test]
fn a_module_that_was_missing_is_fetched_again() {
    let sandbox = Sandbox::new().unwrap();
    let echo = module(&[BASE, ECHO]);
    assert!(invoke_in(&sandbox, 1, &|| None).result.is_err());
    answer(invoke_in(&sandbox, 1, &|| Some(echo.clone())));
}

#[test]
fn the_least_recently_used_module_is_evicted() {
    let sandbox = Sandbox::new().unwrap();
    let echo = module(&[BASE, ECHO]);
    for digest in 0..=64 {
        answer(invoke_in(&sandbox, digest, &|| Some(echo.clone())));
    }
    assert_eq!(sandbox.compilations_count(), 65);
    answer(invoke_in(&sandbox, 64, &|| panic!("the newest is cached")));
    answer(invoke_in(&sandbox, 0, &|| Some(echo.clone())));
    assert_eq!(sandbox.compilations_count(), 66);
}
