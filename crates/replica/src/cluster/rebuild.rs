//! Replacing a state that differs from the majority's (design rule 11).
//!
//! The log of such a replica is sound and so is its vote: only what it made of the log is wrong. So both stay,
//! and the state alone is replaced, before consensus starts, by a snapshot of a member that was not found to
//! differ. It must reach as far as the state did: the log need not hold what lies before.

use crate::log::store::LogStore;
use crate::membership::StoredMembership;
use crate::network::calls::{PeerCalls, PeerError};
use crate::network::links::{Links, Local};
use crate::network::protocol::{FetchSnapshotRequest, StatusRequest};
use crate::network::snapshots;
use crate::start::StartError;
use crate::state::machine::Machine;
use crate::state::rows::{self, Divergence, Progress, RowError};
use crate::state::store::StateStore;
use futures::StreamExt;
use openraft::storage::{RaftLogStorage, RaftStateMachine};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A member that does not say within this time how it stands is not asked for a snapshot.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long all members are left alone when none could help.
const PAUSE: Duration = Duration::from_secs(1);

/// What a rebuild works with: a node whose consensus has not started.
pub(crate) struct Rebuild<'a> {
    pub(crate) local: &'a Local,
    pub(crate) links: &'a Links,
    pub(crate) members: &'a StoredMembership,
    pub(crate) store: &'a Arc<dyn StateStore>,
    pub(crate) machine: &'a mut Machine,
    pub(crate) log: &'a mut LogStore,
    /// How long a member may take to send its snapshot.
    pub(crate) timeout: Duration,
}

/// Why a member did not help.
#[derive(Debug, thiserror::Error)]
enum Unhelpful {
    #[error("its own state differs from the majority's")]
    Diverged,
    #[error("it took longer than {} s", .0.as_secs())]
    Late(Duration),
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("{0}")]
    NotInstalled(std::io::Error),
}

impl Rebuild<'_> {
    /// Replaces the state, if an earlier process found that it differs from the majority's.
    ///
    /// # Errors
    /// [`StartError`] when the own state cannot even be read.
    pub(crate) async fn run_if_diverged(self) -> Result<(), StartError> {
        let unreadable = |error: RowError| StartError::Mixed(error.to_string());
        let reader = self.store.reader();
        let Some(found) = rows::divergence(reader.as_ref()).map_err(unreadable)? else {
            return Ok(());
        };
        let applied = rows::progress(reader.as_ref()).map_err(unreadable)?;
        self.run(&found, applied).await;
        Ok(())
    }

    /// Asks the other members in turn until one has given its snapshot and it is in place.
    async fn run(mut self, found: &Divergence, applied: Progress) {
        let at_least = applied.index().unwrap_or(0).max(found.index);
        tracing::warn!(
            index = found.index,
            ours = %format_args!("{:032x}", found.ours),
            majority = %format_args!("{:032x}", found.majority),
            "an earlier process found that this state differs from the majority's: it is replaced by \
             another member's"
        );
        loop {
            for (node_id, member) in self.members.nodes() {
                if *node_id == self.local.node_id {
                    continue;
                }
                match self.take(*node_id, &member.peer_address, at_least).await {
                    Ok(index) => {
                        tracing::info!(from = node_id, index, "the state has been replaced");
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(from = node_id, %error, "a member could not give its state");
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Puts the snapshot of one member in place; tells its index.
    async fn take(
        &mut self,
        node_id: u64,
        address: &str,
        at_least_index: u64,
    ) -> Result<u64, Unhelpful> {
        let peer = self.links.connect(address);
        self.check_sound(node_id, peer.as_ref()).await?;
        let request = FetchSnapshotRequest {
            sender: Some(self.local.sender(node_id)),
            at_least_index,
        };
        let received = timeout(self.timeout, self.receive(peer.as_ref(), request))
            .await
            .map_err(|_| Unhelpful::Late(self.timeout))??;
        let meta = received.snapshot.meta;
        let index = meta.last_log_id.map_or(0, |log_id| log_id.index());
        if index < at_least_index {
            let text =
                format!("expected a snapshot of entry {at_least_index}, but it is of {index}");
            return Err(PeerError::Failed(text).into());
        }
        let installed = self
            .machine
            .install_snapshot(&meta, received.snapshot.snapshot)
            .await;
        installed.map_err(Unhelpful::NotInstalled)?;
        self.fit_log().await.map_err(Unhelpful::NotInstalled)?;
        Ok(index)
    }

    async fn check_sound(&self, node_id: u64, peer: &dyn PeerCalls) -> Result<(), Unhelpful> {
        let request = StatusRequest {
            sender: Some(self.local.sender(node_id)),
        };
        let status = timeout(STATUS_TIMEOUT, peer.status(request))
            .await
            .map_err(|_| Unhelpful::Late(STATUS_TIMEOUT))??;
        if status.is_diverged {
            return Err(Unhelpful::Diverged);
        }
        Ok(())
    }

    async fn receive(
        &self,
        peer: &dyn PeerCalls,
        request: FetchSnapshotRequest,
    ) -> Result<snapshots::Received, PeerError> {
        let parts = peer.fetch_snapshot(request).await?;
        // What breaks off has no end, and is refused for that.
        let mut parts = parts
            .take_while(|part| ready(part.is_ok()))
            .filter_map(|part| ready(part.ok()))
            .boxed();
        let begin = snapshots::receive_begin(&mut parts).await?;
        snapshots::receive_rows(begin, parts, (self.store.as_ref(), &self.links.chores)).await
    }

    /// Has the log go on behind the state, where it does not reach it: what it then holds was never
    /// committed, or the state has it.
    async fn fit_log(&mut self) -> std::io::Result<()> {
        let applied = self.machine.applied_state().await?.0;
        let state = self.log.get_log_state().await?;
        let Some(applied) = applied.filter(|applied| state.last_log_id.as_ref() < Some(applied))
        else {
            return Ok(());
        };
        self.log.truncate_after(state.last_purged_log_id).await?;
        self.log.purge(applied).await
    }
}
