//! `flo cluster quarantine retry`.

use crate::failure::Failure;
use crate::output::Row;
use crate::session::Session;
use crate::views::QuarantinedView;
use clap::{Args, ValueEnum};
use flotilla_client::Client;
use flotilla_client::v1::{
    self, ListQuarantinedRequest, ListQuarantinedResponse, RetryQuarantinedRequest,
};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo cluster quarantine retry run wfrun-1
  flo cluster quarantine retry group orders/billing -n shop
  flo cluster quarantine retry --all";

/// How many are read at once for --all.
const PAGE_ITEMS: u32 = 1_000;
/// The server's code for a bug that it has contained.
const BUG: &str = "internal";
/// The server's code for what is not set aside, or not any more.
const GONE: &str = "quarantine_not_found";

/// Take up what is set aside, best with a version in which the bug is fixed
///
/// It goes on as if it had never been set aside: what came in meanwhile is made up for, and what fell due is
/// due now. Should the bug come back, it is set aside again. NAME is what the list shows, in the namespace of
/// -n.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Retry {
    /// What it is
    #[arg(required_unless_present = "all", requires = "name")]
    kind: Option<Kind>,

    /// What it is called
    name: Option<String>,

    /// Take up everything that is set aside, in all namespaces
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

/// What was taken up.
#[derive(Debug, Serialize)]
struct RetriedView {
    retried: usize,
    items: Vec<QuarantinedView>,
}

/// What has become of retries so far.
#[derive(Default)]
struct Retries {
    /// Whether everything is to be taken up, and not one thing that was named.
    is_all: bool,
    items: Vec<QuarantinedView>,
    /// The first that was refused.
    refusal: Option<Failure>,
}

impl Retry {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let mut retries = Retries {
            is_all: self.all,
            ..Retries::default()
        };
        let done = match (self.kind, self.name) {
            (Some(kind), Some(name)) => {
                let request = ListQuarantinedRequest {
                    kind: kind.message().into(),
                    name,
                    ..ListQuarantinedRequest::default()
                };
                let found = client.list_quarantined(request).await?;
                retries.take_up(&client, found).await
            }
            // The command line has both of them, or none.
            (_, _) => retries.take_up_all(&client).await,
        };
        // Of many some may be taken up before one is refused: they are told in any case.
        let is_all = done.is_ok() && retries.refusal.is_none();
        if is_all || !retries.items.is_empty() {
            let view = RetriedView::from(retries.items);
            session.output.value(&view, RetriedView::text)?;
        }
        done?;
        retries.refusal.map_or(Ok(()), Err)
    }
}

impl Retries {
    /// Takes up everything, page by page.
    async fn take_up_all(&mut self, client: &Client) -> Result<(), Failure> {
        let mut page_token = String::new();
        loop {
            let request = ListQuarantinedRequest {
                limit: PAGE_ITEMS,
                page_token,
                ..ListQuarantinedRequest::default()
            };
            let page = client.list_quarantined(request).await?;
            page_token = page.next_page.clone();
            self.take_up(client, page).await?;
            if page_token.is_empty() {
                return Ok(());
            }
        }
    }

    /// Takes up what was found. Where the bug comes back at once, the others get their turn all the same.
    async fn take_up(
        &mut self,
        client: &Client,
        found: ListQuarantinedResponse,
    ) -> Result<(), Failure> {
        for item in found.items {
            let request = RetryQuarantinedRequest {
                kind: item.kind,
                number: item.number,
                ..RetryQuarantinedRequest::default()
            };
            let answer = client.retry_quarantined(request).await;
            let answer = answer.map(|_| ()).map_err(Failure::from);
            self.settle(item, answer)?;
        }
        Ok(())
    }

    /// Takes note of what has become of one of them; an error when the others need not be tried.
    fn settle(
        &mut self,
        item: v1::Quarantined,
        answer: Result<(), Failure>,
    ) -> Result<(), Failure> {
        match answer {
            Ok(()) => self.items.push(QuarantinedView::from(item)),
            Err(failure) if failure.code() == BUG => {
                self.refusal.get_or_insert(failure);
            }
            // Somebody else has taken it up since it was listed.
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

impl From<Vec<QuarantinedView>> for RetriedView {
    fn from(items: Vec<QuarantinedView>) -> Self {
        Self {
            retried: items.len(),
            items,
        }
    }
}

impl RetriedView {
    fn text(&self) -> String {
        if self.items.is_empty() {
            return "nothing is set aside".to_owned();
        }
        let lines = self.items.iter().map(|item| {
            let cells = item.cells();
            format!("{} {} is taken up again", cells[0], cells[2])
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use flotilla_client::PublishedName;

    fn view(items: Vec<v1::Quarantined>) -> RetriedView {
        let items = items.into_iter().map(QuarantinedView::from);
        RetriedView::from(items.collect::<Vec<_>>())
    }

    #[test]
    fn what_is_taken_up_is_told() {
        let view = view(vec![v1::Quarantined {
            kind: v1::QuarantinedKind::Run.into(),
            number: 1,
            namespace: "default".to_owned(),
            name: "wfrun-1".to_owned(),
            at_ms: 1_000,
            raft_index: 7,
        }]);
        expect!["run wfrun-1 is taken up again"].assert_eq(&view.text());
        expect![[r#"{"retried":1,"items":[{"kind":"run","namespace":"default","name":"wfrun-1","at_ms":1000,"raft_index":7}]}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }

    #[test]
    fn what_somebody_else_takes_up_holds_up_nobody_who_takes_up_all() {
        let mut retries = Retries {
            is_all: true,
            ..Retries::default()
        };
        let mut settle = |answer| retries.settle(v1::Quarantined::default(), answer);
        assert_eq!(settle(Err(Failure::said(GONE))), Ok(()));
        assert_eq!(settle(Err(Failure::said(BUG))), Ok(()));
        assert_eq!(settle(Ok(())), Ok(()));
        let no_leader = settle(Err(Failure::said("no_leader")));
        assert_eq!(no_leader, Err(Failure::said("no_leader")));
        assert_eq!(retries.items.len(), 1);
        assert_eq!(retries.refusal, Some(Failure::said(BUG)));

        let mut named = Retries::default();
        let gone = named.settle(v1::Quarantined::default(), Err(Failure::said(GONE)));
        assert_eq!(gone, Err(Failure::said(GONE)));
    }

    #[test]
    fn nothing_to_take_up_is_no_failure() {
        expect!["nothing is set aside"].assert_eq(&view(Vec::new()).text());
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
