//! What inspection rejects at registration, and the messages (A9).

use crate::guests::{BASE, ECHO, IMPORTS, module};
use flotilla_wasm::{Abi, Limits, ModuleInfo, ModuleRejected, inspect, to_binary};

/// Inspects a module of the given parts, with default limits.
fn inspected(parts: &[&str]) -> Result<ModuleInfo, ModuleRejected> {
    inspect(&module(parts), &Limits::default())
}

#[track_caller]
fn check_refused(parts: &[&str], sentence: &str) {
    let rejected = inspected(parts).unwrap_err();
    assert_eq!(rejected.to_string(), sentence);
    assert!(!rejected.hint().is_empty());
}

#[test]
fn a_module_with_all_imports_and_optional_exports_is_accepted() {
    let optional = r#"
        (func (export "dealloc") (param i32 i32))
        (func (export "init") (result i32) (i32.const 0))
        (func (export "of_its_own"))"#;
    let info = inspected(&[IMPORTS, BASE, ECHO, optional]).unwrap();
    assert_eq!(info.abi, Abi::Flo);
    assert_eq!(info.memory_bytes_min, 65_536);
}

#[test]
fn what_current_compilers_use_by_default_is_accepted() {
    let modern = r"
        (type $pair (func (result i32 i32)))
        (func (type $pair) (i32.const 1) (i32.extend8_s (i32.const 2)))
        (func (param f32) (result i32) (i32.trunc_sat_f32_s (local.get 0)))
        (func (param v128) (result v128) (i32x4.add (local.get 0) (local.get 0)))
        (func $callee (result i64) (i64.const 1))
        (func (result i64) (return_call $callee))
        (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 8)))
        (table 2 funcref)
        (global i32 (i32.add (i32.const 1) (i32.const 2)))";
    inspected(&[BASE, ECHO, modern]).unwrap();
}

#[test]
fn malformed_bytes_are_refused_with_their_place() {
    let sound = module(&[BASE, ECHO]);
    let limits = Limits::default();
    let cut = inspect(&sound[..sound.len() - 3], &limits).unwrap_err();
    assert!(
        matches!(cut, ModuleRejected::Malformed { offset, .. } if offset > 8),
        "{cut}"
    );
    for bytes in [&b""[..], b"\0asm", b"not a module", &[0xff; 64]] {
        let rejected = inspect(bytes, &limits).unwrap_err();
        assert!(
            matches!(rejected, ModuleRejected::Malformed { .. }),
            "{rejected}"
        );
        assert!(
            rejected
                .to_string()
                .starts_with("expected a valid WebAssembly module, but at byte")
        );
    }
}

