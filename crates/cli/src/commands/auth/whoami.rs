//! `flo auth whoami`.

use super::mode;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::{SubjectView, TokenView};
use clap::Args;
use flotilla_client::v1::WhoAmIRequest;
use serde::Serialize;

/// Show the token or the client certificate that you use, and what it may do
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo auth whoami --token-file till.token")]
pub(crate) struct WhoAmI {}

#[derive(Debug, Serialize)]
struct CallerView {
    mode: &'static str,
    token: Option<TokenView>,
    subject: Option<SubjectView>,
}

impl WhoAmI {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let caller = session.client()?.who_am_i(WhoAmIRequest {}).await?;
        let view = CallerView {
            mode: mode::name(caller.mode()),
            token: caller.token.map(TokenView::from),
            subject: caller.subject.map(SubjectView::from),
        };
        session.output.value(&view, |view| {
            let who = match (&view.token, &view.subject) {
                (Some(token), _) => token.text(),
                (None, Some(subject)) => subject.text(),
                (None, None) => "no credential in use: you may do everything".to_owned(),
            };
            format!("{who}\nthe cluster is {}", view.mode)
        })
    }
}
