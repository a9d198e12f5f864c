//! The published names of the protocol's enums, as the command line and JSON spell them.

use flotilla_api::v1;

/// An enum whose values have published names.
pub trait PublishedName: Sized {
    /// The name in snake case, such as `timed_out`; `None` for the unspecified value.
    fn published_name(self) -> Option<String>;

    /// The value with this name.
    fn from_published_name(name: &str) -> Option<Self>;
}

/// The protocol prefixes each value with the enum's name: `RUN_STATUS_TIMED_OUT`.
macro_rules! published_names {
    ($($name:ident = $prefix:literal;)*) => {$(
        impl PublishedName for v1::$name {
            fn published_name(self) -> Option<String> {
                let name = self.as_str_name().trim_start_matches($prefix).to_ascii_lowercase();
                (self != Self::Unspecified).then_some(name)
            }

            fn from_published_name(name: &str) -> Option<Self> {
                let is_lower_case = !name.chars().any(|c| c.is_ascii_uppercase());
                Self::from_str_name(&format!("{}{}", $prefix, name.to_ascii_uppercase()))
                    .filter(|value| is_lower_case && *value != Self::Unspecified)
            }
        }
    )*};
}

published_names! {
    Severity = "SEVERITY_";
    RunStatus = "RUN_STATUS_";
    WaitingFor = "WAITING_FOR_";
    RunPhase = "RUN_PHASE_";
    Compensation = "COMPENSATION_";
    ScopeKind = "SCOPE_KIND_";
    ScopeStatus = "SCOPE_STATUS_";
    ExistingReason = "EXISTING_REASON_";
    ActionType = "ACTION_TYPE_";
    ActionRunStatus = "ACTION_RUN_STATUS_";
    WorkerType = "WORKER_TYPE_";
    WorkerStatus = "WORKER_STATUS_";
    ProcessKind = "PROCESS_KIND_";
    BreakerState = "BREAKER_STATE_";
    FailKind = "FAIL_KIND_";
    NodeRole = "NODE_ROLE_";
    ScheduleState = "SCHEDULE_STATE_";
    TriggerState = "TRIGGER_STATE_";
    GroupMode = "GROUP_MODE_";
    QuarantinedKind = "QUARANTINED_KIND_";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_snake_case_and_read_back() {
        assert_eq!(
            v1::RunStatus::TimedOut.published_name().as_deref(),
            Some("timed_out")
        );
        assert_eq!(
            v1::RunStatus::from_published_name("timed_out"),
            Some(v1::RunStatus::TimedOut)
        );
        assert_eq!(
            v1::ProcessKind::StreamConsumer.published_name().as_deref(),
            Some("stream_consumer")
        );
    }

    #[test]
    fn the_unspecified_value_has_no_name() {
        assert_eq!(v1::WaitingFor::Unspecified.published_name(), None);
        assert_eq!(v1::RunStatus::from_published_name("unspecified"), None);
        assert_eq!(v1::RunStatus::from_published_name("COMPLETED"), None);
    }
}
