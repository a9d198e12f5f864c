//! WebAssembly modules for tests of several packages.

/// A module whose one function is within the limits of a function, and costs the compiler far more than its size: each of
/// many nested loops has all local variables as parameters.
#[must_use]
pub fn poisonous_module() -> String {
    const LOOPS: usize = 20_000;
    const LOCALS: usize = 9_000;
    let uses: String = (0..LOCALS)
        .map(|local| format!("local.get {local} local.set {} ", (local + 1) % LOCALS))
        .collect();
    format!(
        r#"(module (memory (export "memory") 1) (func (export "_start") (local {}) {} {uses} {}))"#,
        "i32 ".repeat(LOCALS),
        "loop ".repeat(LOOPS),
        "local.get 0 br_if 0 end ".repeat(LOOPS)
    )
}
