//! What one call of an action may use (A9), and the fixed bounds beside it (design rule 13).

/// Lines of log that one call keeps; later ones are counted and dropped.
pub(crate) const LOG_LINES_MAX: usize = 256;
/// All log lines of one call together. In bytes.
pub(crate) const LOG_BYTES_MAX: usize = 64 << 10;
/// One line of log; longer ones are cut. In bytes.
pub(crate) const LOG_LINE_BYTES_MAX: usize = 4 << 10;
/// A name given to `set_outcome` (W11). In bytes.
pub(crate) const OUTCOME_BYTES_MAX: usize = 64;
/// A key that a guest gives to the key-value store. In bytes.
pub(crate) const KEY_BYTES_MAX: usize = 64 << 10;
/// A value that a guest gives to the key-value store (A40). In bytes.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 10;
/// The line of stderr that is a failure's message; a longer one is cut. In bytes.
pub(crate) const LAST_LINE_BYTES_MAX: usize = 2 << 10;
/// Buffers, or events awaited, that one call of a WASI function may name.
pub(crate) const WASI_LIST_MAX: u32 = 1_024;
/// What one call of a WASI function copies; it then says how much it was. In bytes.
pub(crate) const WASI_COPY_BYTES_MAX: usize = 1 << 20;
/// Compiled modules that a sandbox keeps; the one unused for longest gives way.
pub(crate) const MODULES_CACHED_MAX: usize = 64;
/// Tables that a module may have: compilers emit one, for function pointers.
pub(crate) const TABLES_MAX: u32 = 4;
/// Elements in each table. They live outside the guest's memory, at one pointer each.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 100_000;

/// The unit in which WebAssembly memory grows. In bytes.
pub(crate) const PAGE_BYTES: usize = 64 << 10;

const _: () = assert!(LOG_LINE_BYTES_MAX <= LOG_BYTES_MAX);
const _: () = assert!(Limits::MEMORY_BYTES_DEFAULT <= Limits::MEMORY_BYTES_CEILING);
const _: () = assert!(Limits::OUTPUT_BYTES_DEFAULT <= Limits::OUTPUT_BYTES_CEILING);
const _: () = assert!(Limits::OUTPUT_BYTES_CEILING <= Limits::MEMORY_BYTES_CEILING);

/// What one call of an action may use; set per action (A9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Invariant: from one page to [`Limits::MEMORY_BYTES_CEILING`].
    memory_bytes_max: usize,
    /// Invariant: from 1 to [`Limits::OUTPUT_BYTES_CEILING`].
    output_bytes_max: usize,
    /// Invariant: at least 1.
    timeout_ms: u64,
}

/// Why limits were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsRejected {
    /// The memory limit is below one page or above the ceiling.
    #[error(
        "expected a memory limit from {PAGE_BYTES} to {} bytes, but it is {bytes}",
        Limits::MEMORY_BYTES_CEILING
    )]
    Memory {
        /// What was asked for.
        bytes: u64,
    },
    /// The output limit is zero or above the ceiling.
    #[error(
        "expected an output limit from 1 to {} bytes, but it is {bytes}",
        Limits::OUTPUT_BYTES_CEILING
    )]
    Output {
        /// What was asked for.
        bytes: u64,
    },
    /// The timeout is zero.
    #[error("expected a timeout of at least 1 ms, but it is 0")]
    Timeout,
}

impl Limits {
    /// The memory of an action that sets none. In bytes.
    pub const MEMORY_BYTES_DEFAULT: usize = 16 << 20;
    /// The most memory that an action may set. In bytes.
    pub const MEMORY_BYTES_CEILING: usize = 256 << 20;
    /// The output of an action that sets none. In bytes.
    pub const OUTPUT_BYTES_DEFAULT: usize = 1 << 20;
    /// The largest output that an action may set. In bytes.
    pub const OUTPUT_BYTES_CEILING: usize = 4 << 20;
    /// The timeout of an action that sets none. In milliseconds.
    pub const TIMEOUT_MS_DEFAULT: u64 = 30_000;

    /// Limits within the ceilings of A9.
    ///
    /// # Errors
    /// [`LimitsRejected`] names the first value that is out of its range.
    pub fn new(
        memory_bytes_max: u64,
        output_bytes_max: u64,
        timeout_ms: u64,
    ) -> Result<Self, LimitsRejected> {
        let within = |bytes: u64, min: usize, max: usize| {
            usize::try_from(bytes)
                .ok()
                .filter(|bytes| (min..=max).contains(bytes))
        };
        Ok(Self {
            memory_bytes_max: within(memory_bytes_max, PAGE_BYTES, Self::MEMORY_BYTES_CEILING)
                .ok_or(LimitsRejected::Memory {
                    bytes: memory_bytes_max,
                })?,
            output_bytes_max: within(output_bytes_max, 1, Self::OUTPUT_BYTES_CEILING).ok_or(
                LimitsRejected::Output {
                    bytes: output_bytes_max,
                },
            )?,
            timeout_ms: Some(timeout_ms)
                .filter(|ms| *ms > 0)
                .ok_or(LimitsRejected::Timeout)?,
        })
    }

    /// How large the guest's memory may grow. In bytes.
    #[must_use]
    pub fn memory_bytes_max(&self) -> usize {
        self.memory_bytes_max
    }

    /// How large its output may be. In bytes.
    #[must_use]
    pub fn output_bytes_max(&self) -> usize {
        self.output_bytes_max
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
            memory_bytes_max: Self::MEMORY_BYTES_DEFAULT,
            output_bytes_max: Self::OUTPUT_BYTES_DEFAULT,
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
        assert_eq!(limits.memory_bytes_max(), Limits::MEMORY_BYTES_CEILING);
        assert_eq!(limits.output_bytes_max(), Limits::OUTPUT_BYTES_CEILING);
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
