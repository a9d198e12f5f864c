//! `flo kv get`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::KeyView;
use clap::Args;
use flotilla_client::v1::{GetKeyRequest, GetKeyResponse};

/// Print the value of a key, or exit with 1 if the key does not exist
///
/// With -o json, also prints the version; a JSON value is shown as JSON, any other as a string.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo kv get config/limit")]
pub(crate) struct Get {
    /// Key to read
    key: String,
}

impl Get {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetKeyRequest {
            key: self.key,
            ..GetKeyRequest::default()
        };
        let GetKeyResponse { item } = session.client()?.get_key(request).await?;
        let item = item.unwrap_or_default();
        let text = String::from_utf8_lossy(&item.value).into_owned();
        session.output.value(&KeyView::from(item), |_| text)
    }
}
