//! Rebuilds a diverged state (design rule 11).
//!
//! The log and the vote of such a replica are sound: only the state that it computed from the log
//! is wrong. So both stay, and only the state is replaced, before consensus starts, by a snapshot
//! of a member that has not diverged. The snapshot must reach the log, which has what follows. It
//! need not be as recent as the old state: a member that lags may be waiting for this node's vote.
//!
//! A member that cannot help is asked again. A failure at this node would repeat with each member,
//! so it ends the start (design rule 10).

use crate::log::store::LogStore;
use crate::membership::StoredMembership;
use crate::network::calls::{PeerCalls, PeerError};
use crate::network::links::Links;
use crate::network::local::Local;
use crate::network::protocol::{FetchSnapshotRequest, StatusRequest};
use crate::network::snapshots::{self, ReceiveError, ReceivedSnapshot};
use crate::start_error::StartError;
use crate::state::machine::Machine;
use crate::state::rows::{self, Divergence, RowError};
use crate::state::store::StateStore;
use flotilla_engine::store::Writes;
use futures::StreamExt;
use openraft::storage::RaftStateMachine;
use std::collections::BTreeMap;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A member that does not report its status within this time is not asked for a snapshot.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause before the members are asked again, if none could help.
const PAUSE: Duration = Duration::from_secs(1);

/// The context of a rebuild: a node whose consensus has not started.
pub(crate) struct Rebuild<'a> {
    pub(crate) local: &'a Local,
    pub(crate) links: &'a Links,
    pub(crate) members: &'a StoredMembership,
    pub(crate) store: &'a Arc<dyn StateStore>,
    pub(crate) machine: &'a mut Machine,
    pub(crate) log: &'a LogStore,
    /// How long a member may take to send its snapshot.
    pub(crate) timeout: Duration,
}

/// Why a member's snapshot is not installed.
#[derive(Debug, thiserror::Error)]
enum TakeError {
    #[error("its own state differs from the majority's")]
    Diverged,
    #[error("it took longer than {} s", .0.as_secs())]
    Late(Duration),
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// Not the member's fault.
    #[error("{0}")]
    Own(io::Error),
}

impl From<ReceiveError> for TakeError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Peer(error) => Self::Peer(error),
            ReceiveError::Store(_) => Self::Own(io::Error::other(error)),
        }
    }
}

/// Whether a member's state may be used: a diverged member may not know it yet. Reports that are no
/// longer kept prove nothing.
fn is_trusted(reports: &BTreeMap<u64, u128>, node_id: u64, found: &Divergence) -> bool {
    reports.is_empty() || reports.get(&node_id) == Some(&found.majority)
}

