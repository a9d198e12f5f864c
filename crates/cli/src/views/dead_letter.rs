//! An action run that failed permanently.

use super::{json, or_dash};
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;
use serde_json::Value;

/// A dead letter in a list.
#[derive(Debug, Serialize)]
pub(crate) struct DeadLetterRow {
    id: String,
    action: String,
    attempts: u32,
    error_code: Option<String>,
    error_message: Option<String>,
    run_id: Option<String>,
    step: Option<String>,
    failed_at_ms: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

/// A dead letter with its input.
#[derive(Debug, Serialize)]
pub(crate) struct DeadLetterView {
    #[serde(flatten)]
    row: DeadLetterRow,
    input: Value,
}

impl From<v1::DeadLetter> for DeadLetterRow {
    fn from(dead_letter: v1::DeadLetter) -> Self {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            id: dead_letter.id,
            action: dead_letter.action,
            attempts: dead_letter.attempts,
            error_code: given(dead_letter.error_code),
            error_message: given(dead_letter.error_message),
            run_id: dead_letter.run_id,
            step: dead_letter.step,
            failed_at_ms: dead_letter.failed_at_ms,
            redacted: dead_letter.redacted,
        }
    }
}

impl From<v1::DeadLetter> for DeadLetterView {
    fn from(dead_letter: v1::DeadLetter) -> Self {
        Self {
            input: json::value(&dead_letter.input),
            row: dead_letter.into(),
        }
    }
}

impl Row for DeadLetterRow {
    const HEADINGS: &'static [&'static str] =
        &["DEAD LETTER", "ATTEMPTS", "RUN", "STEP", "FAILED", "ERROR"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.clone(),
            self.attempts.to_string(),
            or_dash(self.run_id.as_deref()),
            or_dash(self.step.as_deref()),
            time::show(self.failed_at_ms),
            or_dash(self.error_message.as_deref()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table;
    use expect_test::expect;

    fn dead_letter() -> v1::DeadLetter {
        v1::DeadLetter {
            id: "arun-4".to_owned(),
            action: "charge".to_owned(),
            input: r#"{"amount":5}"#.into(),
            attempts: 4,
            error_message: "card refused".to_owned(),
            run_id: Some("wfrun-1".to_owned()),
            step: Some("pay".to_owned()),
            failed_at_ms: 5,
            ..v1::DeadLetter::default()
        }
    }

    #[test]
    fn a_dead_letter_has_the_published_fields() {
        expect![[r#"{"id":"arun-4","action":"charge","attempts":4,"error_code":null,"error_message":"card refused","run_id":"wfrun-1","step":"pay","failed_at_ms":5,"input":{"amount":5}}"#]]
            .assert_eq(&serde_json::to_string(&DeadLetterView::from(dead_letter())).expect("printable"));
    }

    #[test]
    fn a_dead_letter_is_a_line_of_a_table() {
        expect![[r#"
            DEAD LETTER  ATTEMPTS  RUN      STEP  FAILED                    ERROR
            arun-4       4         wfrun-1  pay   1970-01-01T00:00:00.005Z  card refused"#]]
        .assert_eq(&table(&[DeadLetterRow::from(dead_letter())]));
    }
}
