//! The limits of one call of an action (A9), and the fixed limits beside them (design rule 13).

/// Lines of log that one call keeps; later ones are counted and dropped.
pub(crate) const LOG_LINES_MAX: usize = 256;
/// All log lines of one call together. In bytes.
pub(crate) const LOG_BYTES_MAX: usize = 64 << 10;
/// One log line; longer ones are truncated. In bytes.
pub(crate) const LOG_LINE_BYTES_MAX: usize = 4 << 10;
/// A name passed to `set_outcome` (W11). In bytes.
pub(crate) const OUTCOME_BYTES_MAX: usize = 64;
/// A patch passed to `set_state_patch`: as large as a state may be (W66). In bytes.
pub(crate) const STATE_PATCH_BYTES_MAX: usize = 256 << 10;
/// A usage passed to `set_usage`: more than 16 names with their numbers take (W87). In bytes.
pub(crate) const USAGE_BYTES_MAX: usize = 16 << 10;
/// A delay passed to `set_delay` (W74). In milliseconds.
pub(crate) const DELAY_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1_000;
/// A key that a guest passes to the key-value store. In bytes.
pub(crate) const KEY_BYTES_MAX: usize = 64 << 10;
/// A value that a guest passes to the key-value store (A40). In bytes.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 10;
/// The line of stderr that is a failure's message; a longer one is truncated. In bytes.
pub(crate) const LAST_LINE_BYTES_MAX: usize = 2 << 10;
/// Buffers, or subscriptions, in one call of a WASI function.
pub(crate) const WASI_LIST_MAX: u32 = 1_024;
/// What one call of a WASI function copies at most; it returns how much it was. In bytes.
pub(crate) const WASI_COPY_BYTES_MAX: usize = 1 << 20;
/// Compiled modules that a sandbox caches; the least recently used one is evicted.
pub(crate) const MODULES_CACHED_MAX: usize = 64;
/// The code of all compiled modules that a sandbox caches, unless it is created with a smaller cache. In bytes.
pub const MODULES_CACHED_BYTES_MAX: usize = 128 << 20;
/// The compiled code of one module. In bytes.
pub const CODE_BYTES_MAX: usize = 32 << 20;
/// How long compiling a module may take. In seconds of processor time.
pub const COMPILE_CPU_SECONDS_MAX: u64 = 20;
/// The memory that compiling a module may take, on a node with at least 4 GiB. In bytes.
pub const COMPILE_MEMORY_BYTES_MAX: usize = 256 << 20;
/// Functions that a module may define.
pub(crate) const FUNCTIONS_MAX: u32 = 20_000;
/// The code of one function: compiling takes more than twice as long for twice the code. In bytes.
pub(crate) const FUNCTION_BYTES_MAX: usize = 512 << 10;
/// Local variables of one function, which the compiler tracks through each branch.
pub(crate) const FUNCTION_LOCALS_MAX: u32 = 10_000;
/// Local variables of all functions of a module.
pub(crate) const MODULE_LOCALS_MAX: u32 = 1_000_000;
/// Tables that a module may have: compilers emit one, for function pointers.
pub(crate) const TABLES_MAX: u32 = 4;
/// Elements in each table. They live outside the guest's memory, at one pointer each.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 100_000;

/// What a call takes beside its memory and output: tables, stack, input and log lines. In bytes.
const CALL_OVERHEAD_BYTES: usize = TABLES_MAX as usize * TABLE_ELEMENTS_MAX * 8 + (3 << 20);

/// The unit in which WebAssembly memory grows. In bytes.
pub(crate) const PAGE_BYTES: usize = 64 << 10;

const _: () = assert!(LOG_LINE_BYTES_MAX <= LOG_BYTES_MAX);
const _: () = assert!(CODE_BYTES_MAX <= MODULES_CACHED_BYTES_MAX);
const _: () = assert!(Limits::MEMORY_BYTES_DEFAULT <= Limits::MEMORY_BYTES_CEILING);
const _: () = assert!(Limits::OUTPUT_BYTES_DEFAULT <= Limits::OUTPUT_BYTES_CEILING);
const _: () = assert!(Limits::OUTPUT_BYTES_CEILING <= Limits::MEMORY_BYTES_CEILING);

/// The limits of one call; set per action (A9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Invariant: from one page to [`Limits::MEMORY_BYTES_CEILING`].
    max_memory_bytes: usize,
    /// Invariant: from 1 to [`Limits::OUTPUT_BYTES_CEILING`].
    max_output_bytes: usize,
    /// Invariant: at least 1.
    timeout_ms: u64,
}

