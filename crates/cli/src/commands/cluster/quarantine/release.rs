//! `flo cluster quarantine release`.

use crate::commands::listing::PAGE_ROWS;
use crate::failure::Failure;
use crate::output::Row;
use crate::session::Session;
use crate::views::QuarantinedView;
use clap::{Args, ValueEnum};
use flotilla_client::Client;
use flotilla_client::v1::{
    self, ListQuarantinedRequest, ListQuarantinedResponse, ReleaseQuarantinedRequest,
};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo cluster quarantine release run wfrun-1
  flo cluster quarantine release group orders/billing -n shop
  flo cluster quarantine release --all";

/// The server's code for a bug that it has contained.
const BUG: &str = "internal";
/// The server's code for an item that is not quarantined, or no longer.
const GONE: &str = "quarantine_not_found";

/// Release quarantined items, preferably on a version in which the bug is fixed
///
/// A released item continues as if it had never been quarantined: it catches up on what it missed,
/// and timers whose time has passed fire immediately. If the bug recurs, the item is quarantined
/// again. NAME is the name that the list shows, in the namespace of -n.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Release {
    /// Kind of the item
    #[arg(required_unless_present = "all", requires = "name")]
    kind: Option<Kind>,

    /// Name of the item
    name: Option<String>,

    /// Release all quarantined items of all namespaces
    #[arg(long, conflicts_with_all = ["kind", "name"])]
    all: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Kind {
    Run,
    ActionRun,
    Worker,
    Schedule,
    Stream,
    Group,
    Trigger,
    Plan,
}

/// The released items.
#[derive(Debug, Serialize)]
struct ReleasedView {
    released_count: usize,
    items: Vec<QuarantinedView>,
}

/// The progress of the releases.
#[derive(Default)]
struct Releases {
    /// Whether all items are to be released, not a single named one.
    is_all: bool,
    items: Vec<QuarantinedView>,
    /// The first refusal.
    refusal: Option<Failure>,
}

impl Release {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let mut releases = Releases {
            is_all: self.all,
            ..Releases::default()
        };
        let done = match (self.kind, self.name) {
            (Some(kind), Some(name)) => {
                let request = ListQuarantinedRequest {
                    kind: kind.message().into(),
                    name,
                    ..ListQuarantinedRequest::default()
                };
                let found = client.list_quarantined(request).await?;
                releases.release(&client, found).await
            }
            // Clap guarantees both or neither.
            (_, _) => releases.release_all(&client).await,
        };
        // With --all, some items may be released before one is refused: print them in any case.
        let is_all = done.is_ok() && releases.refusal.is_none();
        if is_all || !releases.items.is_empty() {
            let view = ReleasedView::from(releases.items);
            session.output.value(&view, ReleasedView::text)?;
        }
        done?;
        releases.refusal.map_or(Ok(()), Err)
    }
}

impl Releases {
    /// Releases all items, page by page.
    async fn release_all(&mut self, client: &Client) -> Result<(), Failure> {
        let mut page_token = String::new();
        loop {
            let request = ListQuarantinedRequest {
                limit: PAGE_ROWS,
                page_token,
                ..ListQuarantinedRequest::default()
            };
            let page = client.list_quarantined(request).await?;
            page_token = page.next_page_token.clone();
            self.release(client, page).await?;
            if page_token.is_empty() {
                return Ok(());
            }
        }
    }

    /// Releases the listed items. If the bug recurs for one of them, the others are still tried.
    async fn release(
        &mut self,
        client: &Client,
        found: ListQuarantinedResponse,
    ) -> Result<(), Failure> {
        for item in found.items {
            let request = ReleaseQuarantinedRequest {
                kind: item.kind,
                number: item.number,
                ..ReleaseQuarantinedRequest::default()
            };
            let answer = client.release_quarantined(request).await;
            let answer = answer.map(|_| ()).map_err(Failure::from);
            self.finish(item, answer)?;
        }
        Ok(())
    }

