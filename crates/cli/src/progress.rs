//! Showing a person that something is still going on.

use indicatif::ProgressBar;
use std::time::Duration;

/// A line on stderr that comes and goes; nothing when stderr is not a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    spinner: ProgressBar,
}

impl Progress {
    /// Begins with this text.
    pub(crate) fn start(text: String) -> Self {
        let spinner = ProgressBar::new_spinner();
        spinner.set_message(text);
        spinner.enable_steady_tick(Duration::from_millis(100));
        Self { spinner }
    }

    /// Changes the text.
    pub(crate) fn say(&self, text: String) {
        self.spinner.set_message(text);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
    }
}
