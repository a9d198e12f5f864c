//! Faults in files that are checked periodically: each is logged once.

use std::error::Error;

/// The fault at the last check.
#[derive(Debug, Default)]
pub(crate) struct LastFault(Option<String>);

impl LastFault {
    /// Notes a fault. Returns its text and that of its cause, unless it is the fault at the last check.
    pub(crate) fn note(&mut self, error: &dyn Error) -> Option<&str> {
        let cause = error.source().map(|cause| format!(": {cause}"));
        let fault = format!("{error}{}", cause.unwrap_or_default());
        let is_new = self.0.as_ref() != Some(&fault);
        self.0 = Some(fault);
        self.0.as_deref().filter(|_| is_new)
    }

    /// Notes that there is no fault. Returns whether there was one.
    pub(crate) fn clear(&mut self) -> bool {
        self.0.take().is_some()
    }
}
