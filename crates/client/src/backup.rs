//! Taking a backup: the parts of a file, in order.

use crate::call::{OpenCall, REPLY_BYTES_MAX};
use crate::client::Client;
use crate::code::ClientCode;
use crate::error::ClientError;
use flotilla_api::v1;
use flotilla_api::v1::cluster_service_client::ClusterServiceClient;
use futures::stream::{BoxStream, StreamExt, try_unfold};
use tokio::time::timeout;
use tonic::Streaming;

impl Client {
    /// Streams the whole state as the parts of a file, including everything acknowledged before the
    /// call. The client's timeout applies to the start and to each part. The end of the stream does
    /// not prove that the file is complete; its final block does.
    ///
    /// # Errors
    /// [`ClientError`] if no node starts the backup; a stream that breaks ends with one. An
    /// interrupted backup cannot be resumed.
    pub async fn backup(
        &self,
        request: v1::BackupRequest,
    ) -> Result<BoxStream<'static, Result<v1::BackupPart, ClientError>>, ClientError> {
        let opened = self
            .open(&request, |channel, request| async move {
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
        opened: &mut OpenCall<Streaming<v1::BackupPart>>,
    ) -> Result<Option<v1::BackupPart>, ClientError> {
        match timeout(self.timeout(), opened.answer.message()).await {
            Ok(Ok(part)) => Ok(part),
            Ok(Err(status)) => Err(self.note_status_in(None, opened.position, &status).error),
            Err(_elapsed) => {
                let address = self.nodes().address(opened.position);
                let waited = self.timeout().as_millis();
                let message = format!(
                    "expected the backup from {address} to continue within {waited} ms, but nothing came"
                );
                Err(ClientError::new(ClientCode::StreamLost, message))
            }
        }
    }
}
