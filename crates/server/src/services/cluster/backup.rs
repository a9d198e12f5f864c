//! Streams a backup to the caller, in parts, as fast as the caller reads them.

use crate::access::{CallContext, credential_ended};
use crate::errors::Refusal;
use crate::limits::{BACKUP_PARTS_AHEAD, BACKUP_STALL_MAX};
use flotilla_api::v1;
use flotilla_replica::Backup;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

type Parts = mpsc::Sender<Result<v1::BackupPart, Status>>;

/// Begins a backup; the deadline applies to its beginning.
pub(super) async fn give(
    context: &CallContext,
    deadline: Instant,
) -> Result<ReceiverStream<Result<v1::BackupPart, Status>>, Refusal> {
    let backup = context.gateway.home().replica().backup(deadline).await?;
    tracing::info!(index = backup.header().index, "a backup begins");
    let (parts, receiver) = mpsc::channel(BACKUP_PARTS_AHEAD);
    tokio::spawn(send(context.clone(), backup, parts));
    Ok(ReceiverStream::new(receiver))
}

/// Sends the parts until the end, or until the caller is gone or stalls.
async fn send(context: CallContext, mut backup: Backup, parts: Parts) {
    loop {
        let part = tokio::select! {
            part = next(&mut backup) => part.transpose(),
            () = context.shutdown.cancelled() => Some(Err(Refusal::shutting_down())),
            refusal = credential_ended(&context) => Some(Err(refusal)),
        };
        let Some(part) = part else {
            context.metrics.backup_completed();
            return;
        };
        let is_last = part.is_err();
        let sent = parts.send_timeout(part.map_err(Status::from), BACKUP_STALL_MAX);
        if sent.await.is_err() {
            tracing::warn!("a backup was cancelled: its caller is gone or has stalled");
            return;
        }
        if is_last {
            return;
        }
    }
}

async fn next(backup: &mut Backup) -> Result<Option<v1::BackupPart>, Refusal> {
    let data = backup.next().await?;
    Ok(data.map(|data| v1::BackupPart {
        data,
        row_count: backup.rows_done(),
        expected_row_count: backup.rows(),
    }))
}
