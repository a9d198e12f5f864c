//! The codes of validation findings (the table of W6).

use std::fmt;

/// Whether a finding refuses the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The definition is refused.
    Error,
    /// The definition is accepted; something in it is probably not meant so.
    Warning,
}

impl Severity {
    /// The published word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Makes [`Code`] from the table: code, severity, what it says.
macro_rules! codes {
    ($($code:ident $severity:ident $what:literal;)*) => {
        /// What a finding is about (W6).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $what] $code,)*
        }

        impl Code {
            /// All of them, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$code),*];

            /// The published spelling, such as `E201`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => stringify!($code),)*
                }
            }

            /// What it is about, in one sentence.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$code => $what,)*
                }
            }

            /// Whether findings of this code refuse the definition.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$code => Severity::$severity,)*
                }
            }
        }
    };
}

codes! {
    E100 Error "Not YAML or JSON, an unknown or duplicate key, a wrong type, a malformed name, a number out of range.";
    E101 Error "The name is missing or empty, or longer than 256 bytes.";
    E102 Error "The version is missing or empty.";
    E103 Error "The start step is missing or empty.";
    E104 Error "A plan without executors.";
    E105 Error "A duplicate or reserved step name.";
    E106 Error "A duplicate executor in a plan.";
    E107 Error "A terminal that is duplicate, built in, `flo.`-prefixed or named like a step.";
    E108 Error "The kind is missing, empty or not `Workflow`.";
    E201 Error "A transition or `onTimeout` that leads nowhere.";
    E202 Error "A malformed target, or an executor that is not an action.";
    E203 Error "A plan that is not defined here.";
    E301 Warning "A step that is not reachable from the start.";
    E302 Warning "A custom terminal that nothing reaches.";
    E303 Warning "A step with no path to any terminal.";
    E401 Error "A retry or poll policy out of its bounds.";
    E402 Error "A breaker out of its bounds.";
    E403 Warning "A rate limit that limits nothing.";
    E404 Error "A cache without a time to live or a key.";
    E405 Error "Health settings out of their bounds, or missing where they are needed.";
    E501 Error "A custom terminal without a known status.";
    E502 Warning "An outcome that has nowhere to go, or a transition that is never taken.";
    E503 Warning "A wait without a timeout.";
    E504 Error "A schedule with neither or both of cron and interval, or an interval not above 0.";
    E506 Error "A bad cron expression, which is five fields of numbers without names or macros, or time zone.";
    E507 Warning "An action, child workflow or trigger's stream that is not there yet.";
    E508 Error "A bad path.";
    E509 Warning "A fallback that will follow `success`, since the step has no `exhausted` transition.";
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
