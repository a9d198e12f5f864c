//! `flo action dlq list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::{Format, Page};
use crate::session::Session;
use crate::views::DeadLetterRow;
use clap::Args;
use flotilla_client::v1::ListDeadLettersRequest;
use serde::Serialize;

/// List the dead letters of an action, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action dlq list charge --limit 20")]
pub(crate) struct List {
    /// Name of the action
    name: String,

    #[command(flatten)]
    listing: Listing,
}

/// A page of dead letters, with the counts of the whole queue.
#[derive(Debug, Serialize)]
struct QueueView {
    #[serde(flatten)]
    page: Page<DeadLetterRow>,
    dead_letter_count: u64,
    dropped_count: u64,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListDeadLettersRequest {
            action: self.name,
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListDeadLettersRequest::default()
        };
        let response = session.client()?.list_dead_letters(request).await?;
        let view = QueueView {
            page: Page::new(response.items, response.next_page_token),
            dead_letter_count: response.dead_letter_count,
            dropped_count: response.dropped_count,
        };
        if session.output.format() != Format::Text {
            return session.output.value(&view, |_| String::new());
        }
        session.output.page(&view.page)?;
        if view.dropped_count > 0 {
            eprintln!(
                "dead letters dropped because the queue was full: {}",
                view.dropped_count
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_list_also_tells_what_is_counted() {
        let view = QueueView {
            page: Page {
                items: Vec::new(),
                next_page_token: None,
            },
            dead_letter_count: 3,
            dropped_count: 1,
        };
        expect![[r#"{"items":[],"next_page_token":null,"dead_letter_count":3,"dropped_count":1}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
