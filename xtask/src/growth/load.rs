//! One call of `flo bench`.

use std::fmt::Display;

/// A workload with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    words: Vec<String>,
    /// The x value of a figure, which the bench itself does not know.
    label: Option<String>,
    /// The minimum warm-up in seconds, for loads that need a longer one.
    pub(super) warm_up_min: u32,
}

impl Load {
    /// Starts of runs without work.
    pub(super) fn start() -> Self {
        Self::new("start")
    }

    /// Whole runs of three steps.
    pub(super) fn steps() -> Self {
        Self::new("steps")
    }

    /// Whole runs that loop over items.
    pub(super) fn foreach() -> Self {
        Self::new("foreach")
    }

    /// Runs that stay waiting.
    pub(super) fn parked() -> Self {
        Self::new("parked")
    }

    /// The same with one more option.
    pub(super) fn with(mut self, option: &str, value: impl Display) -> Self {
        self.words.extend([option.to_owned(), value.to_string()]);
        self
    }

    /// The same with a label.
    pub(super) fn labeled(mut self, key: &str, value: impl Display) -> Self {
        self.label = Some(format!("{key}={value}"));
        self
    }

    /// The same with at least this warm-up.
    pub(super) fn warmed_up(mut self, seconds_min: u32) -> Self {
        self.warm_up_min = seconds_min;
        self
    }

    /// The command, as shown next to its figures.
    pub(super) fn name(&self) -> String {
        self.words.join(" ")
    }

    /// The arguments of `flo`, except those for durations.
    pub(super) fn arguments(&self) -> Vec<String> {
        let label = self.label.iter();
        let label = label.flat_map(|label| ["--label".to_owned(), label.clone()]);
        let words = self.words.iter().cloned();
        std::iter::once("bench".to_owned())
            .chain(words)
            .chain(label)
            .collect()
    }

    fn new(workload: &str) -> Self {
        Self {
            words: vec![workload.to_owned()],
            label: None,
            warm_up_min: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_an_argument_but_no_part_of_the_name() {
        let load = Load::steps().with("--clients", 64).labeled("open_runs", 10);
        assert_eq!(load.name(), "steps --clients 64");
        assert_eq!(
            load.arguments().join(" "),
            "bench steps --clients 64 --label open_runs=10"
        );
    }
}
