//! Telling somebody at a terminal, or in a log, how a long command gets on.

use std::time::{Duration, Instant};

/// Prints the headings of a command's stages.
pub(crate) struct Stages {
    count: usize,
    begun: usize,
    began_at: Instant,
}

impl Stages {
    /// A command of so many stages.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            count,
            begun: 0,
            began_at: Instant::now(),
        }
    }

    /// Begins the next stage.
    pub(crate) fn begin(&mut self, title: &str) {
        self.begun += 1;
        println!("\n==> {}/{}: {title}", self.begun, self.count);
    }

    /// How long the command has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began_at.elapsed()
    }
}

/// Says something about the stage.
pub(crate) fn say(text: impl AsRef<str>) {
    println!("    {}", text.as_ref());
}

/// A time for people: `812 ms`, `2.4 s`.
pub(crate) fn show_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_in_its_own_unit() {
        assert_eq!(show_duration(Duration::from_millis(812)), "812 ms");
        assert_eq!(show_duration(Duration::from_millis(2_467)), "2.4 s");
    }
}
