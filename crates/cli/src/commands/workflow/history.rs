//! `flo workflow history`.

use crate::failure::Failure;
use crate::output::{Format, Output};
use crate::session::Session;
use crate::views::EventView;
use clap::Args;
use flotilla_client::v1::{Event, GetHistoryRequest, WatchRunRequest};
use flotilla_client::{Client, WatchUpdate};
use futures::TryStreamExt;

/// The most events that one response holds.
const PAGE_EVENTS_MAX: u64 = 1000;

/// Print the history of a run, oldest event first
///
/// With -o json, prints one object per line.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow history wfrun-1\n  flo workflow history wfrun-1 --follow -o json"
)]
pub(crate) struct History {
    /// Id of the run
    run: String,

    /// Maximum number of events [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Keep printing new events until the run ends
    #[arg(long)]
    follow: bool,
}

impl History {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let printer = Printer {
            output: session.output,
            left: self.limit.unwrap_or(u64::MAX),
            is_begun: false,
        };
        if self.follow {
            follow(&client, self.run, printer).await
        } else {
            print(&client, self.run, printer).await
        }
    }
}

async fn print(client: &Client, run_id: String, mut printer: Printer) -> Result<(), Failure> {
    let mut after_seq = 0;
    loop {
        let limit = printer.left.min(PAGE_EVENTS_MAX);
        let request = GetHistoryRequest {
            run_id: run_id.clone(),
            after_seq,
            limit: u32::try_from(limit).unwrap_or_default(),
            ..GetHistoryRequest::default()
        };
        let page = client.get_history(request).await?;
        let Some(last) = page.events.last() else {
            return Ok(());
        };
        after_seq = last.seq;
        for event in page.events {
            printer.print(event)?;
        }
        if !page.has_more || printer.left == 0 {
            return Ok(());
        }
    }
}

async fn follow(client: &Client, run_id: String, mut printer: Printer) -> Result<(), Failure> {
    let mut updates = client.watch_run(WatchRunRequest {
        run_id,
        ..WatchRunRequest::default()
    });
    while let Some(update) = updates.try_next().await? {
        if let WatchUpdate::Event(event) = update {
            printer.print(event)?;
        }
        if printer.left == 0 {
            return Ok(());
        }
    }
    Ok(())
}

/// Prints a heading and then events, up to the limit.
struct Printer {
    output: Output,
    left: u64,
    is_begun: bool,
}

impl Printer {
    fn print(&mut self, event: Event) -> Result<(), Failure> {
        if self.output.format() == Format::Text && !self.is_begun {
            self.output.value(&(), |()| EventView::headings())?;
        }
        self.is_begun = true;
        self.left = self.left.saturating_sub(1);
        self.output.item(&EventView::from(event), EventView::line)
    }
}
