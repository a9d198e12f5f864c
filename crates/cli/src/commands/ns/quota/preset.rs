//! Sets of limits by name.

use clap::ValueEnum;

/// A set of limits.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Preset {
    /// 50 workflows with 20 versions each, 10 open runs, 60 starts and 120 signals a minute.
    Falcone,
}

impl Preset {
    /// The limits by dimension.
    pub(super) fn limits(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Falcone => &[
                ("workflows", 50),
                ("versions_per_workflow", 20),
                ("open_runs", 10),
                ("starts_per_minute", 60),
                ("signals_per_minute", 120),
            ],
        }
    }
}
