//! The codes of validation findings (the table of W6).

use std::fmt;

/// Whether a finding rejects the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The definition is rejected.
    Error,
    /// The definition is accepted; something in it is probably a mistake.
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

/// Makes [`Code`] from the table: code, severity, meaning.
macro_rules! codes {
    ($($code:ident $severity:ident $what:literal;)*) => {
        /// The code of a finding (W6).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $what] $code,)*
        }

        impl Code {
            /// All codes, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$code),*];

            /// The published spelling, such as `E201`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => stringify!($code),)*
                }
            }

            /// Its meaning, in one sentence.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$code => $what,)*
                }
            }

            /// Whether findings of this code reject the definition.
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
    E201 Error "A transition or `onTimeout` whose target does not exist.";
    E202 Error "A malformed target, or an executor that is not an action.";
    E203 Error "A plan that this definition does not contain.";
    E301 Warning "A step that cannot be reached from the start.";
    E302 Warning "A custom terminal that no transition reaches.";
    E303 Warning "A step with no path to any terminal.";
    E401 Error "A retry or poll policy with a value out of range.";
    E402 Error "A breaker with a value out of range.";
    E403 Warning "A rate limit that limits nothing.";
    E404 Error "A cache without a time to live or a key.";
    E405 Error "Health settings out of range, or missing where they are required.";
    E501 Error "A custom terminal without a known status.";
    E502 Warning "An outcome without a transition, or a transition that is never taken.";
    E503 Warning "A wait without a timeout.";
    E504 Error "A schedule with neither or both of cron and interval, or an interval not above 0.";
    E506 Error "An invalid cron expression (five numeric fields, without names or macros) or time \
                zone.";
    E507 Warning "An action, child workflow or trigger's stream that does not exist yet.";
    E508 Error "An invalid path.";
    E509 Warning "A fallback that follows `success`, since the step has no `exhausted` transition.";
    E510 Error "A block without steps, or with both a graph and a list.";
    E511 Error "A reference from outside to a step in the block of a `forEach`.";
    E512 Warning "Approvers, which an open cluster does not enforce for callers without a token.";
    E513 Error "An unknown name in an expression.";
    E514 Error "A malformed duration, or one that is too long.";
    E515 Error "A transition out of its block, or a custom terminal in a handler.";
    E516 Error "A join that needs fewer than one or more than all of the branches.";
    E517 Error "An invalid expression.";
    E518 Error "An invalid regular expression.";
    E519 Error "A fallback that has a fallback or handler, or a compensation that has a fallback, compensation or handler.";
    E520 Error "More branches, nested blocks or active steps than a workflow may have.";
    E521 Warning "A wait or timeout that is longer than the run or handler may take.";
    E522 Warning "A state key that concurrent iterations read and write, so that updates are lost.";
    E523 Warning "A step that emits to the stream of the workflow's own trigger.";
    E524 Warning "A setting that has no effect beside the others.";
    E525 Warning "A literal that looks like a path or an expression.";
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
