//! What keeps the compiler's time and memory bounded (A9).

use crate::guests::{BASE, ECHO, IMPORTS, digest, module};
use flotilla_wasm::{
    Broken, Limits, ModuleRejected, Sandbox, check_code_bytes, inspect, try_compile,
};

/// A function of nested blocks, which takes 3 bytes for each and 2 for itself.
fn nested(depth: usize) -> String {
    format!("(func {} {})", "block ".repeat(depth), "end ".repeat(depth))
}

fn refusal(bytes: &[u8]) -> String {
    let rejected = inspect(bytes, &Limits::default()).unwrap_err();
    assert!(rejected.hint().contains("split large functions"));
    rejected.to_string()
}

#[test]
fn functions_up_to_half_a_megabyte_are_accepted() {
    let depth = ((512 << 10) - 2) / 3;
    let largest = module(&[IMPORTS, BASE, ECHO, &nested(depth)]);
    inspect(&largest, &Limits::default()).unwrap();
    let larger = module(&[IMPORTS, BASE, ECHO, &nested(depth + 1)]);
    assert_eq!(
        refusal(&larger),
        "expected functions of at most 524288 bytes, but function 10 has 524291"
    );
}

#[test]
fn too_many_functions_are_refused() {
    let functions = |count: usize| module(&[BASE, ECHO, &"(func)".repeat(count - 2)]);
    inspect(&functions(20_000), &Limits::default()).unwrap();
    assert_eq!(
        refusal(&functions(20_001)),
        "expected at most 20000 functions, but the module defines 20001"
    );
}

/// A number in the encoding of WebAssembly.
fn number(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A section of a module.
fn section(id: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap();
    [&[id][..], &number(length), content].concat()
}

/// A module of functions that have the same number of local variables.
fn with_locals(functions: u32, locals: u32) -> Vec<u8> {
    let body = [&[1][..], &number(locals), &[0x7f, 0x0b]].concat();
    let length = u8::try_from(body.len()).unwrap();
    let body = [&[length][..], &body].concat();
    let count = usize::try_from(functions).unwrap();
    [
        &b"\0asm\x01\0\0\0"[..],
        &section(1, &[1, 0x60, 0, 0]),
        &section(3, &[number(functions), vec![0; count]].concat()),
        &section(10, &[number(functions), body.repeat(count)].concat()),
    ]
    .concat()
}

#[test]
fn too_many_local_variables_are_refused() {
    let limits = Limits::default();
    for accepted in [with_locals(1, 10_000), with_locals(100, 10_000)] {
        // It lacks the exports of an action, which are checked last.
        let rejected = inspect(&accepted, &limits).unwrap_err();
        assert!(
            matches!(rejected, ModuleRejected::MissingExport { .. }),
            "{rejected}"
        );
    }
    assert_eq!(
        refusal(&with_locals(2, 10_001)),
        "expected functions with at most 10000 local variables, but function 0 has 10001"
    );
    assert_eq!(
        refusal(&with_locals(101, 10_000)),
        "expected at most 1000000 local variables in all functions, but there are more"
    );
}

#[test]
fn a_trial_says_how_much_code_a_module_has_or_why_it_cannot_be_compiled() {
    let small = try_compile(&module(&[BASE, ECHO])).unwrap();
    let larger = try_compile(&module(&[BASE, ECHO, &nested(9_000)])).unwrap();
    assert!((1..1 << 20).contains(&small), "{small}");
    assert!(larger >= small);
    assert!(matches!(
        try_compile(&module(&[BASE])),
        Err(Broken::Rejected(ModuleRejected::MissingExport { .. }))
    ));
}

#[test]
fn more_code_than_a_module_may_have_is_refused() {
    // Data is a part of the image that the code is in.
    let memory = r#"(memory (export "memory") 1000)
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))"#;
    let data = format!(r#"(data (i32.const 0) "{}")"#, "x".repeat(33 << 20));
    let large = module(&[memory, ECHO, &data]);
    let bytes = try_compile(&large).unwrap();
    let too_large = check_code_bytes(bytes).unwrap_err();
    assert!(bytes > 33 << 20 && too_large.hint().is_some());
    let compiled = Sandbox::new().unwrap().compile(digest(0), &large);
    assert!(
        matches!(compiled, Err(Broken::CodeTooLarge { .. })),
        "{:?}",
        compiled.err()
    );
}