    /// Records the result of one release; returns an error if the remaining items need not be
    /// tried.
    fn finish(
        &mut self,
        item: v1::QuarantinedItem,
        answer: Result<(), Failure>,
    ) -> Result<(), Failure> {
        match answer {
            Ok(()) => self.items.push(QuarantinedView::from(item)),
            Err(failure) if failure.code() == BUG => {
                self.refusal.get_or_insert(failure);
            }
            // Another caller has released it since it was listed.
            Err(failure) if self.is_all && failure.code() == GONE => {}
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

impl Kind {
    fn message(self) -> v1::QuarantinedKind {
        match self {
            Self::Run => v1::QuarantinedKind::Run,
            Self::ActionRun => v1::QuarantinedKind::ActionRun,
            Self::Worker => v1::QuarantinedKind::Worker,
            Self::Schedule => v1::QuarantinedKind::Schedule,
            Self::Stream => v1::QuarantinedKind::Stream,
            Self::Group => v1::QuarantinedKind::Group,
            Self::Trigger => v1::QuarantinedKind::Trigger,
            Self::Plan => v1::QuarantinedKind::Plan,
        }
    }
}

impl From<Vec<QuarantinedView>> for ReleasedView {
    fn from(items: Vec<QuarantinedView>) -> Self {
        Self {
            released_count: items.len(),
            items,
        }
    }
}

impl ReleasedView {
    fn text(&self) -> String {
        if self.items.is_empty() {
            return "nothing is quarantined".to_owned();
        }
        let lines = self.items.iter().map(|item| {
            let cells = item.cells();
            format!("{} {} is released", cells[0], cells[2])
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use flotilla_client::PublishedName;

    fn view(items: Vec<v1::QuarantinedItem>) -> ReleasedView {
        let items = items.into_iter().map(QuarantinedView::from);
        ReleasedView::from(items.collect::<Vec<_>>())
    }

    #[test]
    fn what_is_released_is_reported() {
        let view = view(vec![v1::QuarantinedItem {
            kind: v1::QuarantinedKind::Run.into(),
            number: 1,
            namespace: "default".to_owned(),
            name: "wfrun-1".to_owned(),
            quarantined_at_ms: 1_000,
            raft_index: 7,
        }]);
        expect!["run wfrun-1 is released"].assert_eq(&view.text());
        expect![[r#"{"released_count":1,"items":[{"kind":"run","namespace":"default","name":"wfrun-1","quarantined_at_ms":1000,"raft_index":7}]}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }

    #[test]
    fn an_item_that_another_caller_released_does_not_stop_the_release_of_all() {
        let mut releases = Releases {
            is_all: true,
            ..Releases::default()
        };
        let mut finish = |answer| releases.finish(v1::QuarantinedItem::default(), answer);
        assert_eq!(finish(Err(Failure::said(GONE))), Ok(()));
        assert_eq!(finish(Err(Failure::said(BUG))), Ok(()));
        assert_eq!(finish(Ok(())), Ok(()));
        let no_leader = finish(Err(Failure::said("no_leader")));
        assert_eq!(no_leader, Err(Failure::said("no_leader")));
        assert_eq!(releases.items.len(), 1);
        assert_eq!(releases.refusal, Some(Failure::said(BUG)));

        let mut named = Releases::default();
        let gone = named.finish(v1::QuarantinedItem::default(), Err(Failure::said(GONE)));
        assert_eq!(gone, Err(Failure::said(GONE)));
    }

    #[test]
    fn releasing_nothing_succeeds() {
        expect!["nothing is quarantined"].assert_eq(&view(Vec::new()).text());
    }

    #[test]
    fn the_kinds_are_spelt_as_they_are_published() {
        for kind in Kind::value_variants() {
            let value = kind.to_possible_value().expect("none is hidden");
            let published = kind.message().published_name();
            assert_eq!(Some(value.get_name().to_owned()), published);
        }
    }
}
