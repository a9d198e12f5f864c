//! Whether this CPU has the instructions that the binary was compiled for (`.cargo/config.toml`).

use crate::code::Code;
use crate::failure::Failure;

/// Checks the CPU.
///
/// # Errors
/// `cpu_unsupported` if instructions are missing. Without this check, the process would end with SIGILL.
#[cfg(target_arch = "x86_64")]
pub(crate) fn check() -> Result<(), Failure> {
    judge(is_x86_feature_detected!("sse4.2"))
}

/// Checks the CPU: any will do.
///
/// # Errors
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn check() -> Result<(), Failure> {
    judge(true)
}

fn judge(has_sse42: bool) -> Result<(), Failure> {
    if has_sse42 {
        return Ok(());
    }
    let message =
        "expected a CPU with SSE4.2, which CPUs have since 2011, but this one does not have it";
    Err(Failure::new(Code::CpuUnsupported, message).with_hint(
        "if this is a virtual machine, give it a newer CPU model, such as x86-64-v2 or that of the host",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_without_sse42_is_refused() {
        check().expect("the tests run here");
        let failure = judge(false).expect_err("it is missing");
        assert_eq!(failure.code(), "cpu_unsupported");
    }
}
