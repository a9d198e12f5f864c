//! An info entry of a run.

use super::json;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;
use serde_json::Value;

/// An info entry.
#[derive(Debug, Serialize)]
pub(crate) struct InfoView {
    number: u32,
    at_ms: u64,
    task: Option<TaskView>,
    content: Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

/// The task that added an entry.
#[derive(Debug, Serialize)]
struct TaskView {
    scope: String,
    step: String,
    visit: u32,
    action_run_id: String,
    attempt: u32,
}

impl From<v1::Info> for InfoView {
    fn from(info: v1::Info) -> Self {
        Self {
            number: info.number,
            at_ms: info.at_ms,
            task: info.task.map(|task| TaskView {
                scope: task.scope,
                step: task.step,
                visit: task.visit,
                action_run_id: task.action_run_id,
                attempt: task.attempt,
            }),
            content: json::value(&info.content),
            redacted: info.redacted,
        }
    }
}

impl InfoView {
    /// The headings of [`Self::line`].
    pub(crate) fn headings() -> String {
        line(["NUMBER", "TIME", "STEP", "INFO"])
    }

    /// The entry as a table line with fixed column widths, because the following rows are not known
    /// yet.
    pub(crate) fn line(&self) -> String {
        let place = match &self.task {
            None => "-".to_owned(),
            Some(task) if task.scope.is_empty() => task.step.clone(),
            Some(task) => format!("{}/{}", task.scope, task.step),
        };
        line([
            &self.number.to_string(),
            &time::show(self.at_ms),
            &place,
            &self.content.to_string(),
        ])
    }
}

fn line([number, time, step, info]: [&str; 4]) -> String {
    format!("{number:>6}  {time:<24}  {step:<16}  {info}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn info(task: Option<v1::InfoTask>) -> v1::Info {
        v1::Info {
            number: 3,
            at_ms: 1_000,
            content: r#"{"done": 2, "of": 10}"#.into(),
            task,
            redacted: false,
        }
    }

    #[test]
    fn an_entry_has_the_published_fields_and_a_line() {
        let task = v1::InfoTask {
            scope: "each[3]".to_owned(),
            step: "ship".to_owned(),
            visit: 1,
            action_run_id: "arun-7".to_owned(),
            attempt: 2,
        };
        let of_task = InfoView::from(info(Some(task)));
        expect![[r#"{"number":3,"at_ms":1000,"task":{"scope":"each[3]","step":"ship","visit":1,"action_run_id":"arun-7","attempt":2},"content":{"done":2,"of":10}}"#]].assert_eq(&serde_json::to_string(&of_task).expect("printable"));
        let of_caller = InfoView::from(info(None));
        let lines = [InfoView::headings(), of_task.line(), of_caller.line()];
        expect![[r#"
            NUMBER  TIME                      STEP              INFO
                 3  1970-01-01T00:00:01.000Z  each[3]/ship      {"done":2,"of":10}
                 3  1970-01-01T00:00:01.000Z  -                 {"done":2,"of":10}"#]]
        .assert_eq(&lines.join("\n"));
    }
}
