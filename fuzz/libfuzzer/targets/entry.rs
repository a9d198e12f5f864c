//! The libFuzzer entry point of the target `entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| flotilla_fuzz::execute("entry", input));