/// Why limits were rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsRejected {
    /// The memory limit is below one page or above the ceiling.
    #[error(
        "expected a memory limit from {PAGE_BYTES} to {} bytes, but it is {bytes}",
        Limits::MEMORY_BYTES_CEILING
    )]
    Memory {
        /// The requested value.
        bytes: u64,
    },
    /// The output limit is zero or above the ceiling.
    #[error(
        "expected an output limit from 1 to {} bytes, but it is {bytes}",
        Limits::OUTPUT_BYTES_CEILING
    )]
    Output {
        /// The requested value.
        bytes: u64,
    },
    /// The timeout is zero.
    #[error("expected a timeout of at least 1 ms, but it is 0")]
    Timeout,
}

impl Limits {
    /// The default memory limit of an action. In bytes.
    pub const MEMORY_BYTES_DEFAULT: usize = 16 << 20;
    /// The highest memory limit of an action. In bytes.
    pub const MEMORY_BYTES_CEILING: usize = 256 << 20;
    /// The default output limit of an action. In bytes.
    pub const OUTPUT_BYTES_DEFAULT: usize = 1 << 20;
    /// The highest output limit of an action. In bytes.
    pub const OUTPUT_BYTES_CEILING: usize = 4 << 20;
    /// The default timeout of an action. In milliseconds.
    pub const TIMEOUT_MS_DEFAULT: u64 = 30_000;

    /// Limits within the ceilings of A9.
    ///
    /// # Errors
    /// [`LimitsRejected`] names the first value that is out of its range.
    pub fn new(
        max_memory_bytes: u64,
        max_output_bytes: u64,
        timeout_ms: u64,
    ) -> Result<Self, LimitsRejected> {
        let within = |bytes: u64, min: usize, max: usize| {
            usize::try_from(bytes)
                .ok()
                .filter(|bytes| (min..=max).contains(bytes))
        };
        Ok(Self {
            max_memory_bytes: within(max_memory_bytes, PAGE_BYTES, Self::MEMORY_BYTES_CEILING)
                .ok_or(LimitsRejected::Memory {
                    bytes: max_memory_bytes,
                })?,
            max_output_bytes: within(max_output_bytes, 1, Self::OUTPUT_BYTES_CEILING).ok_or(
                LimitsRejected::Output {
                    bytes: max_output_bytes,
                },
            )?,
            timeout_ms: Some(timeout_ms)
                .filter(|ms| *ms > 0)
                .ok_or(LimitsRejected::Timeout)?,
        })
    }

    /// The memory that a call may take on its node: that of the guest, its tables, its output, and what the host
    /// holds for it. In bytes.
    #[must_use]
    pub fn call_bytes(&self) -> usize {
        self.max_memory_bytes + self.max_output_bytes + CALL_OVERHEAD_BYTES
    }

    /// How large the guest's memory may grow. In bytes.
    #[must_use]
    pub fn max_memory_bytes(&self) -> usize {
        self.max_memory_bytes
    }

    /// How large its output may be. In bytes.
    #[must_use]
    pub fn max_output_bytes(&self) -> usize {
        self.max_output_bytes
    }

    /// How long a call may take. In milliseconds.
    #[must_use]
    pub fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_memory_bytes: Self::MEMORY_BYTES_DEFAULT,
            max_output_bytes: Self::OUTPUT_BYTES_DEFAULT,
            timeout_ms: Self::TIMEOUT_MS_DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_up_to_the_ceilings_are_accepted() {
        let limits = Limits::new(256 << 20, 4 << 20, u64::MAX).unwrap();
        assert_eq!(limits.max_memory_bytes(), Limits::MEMORY_BYTES_CEILING);
        assert_eq!(limits.max_output_bytes(), Limits::OUTPUT_BYTES_CEILING);
        assert_eq!(limits.timeout_ms(), u64::MAX);
    }

    #[test]
    fn each_limit_out_of_its_range_is_refused_by_name() {
        let memory = 16 << 20;
        let cases = [
            (
                Limits::new((256 << 20) + 1, 1, 1),
                LimitsRejected::Memory {
                    bytes: (256 << 20) + 1,
                },
            ),
            (
                Limits::new(65_535, 1, 1),
                LimitsRejected::Memory { bytes: 65_535 },
            ),
            (
                Limits::new(u64::MAX, 1, 1),
                LimitsRejected::Memory { bytes: u64::MAX },
            ),
            (
                Limits::new(memory, (4 << 20) + 1, 1),
                LimitsRejected::Output {
                    bytes: (4 << 20) + 1,
                },
            ),
            (
                Limits::new(memory, 0, 1),
                LimitsRejected::Output { bytes: 0 },
            ),
            (Limits::new(memory, 1, 0), LimitsRejected::Timeout),
        ];
        for (limits, rejected) in cases {
            assert_eq!(limits, Err(rejected));
        }
        assert_eq!(
            LimitsRejected::Memory { bytes: 1 }.to_string(),
            "expected a memory limit from 65536 to 268435456 bytes, but it is 1"
        );
    }
}
