//! `flo action dlq requeue`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{RequeueDeadLettersRequest, RequeueDeadLettersResponse};
use serde::Serialize;

/// Run dead letters again and print the ids of the new action runs
///
/// Each is a new action run by itself: it resumes no workflow.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo action dlq requeue charge arun-4\n  flo action dlq requeue charge"
)]
pub(crate) struct Requeue {
    /// The action's name
    name: String,

    /// One dead letter [default: all of them]
    #[arg(default_value = "", hide_default_value = true)]
    id: String,
}

#[derive(Debug, Serialize)]
struct RequeuedView {
    action: String,
    requeued: u64,
    action_run_ids: Vec<String>,
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
            requeued: response.requeued,
            action_run_ids: response.action_run_ids,
        }
    }

    /// The ids that the server names, one a line; it names no more than a page of them.
    fn text(&self) -> String {
        if self.requeued == 0 {
            return format!("{} has no dead letters", self.action);
        }
        let mut text = self.action_run_ids.join("\n");
        let unnamed = self.requeued - self.action_run_ids.len() as u64;
        if unnamed > 0 {
            text.push_str(&format!("\nand {unnamed} more"));
        }
        text
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
            requeued,
        };
        RequeuedView::new("charge".to_owned(), response)
    }

    #[test]
    fn the_new_action_runs_are_named_one_a_line() {
        assert_eq!(view(2, &["arun-5", "arun-6"]).text(), "arun-5\narun-6");
        assert_eq!(view(9, &["arun-5"]).text(), "arun-5\nand 8 more");
        assert_eq!(view(0, &[]).text(), "charge has no dead letters");
    }

    #[test]
    fn a_program_reads_how_many_and_which() {
        expect![[r#"{"action":"charge","requeued":1,"action_run_ids":["arun-5"]}"#]]
            .assert_eq(&serde_json::to_string(&view(1, &["arun-5"])).expect("printable"));
    }
}
