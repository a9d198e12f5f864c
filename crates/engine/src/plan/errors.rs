//! Error codes and their classes (W35).

use crate::definition::ErrorClasses;
use crate::ids::OutcomeName;
use crate::json::Json;
use crate::limits::NAME_BYTES_MAX;
use crate::run::{error_field, outcome_name as name};

/// Whether an executor may be retried after `outcome` (W12): a missing or disabled action would fail again.
pub(super) fn is_retried(outcome: &OutcomeName) -> bool {
    matches!(
        outcome.as_str(),
        name::FAILURE | name::TIMEOUT | name::EXECUTION_FAILURE
    )
}

/// The code of a failure: its own code, else its message if that is a single token, else the outcome's name.
pub(super) fn code(outcome: &OutcomeName, output: Option<&Json>) -> String {
    if outcome.as_str() == name::TIMEOUT {
        return name::TIMEOUT.to_owned();
    }
    let of_error = |field: &str| error_field(output?, field);
    // A failure without a code carries its outcome's name in the code's place (W10a).
    let own = of_error("code").filter(|code| !code.is_empty() && code != outcome.as_str());
    let code = own.or_else(|| of_error("message").filter(|message| is_token(message)));
    let mut code = code.unwrap_or_else(|| outcome.to_string());
    code.truncate(code.floor_char_boundary(NAME_BYTES_MAX));
    code
}

/// Whether the executor may be retried after an error with this code.
pub(super) fn is_retryable(classes: Option<&ErrorClasses>, code: &str) -> bool {
    let Some(classes) = classes else {
        return true;
    };
    if classes.fatal.iter().any(|fatal| fatal.as_str() == code) {
        return false;
    }
    let listed = classes.retryable.as_ref();
    listed.is_none_or(|listed| listed.iter().any(|retryable| retryable.as_str() == code))
}

/// Whether a message is a single token like an outcome, and not a sentence.
fn is_token(message: &str) -> bool {
    OutcomeName::new(message).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ErrorCode;

    fn code_of(outcome: &str, code_found: &str, message: &str) -> String {
        let output = Json::error(code_found, message);
        code(&name::of(outcome), Some(&output))
    }

    #[test]
    fn the_code_is_the_failures_own_or_its_bare_message() {
        assert_eq!(code_of("failure", "declined", "no funds"), "declined");
        assert_eq!(
            code_of("failure", "failure", "rate_limited"),
            "rate_limited"
        );
        assert_eq!(code_of("failure", "failure", "no funds"), "failure");
        assert_eq!(code_of("timeout", "late", "no report"), "timeout");
        let other = Json::from_checked("{\"n\":1}".to_owned());
        assert_eq!(code(&name::of("failure"), Some(&other)), "failure");
        assert_eq!(code(&name::of("failure"), None), "failure");
        assert_eq!(code_of("failure", &"é".repeat(200), "x").len(), 256);
    }

    #[test]
    fn an_unlisted_code_is_retryable_unless_a_list_says_which_are() {
        let listed = |code: &str| vec![ErrorCode::new(code).expect("a code")];
        let fatal = ErrorClasses {
            retryable: None,
            fatal: listed("fraud"),
        };
        let both = ErrorClasses {
            retryable: Some(listed("busy")),
            ..fatal.clone()
        };
        let of = |classes, codes: [&str; 3]| codes.map(|code| is_retryable(classes, code));
        let codes = ["busy", "other", "fraud"];
        assert_eq!(of(None, codes), [true, true, true]);
        assert_eq!(of(Some(&fatal), codes), [true, true, false]);
        assert_eq!(of(Some(&both), codes), [true, false, false]);
    }
}
