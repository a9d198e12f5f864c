//! The ABIs between a module and its host, as tables of names and types.
//!
//! Inspection checks a module against these tables and contains no names itself: an ABI is a
//! variant, two tables and a way to call it.

pub(crate) mod flo;
pub(crate) mod preview1;

use preview1::DeniedImport;
use std::fmt;
use wasmparser::ValType;

/// The ABI that a module follows, which its exports determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abi {
    /// ABI 1, Flo's own: the host calls `alloc`, writes the input and calls `handle` (A7).
    Flo,
    /// ABI 2, a WASI command: the host calls `_start`, which reads its input from stdin and writes
    /// its output to stdout (A8).
    Wasi,
}

/// The name under which the guest's memory is exported, in every ABI.
pub(crate) const MEMORY: &str = "memory";

/// The type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature<'a> {
    pub(crate) params: &'a [ValType],
    pub(crate) results: &'a [ValType],
}

/// A function that the host provides.
pub(crate) struct Import {
    pub(crate) name: &'static str,
    pub(crate) signature: Signature<'static>,
}

/// A function that a module provides.
pub(crate) struct Export {
    pub(crate) name: &'static str,
    pub(crate) signature: Signature<'static>,
    pub(crate) is_required: bool,
}

impl Abi {
    /// The module of the host's functions, except those in [`flo::REQUESTS`].
    pub(crate) fn module(self) -> &'static str {
        match self {
            Self::Flo => flo::MODULE,
            Self::Wasi => preview1::MODULE,
        }
    }

    /// Every function that may be imported, with its module.
    pub(crate) fn imports(self) -> impl Iterator<Item = (&'static str, &'static Import)> {
        let (served, denied): (&[Import], &[DeniedImport]) = match self {
            Self::Flo => (&flo::IMPORTS, &[]),
            Self::Wasi => (&preview1::SERVED, &preview1::DENIED),
        };
        let own = served.iter().chain(denied.iter().map(|one| &one.import));
        let requests = flo::REQUESTS.iter().map(|import| (flo::MODULE, import));
        own.map(move |import| (self.module(), import))
            .chain(requests)
    }

    /// The functions that a module must or may export, in addition to [`MEMORY`].
    pub(crate) fn exports(self) -> &'static [Export] {
        match self {
            Self::Flo => &flo::EXPORTS,
            Self::Wasi => &preview1::EXPORTS,
        }
    }
}

const fn signature(params: &'static [ValType], results: &'static [ValType]) -> Signature<'static> {
    Signature { params, results }
}

const fn import(name: &'static str, signature: Signature<'static>) -> Import {
    Import { name, signature }
}

const fn required(name: &'static str, signature: Signature<'static>) -> Export {
    Export {
        name,
        signature,
        is_required: true,
    }
}

const fn optional(name: &'static str, signature: Signature<'static>) -> Export {
    Export {
        name,
        signature,
        is_required: false,
    }
}

impl fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |types: &[ValType]| {
            types
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        write!(f, "({})", list(self.params))?;
        match self.results {
            [] => Ok(()),
            [one] => write!(f, " -> {one}"),
            many => write!(f, " -> ({})", list(many)),
        }
    }
}
