//! WebAssembly modules, as text or binary, at their registration (A7, A9).

use super::place::assert_sentence;
use crate::target::{Target, Verdict};
use flotilla_wasm::{Limits, ModuleInfo, ModuleRejected, inspect, to_binary};

pub(super) const TARGET: Target = Target {
    name: "module",
    summary: "WASM modules: inspected the same each time, within their limits, refused with a sentence",
    tokens: &[
        "\0asm\u{1}\0\0\0",
        "(module",
        "(memory (export \"memory\") 1)",
        "(func (export \"handle\")",
        "(param i32 i32)",
        "(result i64)",
        "(import \"flo\" \"log\"",
        "(import \"wasi_snapshot_preview1\"",
        "(func (export \"_start\"))",
        "(table 1 funcref)",
        "i64.const 0",
        ")",
        "\"",
        "\\00",
        ";;",
        "memory",
        "alloc",
        "handle",
        "_start",
        "flo",
    ],
    check,
};

/// The unit in which a module's memory is declared. In bytes.
const PAGE_BYTES: u64 = 64 << 10;

fn check(input: &[u8]) -> Verdict {
    let module = match to_binary(input) {
        Ok(module) => module,
        Err(rejected) => {
            check_refusal(&rejected, input);
            return Verdict::Refused;
        }
    };
    let verdict = inspect(&module, &Limits::default());
    assert_eq!(inspect(&module, &Limits::default()), verdict, "asked again");
    match verdict {
        Ok(info) => {
            check_limits(&module, info);
            Verdict::Accepted
        }
        Err(rejected) => {
            check_refusal(&rejected, &module);
            Verdict::Refused
        }
    }
}

/// The module's declared memory decides, to the byte, which limits it satisfies.
fn check_limits(module: &[u8], info: ModuleInfo) {
    let within = |max_memory_bytes: u64| {
        let limits = Limits::new(max_memory_bytes, 1, 1).expect("within the ceilings");
        inspect(module, &limits)
    };
    let least = info.memory_bytes_min.max(PAGE_BYTES);
    assert_eq!(within(least), Ok(info));
    if info.memory_bytes_min > PAGE_BYTES {
        assert!(matches!(
            within(info.memory_bytes_min - 1),
            Err(ModuleRejected::MemoryTooLarge { .. })
        ));
    }
}

fn check_refusal(rejected: &ModuleRejected, module: &[u8]) {
    assert_sentence(rejected.hint());
    match rejected {
        // The error of a text module shows the place as compilers do, in several lines.
        ModuleRejected::MalformedText { reason } => reason
            .lines()
            .filter(|line| !line.is_empty())
            .for_each(assert_sentence),
        ModuleRejected::Malformed { offset, .. } => {
            assert!(*offset <= module.len(), "byte {offset} of {}", module.len());
            assert_sentence(&rejected.to_string());
        }
        other => assert_sentence(&other.to_string()),
    }
}
