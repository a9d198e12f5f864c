//! `flo stream group info`.

use super::Named;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::GroupView;
use clap::Args;
use flotilla_client::v1::GetGroupRequest;

/// Show a group, its consumers and its position as JSON
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo stream group info orders billing")]
pub(crate) struct Info {
    #[command(flatten)]
    named: Named,
}

impl Info {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetGroupRequest {
            stream: self.named.stream,
            group: self.named.group,
            ..GetGroupRequest::default()
        };
        let group = session.client()?.get_group(request).await?;
        session.output.document(&GroupView::from(group))
    }
}
