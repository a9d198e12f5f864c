//! The results of preview 1 functions.

use crate::error::InvocationError;

/// Why a function failed.
#[derive(Clone, Debug)]
pub(super) enum Refused {
    /// The guest gets an error number.
    Errno(Errno),
    /// The call ends.
    Ended(InvocationError),
}

/// The error numbers of preview 1 that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errno {
    /// `success`: the function succeeded.
    Success,
    /// `badf`: no such descriptor, or not one for this direction.
    BadDescriptor,
    /// `fault`: a range that is not within the guest's memory.
    BadPointer,
    /// `inval`: an invalid argument.
    Invalid,
    /// `notsup`: the operation is not supported.
    NotSupported,
    /// `spipe`: a stream has no position.
    NotSeekable,
    /// `notcapable`: the guest has no right to it.
    NotCapable,
}

impl Errno {
    pub(super) fn number(self) -> u16 {
        match self {
            Self::Success => 0,
            Self::BadDescriptor => 8,
            Self::BadPointer => 21,
            Self::Invalid => 28,
            Self::NotSupported => 58,
            Self::NotSeekable => 70,
            Self::NotCapable => 76,
        }
    }

    /// The number that the function returns.
    pub(super) fn code(self) -> i32 {
        self.number().into()
    }
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<InvocationError> for Refused {
    fn from(ended: InvocationError) -> Self {
        Self::Ended(ended)
    }
}
