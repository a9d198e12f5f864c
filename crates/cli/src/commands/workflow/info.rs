//! `flo workflow info`.

use crate::failure::Failure;
use crate::json_argument;
use crate::output::Format;
use crate::session::Session;
use crate::views::InfoView;
use clap::Args;
use flotilla_client::v1::{AddInfoRequest, ListInfoRequest};
use serde::Serialize;

/// The most entries that one response holds.
const PAGE_ENTRIES: u32 = 1000;

/// Print the info entries of a run, or add one
///
/// Info entries are JSON objects that callers and the tasks of the run add while it is open, for
/// example to report progress. Without JSON, prints all of them, the oldest first; with -o json, one
/// object per line.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow info wfrun-1\n  flo workflow info wfrun-1 '{\"ticket\": \"OPS-7\"}'"
)]
pub(crate) struct Info {
    /// Id of the run
    run: String,

    /// Entry to add: a JSON object, @FILE, or - for stdin [default: print the entries]
    #[arg(value_name = "JSON|@FILE|-")]
    content: Option<String>,
}

#[derive(Debug, Serialize)]
struct AddedView {
    run_id: String,
    number: u32,
}

impl Info {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self.content {
            Some(content) => add(session, self.run, &content).await,
            None => list(session, self.run).await,
        }
    }
}

async fn add(session: &Session, run_id: String, content: &str) -> Result<(), Failure> {
    let request = AddInfoRequest {
        run_id: run_id.clone(),
        content: json_argument::read_optional(Some(content))?,
        ..AddInfoRequest::default()
    };
    let added = session.client()?.add_info(request).await?;
    let view = AddedView {
        run_id,
        number: added.number,
    };
    session.output.value(&view, AddedView::text)
}

async fn list(session: &Session, run_id: String) -> Result<(), Failure> {
    let client = session.client()?;
    let mut after = 0;
    loop {
        let request = ListInfoRequest {
            run_id: run_id.clone(),
            after,
            limit: PAGE_ENTRIES,
            ..ListInfoRequest::default()
        };
        let page = client.list_info(request).await?;
        if after == 0 && session.output.format() == Format::Text {
            session.output.value(&(), |()| InfoView::headings())?;
        }
        let Some(last) = page.entries.last() else {
            return Ok(());
        };
        after = last.number;
        for entry in page.entries {
            session
                .output
                .item(&InfoView::from(entry), InfoView::line)?;
        }
        if !page.has_more {
            return Ok(());
        }
    }
}

impl AddedView {
    fn text(&self) -> String {
        format!("info {} added to {}", self.number, self.run_id)
    }
}
