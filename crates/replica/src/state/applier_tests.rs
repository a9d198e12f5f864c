//! What digests prove that were reported for a state which has since been replaced.

use crate::clock::{StampClock, SystemClock};
use crate::environment::NoObserver;
use crate::execution::{BlockingPool, Execution};
use crate::log::record::LogEntry;
use crate::membership::{Member, Membership, StoredMembership};
use crate::proposal::{Control, Proposal};
use crate::raft::type_config::LogId;
use crate::rocks_storage::RocksStorage;
use crate::state::applier::{AppliedState, Applier};
use crate::state::machine::Machine;
use crate::state::rows::{self, AppliedPosition, Identity};
use crate::state::snapshot::{SnapshotData, meta_of};
use crate::state::store::StateStore;
use crate::storage::Storage;
use flotilla_engine::ENGINE_VERSION;
use flotilla_engine::store::Writes;
use futures::stream;
use openraft::EntryPayload;
use openraft::storage::RaftStateMachine;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// This node, whose state was wrong.
const OWN: u64 = 3;
const WRONG: u128 = 6;
const RIGHT: u128 = 5;

/// A node of three, with what it reports to the rest of the replica.
struct Node {
    machine: Machine,
    store: Arc<dyn StateStore>,
    applied_state: AppliedState,
}

impl Node {
    fn over(store: Arc<dyn StateStore>, blocking_pool: &BlockingPool) -> Self {
        let applied_state = AppliedState::new();
        let applier = Applier {
            node_id: OWN,
            digest_interval: 8,
            engine_version: ENGINE_VERSION,
            store: Arc::clone(&store),
            clock: Arc::new(StampClock::new(Arc::new(SystemClock::default()), OWN)),
            applied_state: applied_state.clone(),
            observer: Arc::new(NoObserver),
        };
        let machine = Machine::start(applier, blocking_pool).unwrap();
        Self {
            machine,
            store,
            applied_state,
        }
    }

    /// Installs another member's state after the entry at an index, with what was reported by then.
    async fn take(&mut self, index: u64, reports: &[(u64, u128)]) {
        let members = [1, 2, OWN].map(|node_id| (node_id, Member::default()));
        let voters = vec![BTreeSet::from([1, 2, OWN])];
        let membership = Membership::new(voters, BTreeMap::from(members)).unwrap();
        let first = Some(LogId::new_term_index(1, 1));
        let applied_position = AppliedPosition {
            log_id: Some(LogId::new_term_index(1, index)),
            digest: RIGHT,
            now_ms: 1,
        };
        let mut writes = Writes::new();
        rows::put_membership(&mut writes, &StoredMembership::new(first, membership));
        rows::put_digest_reports(&mut writes, 96, &reports.iter().copied().collect());
        rows::put_applied_position(&mut writes, &applied_position);
        let mut incoming = self.store.receive().unwrap();
        incoming.write(&writes).unwrap();
        let meta = meta_of(incoming.reader()).unwrap();
        let taken = SnapshotData::Received(incoming);
        self.machine.install_snapshot(&meta, taken).await.unwrap();
    }

    /// Applies a node's digest report.
    async fn hear(&mut self, at: u64, node: u64, index: u64, digest: u128) {
        let control = Control::DigestReport {
            node,
            index,
            digest,
        };
        let entry = LogEntry {
            log_id: LogId::new_term_index(1, at),
            payload: EntryPayload::Normal(Proposal::Control(control)),
        };
        let entries = stream::iter([Ok((entry, None))]);
        self.machine.apply(entries).await.unwrap();
    }

    fn is_diverged(&self) -> bool {
        self.applied_state.divergence.borrow().is_some()
    }
}

#[tokio::test]
async fn a_replaced_state_is_not_judged_by_what_was_reported_of_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksStorage.open_state(directory.path()).unwrap();
    let mut local = Writes::new();
    let identity = Identity {
        node_id: OWN,
        incarnation: 7,
    };
    rows::put_identity(&mut local, &identity);
    // It may have reported up to the end of its log, which is beyond the state that it takes.
    rows::put_reports_void(&mut local, 112);
    store.write(&local).unwrap();
    let blocking_pool = BlockingPool::from(Execution::OwnThreads);
    let mut node = Node::over(store, &blocking_pool);
    node.take(100, &[(1, RIGHT), (OWN, WRONG)]).await;
    // What is among the reports that came with the state, and what was in flight.
    node.hear(101, 2, 96, RIGHT).await;
    for (at, node_id, digest) in [(102, OWN, WRONG), (103, 1, RIGHT), (104, 2, RIGHT)] {
        node.hear(at, node_id, 112, digest).await;
    }
    assert!(!node.is_diverged());
    // The next state keeps what is known of the one before it, and the entry that it is of.
    node.take(110, &[]).await;
    let kept = |store: &dyn StateStore| rows::reports_void(store.reader().as_ref()).unwrap();
    assert_eq!(kept(node.store.as_ref()), 112);
    node.take(118, &[]).await;
    assert_eq!(kept(node.store.as_ref()), 118);
    let found = rows::identity(node.store.reader().as_ref()).unwrap();
    assert_eq!(found, Some(identity));
    // Reports about its own state are valid.
    for (at, node_id, digest) in [(119, OWN, WRONG), (120, 1, RIGHT), (121, 2, RIGHT)] {
        node.hear(at, node_id, 120, digest).await;
    }
    assert!(node.is_diverged());
    drop(node);
    blocking_pool.join(Duration::from_secs(30));
}
