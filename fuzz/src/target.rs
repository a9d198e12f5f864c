//! What a target is.

/// What a reader made of an input. A target that only ever sees one of the two shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The input is of the language, and the properties of accepted inputs hold.
    Accepted,
    /// The reader refused it, and the properties of refusals hold.
    Refused,
}

/// A reader of untrusted bytes, and what must hold for each of them.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of its file, its corpus and its libFuzzer binary.
    pub name: &'static str,
    /// What it reads, in one line.
    pub summary: &'static str,
    /// Pieces of its language, which mutations put in.
    pub tokens: &'static [&'static str],
    /// Gives the input to the reader.
    ///
    /// # Panics
    /// When a property does not hold, or the reader itself panics: both are faults.
    pub check: fn(&[u8]) -> Verdict,
}
