//! The definition of a target.

/// How a reader judged an input. A target with only one of the two verdicts tests nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The input is of the language, and the properties of accepted inputs hold.
    Accepted,
    /// The reader rejected it, and the properties of rejections hold.
    Refused,
}

/// A reader of untrusted bytes, and what must hold for each input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of its file, its corpus and its libFuzzer binary.
    pub name: &'static str,
    /// What it reads, in one line.
    pub summary: &'static str,
    /// Pieces of its language, which mutations insert.
    pub tokens: &'static [&'static str],
    /// Runs the reader on the input.
    ///
    /// # Panics
    /// When a property does not hold, or the reader itself panics: both are faults.
    pub check: fn(&[u8]) -> Verdict,
}
