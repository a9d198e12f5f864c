//! The libFuzzer entry point of the target `jwt`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| flotilla_fuzz::execute("jwt", input));
