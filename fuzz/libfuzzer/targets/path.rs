//! libFuzzer's way into the target `path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| flotilla_fuzz::execute("path", input));