impl Rebuild<'_> {
    /// Rebuilds the state, if an earlier process found that it has diverged from the majority's.
    ///
    /// # Errors
    /// [`StartError`] if this node's state cannot be read or replaced.
    pub(crate) async fn run_if_diverged(self) -> Result<(), StartError> {
        let found = rows::divergence(self.store.reader().as_ref());
        match found.map_err(|error: RowError| StartError::Mixed(error.to_string()))? {
            Some(found) => self.run(&found).await,
            None => Ok(()),
        }
    }

    /// Asks the other members in turn until a snapshot of one is installed.
    async fn run(mut self, found: &Divergence) -> Result<(), StartError> {
        tracing::warn!(
            index = found.index,
            ours = %format_args!("{:032x}", found.ours),
            majority = %format_args!("{:032x}", found.majority),
            "an earlier process found that this state differs from the majority's: it is replaced \
             by another member's"
        );
        let log_begin = self.log.purged().map_or(0, |log_id| log_id.index());
        let at_least = found.index.max(log_begin);
        self.void_reports().map_err(StartError::NotRebuilt)?;
        let reports = rows::digest_reports(self.store.reader().as_ref(), found.index);
        let reports = reports.map_err(|error| StartError::Mixed(error.to_string()))?;
        loop {
            for (node_id, member) in self.members.nodes() {
                if *node_id == self.local.node_id || !is_trusted(&reports, *node_id, found) {
                    continue;
                }
                match self.take(*node_id, &member.peer_address, at_least).await {
                    Ok(index) => {
                        tracing::info!(from = node_id, index, "the state has been replaced");
                        return Ok(());
                    }
                    Err(TakeError::Own(error)) => return Err(StartError::NotRebuilt(error)),
                    Err(error) => {
                        tracing::warn!(from = node_id, %error, "a member could not send its state");
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Records that this node's digest reports are void. It may have reported for every entry of
    /// its log; the state's current position is not a limit, since a crash may have set it back.
    fn void_reports(&self) -> io::Result<()> {
        let reader = self.store.reader();
        let void = rows::reports_void(reader.as_ref()).map_err(io::Error::other)?;
        let last = self.log.last().map_or(0, |log_id| log_id.index());
        let mut writes = Writes::new();
        rows::put_reports_void(&mut writes, void.max(last));
        self.store.write(&writes).map_err(io::Error::other)
    }

    /// Installs the snapshot of one member; returns its index.
    async fn take(
        &mut self,
        node_id: u64,
        address: &str,
        at_least_index: u64,
    ) -> Result<u64, TakeError> {
        let peer = self.links.connect(address);
        self.check_sound(node_id, peer.as_ref()).await?;
        let request = FetchSnapshotRequest {
            sender: Some(self.local.sender(node_id)),
            min_index: at_least_index,
        };
        let received = timeout(self.timeout, self.receive(peer.as_ref(), request))
            .await
            .map_err(|_| TakeError::Late(self.timeout))??;
        let last = received.snapshot.meta.last_log_id;
        let index = last.map_or(0, |log_id| log_id.index());
        if index < at_least_index {
            let text =
                format!("expected a snapshot of entry {at_least_index}, but it is of {index}");
            return Err(PeerError::Failed(text).into());
        }
        self.put_in_place(received).await.map_err(TakeError::Own)?;
        Ok(index)
    }

    async fn put_in_place(&mut self, received: ReceivedSnapshot) -> io::Result<()> {
        let meta = received.snapshot.meta;
        self.machine
            .install_snapshot(&meta, received.snapshot.snapshot)
            .await?;
        match meta.last_log_id {
            Some(applied) => self.log.fit(applied).await,
            None => Ok(()),
        }
    }

    async fn check_sound(&self, node_id: u64, peer: &dyn PeerCalls) -> Result<(), TakeError> {
        let request = StatusRequest {
            sender: Some(self.local.sender(node_id)),
        };
        let status = timeout(STATUS_TIMEOUT, peer.status(request))
            .await
            .map_err(|_| TakeError::Late(STATUS_TIMEOUT))??;
        if status.diverged {
            return Err(TakeError::Diverged);
        }
        Ok(())
    }

    async fn receive(
        &self,
        peer: &dyn PeerCalls,
        request: FetchSnapshotRequest,
    ) -> Result<ReceivedSnapshot, ReceiveError> {
        let parts = peer.fetch_snapshot(request).await?;
        // An interrupted stream has no end, and is refused for that.
        let mut parts = parts
            .take_while(|part| ready(part.is_ok()))
            .filter_map(|part| ready(part.ok()))
            .boxed();
        let begin = snapshots::receive_begin(&mut parts).await?;
        snapshots::receive_rows(begin, parts, self.store.as_ref(), &self.links.blocking_pool).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_taken_only_from_a_member_that_reported_the_digest_of_the_majority() {
        let found = Divergence {
            index: 7,
            ours: 1,
            majority: 2,
        };
        let reports = BTreeMap::from([(1, 1), (2, 2), (3, 3)]);
        let trusted = |reports: &BTreeMap<u64, u128>| {
            let members = (1..=4).filter(|node_id| is_trusted(reports, *node_id, &found));
            members.collect::<Vec<u64>>()
        };
        assert_eq!(trusted(&reports), [2]);
        // Old reports are not kept.
        assert_eq!(trusted(&BTreeMap::new()), [1, 2, 3, 4]);
    }
}
