//! The binary `flo`.
fn main() {}
