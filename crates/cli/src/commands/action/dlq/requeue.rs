//! `flo action dlq requeue`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{RequeueDeadLettersRequest, RequeueDeadLettersResponse};
use serde::Serialize;

/// Run dead letters again as new action runs and print their ids
///
/// The new action runs are stand-alone: no workflow run resumes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo action dlq requeue charge arun-4\n  flo action dlq requeue charge"
)]
pub(crate) struct Requeue {
    /// Name of the action
    name: String,

    /// Id of one dead letter [default: all]
    #[arg(default_value = "", hide_default_value = true)]
    id: String,
}

#[derive(Debug, Serialize)]
struct RequeuedView {
    action: String,
    requeued_count: u64,
    action_run_ids: Vec<String>,
    has_more: bool,
}

impl Requeue {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = RequeueDeadLettersRequest {
            action: self.name.clone(),
            id: self.id,
            ..RequeueDeadLettersRequest::default()
        };
        let response = session.client()?.requeue_dead_letters(request).await?;
        let view = RequeuedView::new(self.name, response);
        session.output.value(&view, RequeuedView::text)
    }
}

impl RequeuedView {
    fn new(action: String, response: RequeueDeadLettersResponse) -> Self {
        Self {
            action,
            requeued_count: response.requeued_count,
            action_run_ids: response.action_run_ids,
            has_more: response.has_more,
        }
    }

    /// The ids that the server returned, one per line; it returns at most a page of them.
    fn text(&self) -> String {
        if self.requeued_count == 0 && !self.has_more {
            return format!("{} has no dead letters", self.action);
        }
        let mut lines = self.action_run_ids.clone();
        let unnamed = self.requeued_count - self.action_run_ids.len() as u64;
        if unnamed > 0 {
            lines.push(format!("and {unnamed} more"));
        }
        if self.has_more {
            lines.push(
                "dead letters are left: the open action runs have too many sets of labels"
                    .to_owned(),
            );
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn view(requeued: u64, ids: &[&str]) -> RequeuedView {
        let action_run_ids = ids.iter().map(|&id| id.to_owned()).collect();
        let response = RequeueDeadLettersResponse {
            action_run_ids,
            requeued_count: requeued,
            has_more: false,
        };
        RequeuedView::new("charge".to_owned(), response)
    }

    #[test]
    fn the_new_action_runs_are_named_one_a_line() {
        assert_eq!(view(2, &["arun-5", "arun-6"]).text(), "arun-5\narun-6");
        assert_eq!(view(9, &["arun-5"]).text(), "arun-5\nand 8 more");
        assert_eq!(view(0, &[]).text(), "charge has no dead letters");
        let mut partly = view(1, &["arun-5"]);
        partly.has_more = true;
        assert_eq!(
            partly.text(),
            "arun-5\ndead letters are left: the open action runs have too many sets of labels"
        );
    }

    #[test]
    fn a_program_reads_how_many_and_which() {
        expect![[
            r#"{"action":"charge","requeued_count":1,"action_run_ids":["arun-5"],"has_more":false}"#
        ]]
        .assert_eq(&serde_json::to_string(&view(1, &["arun-5"])).expect("printable"));
    }
}