#[test]
fn names_are_shown_without_control_characters_and_cut() {
    check_refused(
        &[r#"(import "env\1b[31m" "a\0ab" (func))"#, BASE, ECHO],
        "expected only imports that the host provides, but it imports `env\\u{1b}[31m.a\\nb`",
    );
    let import = format!(r#"(import "env" "{}" (func))"#, "x".repeat(90_000));
    let function = format!("(func (export \"alloc\") (param {}))", "i32 ".repeat(900));
    let twice = format!(
        "(func (export \"{0}\")) (func (export \"{0}\"))",
        "y\\07".repeat(9_000)
    );
    for parts in [
        &[import.as_str(), BASE, ECHO][..],
        &[r#"(memory (export "memory") 1)"#, &function, ECHO],
        &[BASE, ECHO, &twice],
    ] {
        let sentence = inspected(parts).unwrap_err().to_string();
        assert!(sentence.len() < 1_000, "{} bytes", sentence.len());
        assert!(!sentence.contains(char::is_control), "{sentence:?}");
    }
    let text = format!("(module \u{7} \"{}\"", "z".repeat(90_000));
    let sentence = to_binary(text.as_bytes()).unwrap_err().to_string();
    assert!(sentence.len() < 2_000, "{} bytes", sentence.len());
}

#[test]
fn every_single_damaged_byte_is_survived() {
    let sound = module(&[IMPORTS, BASE, ECHO]);
    for place in 0..sound.len() {
        for damage in [0x00, 0x7f, 0x80, 0xff] {
            let mut damaged = sound.clone();
            damaged[place] = damage;
            // Some are still valid. None may panic, and each rejection has a message.
            if let Err(rejected) = inspect(&damaged, &Limits::default()) {
                assert!(rejected.to_string().starts_with("expected "), "{rejected}");
            }
        }
    }
}

#[test]
fn ill_typed_code_is_refused() {
    let ill_typed = "(func (result i32) (i64.const 1))";
    assert!(matches!(
        inspected(&[BASE, ECHO, ill_typed]),
        Err(ModuleRejected::Malformed { .. })
    ));
}

#[test]
fn proposals_that_need_bounds_of_their_own_are_refused() {
    for part in [
        "(memory 1 2 shared)",
        "(memory i64 1)",
        "(type (struct))",
        "(table 1 externref)",
    ] {
        let rejected = inspected(&[ECHO, part]).unwrap_err();
        assert!(
            matches!(rejected, ModuleRejected::Malformed { .. }),
            "{part}: {rejected}"
        );
    }
    assert!(matches!(
        inspected(&[BASE, "(memory 1)"]),
        Err(ModuleRejected::Malformed { .. })
    ));
}

#[test]
fn a_component_is_refused_as_such() {
    let component = to_binary(b"(component)").unwrap();
    assert_eq!(
        inspect(&component, &Limits::default()),
        Err(ModuleRejected::Component)
    );
}

#[test]
fn the_exports_tell_which_abi_a_module_follows() {
    let start = r#"(func (export "_start"))"#;
    let memory = r#"(memory (export "memory") 1)"#;
    let abi = |parts: &[&str]| inspected(parts).unwrap().abi;
    assert_eq!(abi(&[BASE, ECHO]), Abi::Flo);
    assert_eq!(abi(&[memory, start]), Abi::Wasi);
    assert_eq!(abi(&[BASE, ECHO, start]), Abi::Flo);
}

#[test]
fn a_command_that_imports_more_than_the_host_provides_is_refused() {
    let command = r#"(memory (export "memory") 1) (func (export "_start"))"#;
    let cases = [
        ("env", "abort"),
        ("wasi_unstable", "fd_write"),
        ("wasi_snapshot_preview1", "thread_spawn"),
        ("flo", "log"),
        ("flo", "kv_get"),
    ];
    for (module, name) in cases {
        check_refused(
            &[&format!(r#"(import "{module}" "{name}" (func))"#), command],
            &format!(
                "expected only imports that the host provides, but it imports \
                 `{module}.{name}`"
            ),
        );
    }
    check_refused(
        &[
            r#"(import "wasi_snapshot_preview1" "fd_close" (func (param i64) (result i32)))"#,
            command,
        ],
        "expected to import `wasi_snapshot_preview1.fd_close` as (i32) -> i32, but it is imported \
         as (i64) -> i32",
    );
    check_refused(
        &[
            r#"(import "flo" "set_delay" (func (param i32) (result i32)))"#,
            command,
        ],
        "expected to import `flo.set_delay` as (i64) -> i32, but it is imported as (i32) -> i32",
    );
}

#[test]
fn a_command_without_its_exports_is_refused() {
    check_refused(
        &[r#"(func (export "_start"))"#],
        "expected the module to export `memory` as a memory, but it exports no such name",
    );
    check_refused(
        &[r#"(memory (export "memory") 1) (func (export "_start") (param i32))"#],
        "expected the module to export `_start` as (), but it is exported as (i32)",
    );
}

#[test]
fn only_a_command_may_import_preview_1() {
    let import = r#"(import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))"#;
    check_refused(
        &[import, BASE, ECHO],
        "expected only imports that the host provides, but it imports \
         `wasi_snapshot_preview1.sched_yield`",
    );
}

#[test]
fn foreign_imports_are_refused() {
    check_refused(
        &[r#"(import "env" "abort" (func))"#, BASE, ECHO],
        "expected only imports that the host provides, but it imports `env.abort`",
    );
    check_refused(
        &[r#"(import "flo" "exec" (func))"#, BASE, ECHO],
        "expected only imports that the host provides, but it imports `flo.exec`",
    );
    check_refused(
        &[
            r#"(import "env" "memory" (memory 1)) (export "memory" (memory 0))"#,
            ECHO,
        ],
        "expected only imports that the host provides, but it imports `env.memory`",
    );
}

#[test]
fn imports_with_other_types_are_refused() {
    check_refused(
        &[r#"(import "flo" "log" (func (param i32 i64)))"#, BASE, ECHO],
        "expected to import `flo.log` as (i32, i32, i32), but it is imported as (i32, i64)",
    );
    check_refused(
        &[r#"(import "flo" "kv_get" (global i32))"#, BASE, ECHO],
        "expected to import `flo.kv_get` as (i32, i32, i32, i32) -> i32, but it is imported as a \
         global",
    );
}

#[test]
fn missing_exports_are_refused() {
    check_refused(
        &[ECHO],
        "expected the module to export `memory` as a memory, but it exports no such name",
    );
    check_refused(
        &[r#"(memory (export "memory") 1)"#, ECHO],
        "expected the module to export `alloc` as (i32) -> i32, but it exports no such name",
    );
    check_refused(
        &[BASE],
        "expected the module to export `handle` as (i32, i32) -> i64, but it exports no such name",
    );
}

#[test]
fn exports_with_other_types_are_refused() {
    check_refused(
        &[r#"(func (export "memory"))"#, ECHO],
        "expected the module to export `memory` as a memory, but it is exported as ()",
    );
    check_refused(
        &[
            BASE,
            r#"(func (export "handle") (param i32 i32) (result i32 i32) unreachable)"#,
        ],
        "expected the module to export `handle` as (i32, i32) -> i64, but it is exported as \
         (i32, i32) -> (i32, i32)",
    );
    check_refused(
        &[BASE, ECHO, r#"(func (export "init"))"#],
        "expected the module to export `init` as () -> i32, but it is exported as ()",
    );
    check_refused(
        &[
            BASE,
            ECHO,
            r#"(global (export "dealloc") i32 (i32.const 0))"#,
        ],
        "expected the module to export `dealloc` as (i32, i32), but it is exported as a global",
    );
}

#[test]
fn more_memory_than_the_action_may_use_is_refused() {
    let memory = |pages: u32| {
        module(&[
            &format!(r#"(memory (export "memory") {pages})"#),
            r#"(func (export "alloc") (param i32) (result i32) (i32.const 1024))"#,
            ECHO,
        ])
    };
    inspect(&memory(256), &Limits::default()).unwrap();
    let rejected = inspect(&memory(257), &Limits::default()).unwrap_err();
    assert_eq!(
        rejected.to_string(),
        "expected a memory of at most 16777216 bytes, but the module declares 16842752"
    );
    inspect(&memory(4_096), &Limits::new(256 << 20, 1, 1).unwrap()).unwrap();
    assert!(inspect(&memory(65_536), &Limits::new(256 << 20, 1, 1).unwrap()).is_err());
}

#[test]
fn more_tables_or_elements_than_a_module_may_have_are_refused() {
    check_refused(
        &[BASE, ECHO, &"(table 1 funcref)".repeat(5)],
        "expected at most 4 tables, but the module declares 5",
    );
    check_refused(
        &[BASE, ECHO, "(table 100001 funcref)"],
        "expected tables of at most 100000 elements, but the module declares 100001",
    );
}
