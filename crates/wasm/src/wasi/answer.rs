//! How a function of preview 1 ends.

use crate::error::InvocationError;

/// Why a function did not do what it was called for.
#[derive(Clone, Debug)]
pub(super) enum Refused {
    /// The guest is told.
    Errno(Errno),
    /// The call is over.
    Ended(InvocationError),
}

/// The error numbers of preview 1 that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errno {
    /// `success`
    Success,
    /// `badf`: no such descriptor, or not one for this direction.
    BadDescriptor,
    /// `fault`: a stretch that is not within the guest's memory.
    BadPointer,
    /// `inval`
    Invalid,
    /// `notsup`
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

    /// The number as a function answers it.
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
