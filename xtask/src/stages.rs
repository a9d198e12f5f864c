//! Reports the progress of a long command on a terminal or in a log.

use std::time::{Duration, Instant};

/// Prints the headings of a command's stages.
pub(crate) struct Stages {
    count: usize,
    begun: usize,
    began_at: Instant,
}

impl Stages {
    /// A command with this many stages.
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

/// Prints a line below the stage.
pub(crate) fn say(text: impl AsRef<str>) {
    println!("    {}", text.as_ref());
}

/// A duration to compare with others: `2467 ms`.
pub(crate) fn show_ms(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

/// A duration for people: `0.8 s`, `1 min 02 s`.
pub(crate) fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        return format!("{seconds}.{} s", duration.subsec_millis() / 100);
    }
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_in_the_unit_of_its_purpose() {
        let (short, long) = (Duration::from_millis(2_467), Duration::from_secs(62));
        assert_eq!(show_ms(short), "2467 ms");
        assert_eq!(show_duration(short), "2.4 s");
        assert_eq!(show_duration(long), "1 min 02 s");
    }
}
