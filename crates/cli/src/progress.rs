//! Progress on the terminal.

use indicatif::ProgressBar;
use std::time::Duration;

/// A transient progress line on stderr; nothing if stderr is not a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    spinner: ProgressBar,
}

impl Progress {
    /// Shows the line with this text.
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
