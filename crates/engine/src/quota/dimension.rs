//! What a quota limits (X37).

use serde::{Deserialize, Serialize};
use std::fmt;

/// How the use of a dimension is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimensionKind {
    /// What is stored or open now; a counter follows it.
    Count,
    /// What was accepted in the last minute.
    Rate,
    /// The size of a single item. Nothing is counted.
    Item,
}

/// Defines [`QuotaDimension`] from the table: name, published name, kind, meaning.
macro_rules! dimensions {
    ($($name:ident $spelling:literal $kind:ident $meaning:literal;)*) => {
        /// What a quota limits. Variants are appended, never reordered (design rule 12).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum QuotaDimension {
            $(#[doc = $meaning] $name,)*
        }

        impl QuotaDimension {
            /// All dimensions, in the order of their discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published name, in snake case.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $spelling,)*
                }
            }

            /// How its use is determined.
            #[must_use]
            pub const fn kind(self) -> DimensionKind {
                match self {
                    $(Self::$name => DimensionKind::$kind,)*
                }
            }

            /// What it limits, in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

dimensions! {
    OpenRuns "open_runs" Count "Runs that have not ended, with children.";
    StartsPerMinute "starts_per_minute" Rate
        "Runs that callers, schedules and triggers have started in the last 60 seconds.";
    SignalsPerMinute "signals_per_minute" Rate "Signals that were accepted in the last 60 seconds.";
    OpenActionRuns "open_action_runs" Count "Stand-alone action runs that have not ended.";
    InvokesPerMinute "invokes_per_minute" Rate
        "Stand-alone action runs that were started in the last 60 seconds.";
    CommandsPerMinute "commands_per_minute" Rate
        "Commands with a request id that were accepted in the last 60 seconds.";
    PayloadBytes "payload_bytes" Item
        "The largest input of a run or action run, value of a key, or payload of a record. In bytes.";
    Workflows "workflows" Count "Workflows.";
    VersionsPerWorkflow "versions_per_workflow" Item "Revisions of one workflow, of all its versions.";
    KvKeys "kv_keys" Count "Keys in the key-value store, with expired ones that are not yet deleted.";
    KvBytes "kv_bytes" Count "The names and values of these keys, in bytes.";
    Streams "streams" Count "Streams.";
    StreamBytes "stream_bytes" Count "The records of all streams, in bytes.";
    AppendBytesPerMinute "append_bytes_per_minute" Rate
        "The records that callers have appended in the last 60 seconds, in bytes.";
    Actions "actions" Count "Actions.";
    ModuleBytes "module_bytes" Count "The modules of WASM actions, in bytes.";
    Schedules "schedules" Count "Workflows with a schedule.";
    Triggers "triggers" Count "Triggers of workflows.";
    Workers "workers" Count "Registered workers.";
    Tokens "tokens" Count "API tokens, with those that have ended and are kept.";
    Namespaces "namespaces" Count "Namespaces below the root of a tree. Only for trees.";
}

impl QuotaDimension {
    /// The dimension with this published name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|dimension| dimension.as_str() == name)
    }

    /// Whether only trees have it.
    #[must_use]
    pub fn is_of_trees(self) -> bool {
        self == Self::Namespaces
    }

    /// Its place among [`QuotaDimension::ALL`].
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The dimension at a place.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for QuotaDimension {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dimension_is_found_by_its_name_and_its_code() {
        for dimension in QuotaDimension::ALL {
            assert_eq!(
                QuotaDimension::from_name(dimension.as_str()),
                Some(*dimension)
            );
            assert_eq!(
                QuotaDimension::from_code(dimension.code()),
                Some(*dimension)
            );
        }
        assert_eq!(QuotaDimension::from_name("hooks"), None);
        assert_eq!(QuotaDimension::from_code(u8::MAX), None);
    }
}
