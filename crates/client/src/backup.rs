//! Taking a backup: the pieces of a file, in order.

use crate::call::{Opened, REPLY_BYTES_MAX};
use crate::client::Client;
use crate::code::ClientCode;
use crate::error::ClientError;
use flotilla_api::v1;
use flotilla_api::v1::cluster_service_client::ClusterServiceClient;
use futures::stream::{BoxStream, StreamExt, try_unfold};
use tokio::time::timeout;
use tonic::Streaming;

impl Client {
    /// The whole state as the pieces of a file, with everything that was acknowledged before the call. The
    /// client's timeout is for the beginning, and for each piece. The end of the stream is no proof that the
    /// file is whole: it is if its last block is there.
    ///
    /// # Errors
    /// [`ClientError`] when no node begins; a stream that breaks ends with one. It cannot go on where it
    /// stopped.
    pub async fn backup(
        &self,
        request: v1::BackupRequest,
    ) -> Result<BoxStream<'static, Result<v1::BackupPart, ClientError>>, ClientError> {
        let opened = self
            .open(request, |channel, request| async move {
                let client = ClusterServiceClient::new(channel);
                let mut client = client.max_decoding_message_size(REPLY_BYTES_MAX);
                client.backup(request).await
            })
            .await?;
        let pieces = (self.clone(), opened);
        let pieces = try_unfold(pieces, |(client, mut opened)| async move {
            let part = client.next_part(&mut opened).await?;
            Ok(part.map(|part| (part, (client, opened))))
        });
        Ok(pieces.boxed())
    }

    async fn next_part(
        &self,
        opened: &mut Opened<Streaming<v1::BackupPart>>,
    ) -> Result<Option<v1::BackupPart>, ClientError> {
        match timeout(self.timeout(), opened.answer.message()).await {
            Ok(Ok(part)) => Ok(part),
            Ok(Err(status)) => Err(self.note_status(opened.position, &status).error),
            Err(_elapsed) => {
                let address = self.nodes().address(opened.position);
                let waited = self.timeout().as_millis();
                let message = format!(
                    "expected the backup from {address} to go on within {waited} ms, but nothing came"
                );
                Err(ClientError::new(ClientCode::StreamLost, message))
            }
        }
    }
}
