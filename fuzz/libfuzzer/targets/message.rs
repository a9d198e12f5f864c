//! The libFuzzer entry point of the target `message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| flotilla_fuzz::execute("message", input));
