//! Counters of what namespaces use, and refusals that a node foresees (X38, X40).

use crate::replica::Replica;
use crate::script::define;
use crate::{invariants, samples};
use flotilla_engine::bytes::Bytes;
use flotilla_engine::ids::{IdempotencyKey, KvKey, Namespace, WorkflowName};
use flotilla_engine::rows::{Table, TreeUsages, UsageRecord, Usages};
use flotilla_engine::{
    Body, Command, QuotaDimension, QuotaScope, Rejection, Reply, RequestId, SetCondition, SetKey,
    SetQuota, StartRun, view,
};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn shop() -> Namespace {
    Namespace::new("acme.shop").expect("a name")
}

fn ask(replica: &mut Replica, command: Command) -> Result<Reply, Rejection> {
    replica.apply(Vec::new(), command)
}

fn set_key(name: &str) -> Body {
    Body::SetKey(SetKey {
        key: KvKey::new(name).expect("a key"),
        value: Bytes::from("v"),
        ttl_ms: None,
        condition: SetCondition::Always,
    })
}

fn limit(replica: &mut Replica, dimension: QuotaDimension, limit: u64) {
    let set = Body::SetQuota(Box::new(SetQuota {
        scope: QuotaScope::Namespace(shop()),
        expected_version: None,
        limits: BTreeMap::from([(dimension, limit)]),
    }));
    ask(replica, set.into_command(shop())).expect("the namespace exists");
}

/// Stores a counter that differs by one from what was counted.
fn miscount<T: Table<Record = UsageRecord>>(replica: &mut Replica, key: &T::Key) {
    let usage = invariants::read::<T>(&replica.store, key);
    let mut usage = usage.expect("something is counted");
    let count = usage.counts.get_mut(&QuotaDimension::KvKeys);
    *count.expect("keys are counted") += 1;
    replica.plant::<T>(key, &usage);
}

/// If the invariants do not find this bug, they prove nothing.
#[test]
fn a_counter_that_is_not_decremented_is_found() {
    let counted = || {
        let mut replica = Replica::new();
        ask(&mut replica, set_key("a").into_command(shop())).expect("there is room");
        replica
    };
    let is_found = |replica: Replica| {
        catch_unwind(AssertUnwindSafe(|| invariants::check(&replica.store))).is_err()
    };
    assert!(!is_found(counted()));
    let mut replica = counted();
    miscount::<Usages>(&mut replica, &shop());
    assert!(is_found(replica));
    let mut replica = counted();
    miscount::<TreeUsages>(&mut replica, &shop().tree());
    assert!(is_found(replica));
}

#[test]
fn a_node_foresees_only_refusals_of_commands_that_are_new() {
    let mut replica = Replica::new();
    let create = define("define order 1\n  start: wait go -> success=flo.Completed");
    let create = Body::CreateDefinition(Box::new(samples::plain_revision(create)));
    ask(&mut replica, create.into_command(shop())).expect("a definition");
    limit(&mut replica, QuotaDimension::OpenRuns, 1);
    let start = |key: Option<&str>, id: u128| {
        let order = WorkflowName::new("order").expect("a name");
        let mut start = StartRun::new(order, samples::json());
        start.idempotency_key = key.map(|key| IdempotencyKey::new(key).expect("a key"));
        Command {
            request_id: Some(RequestId(id)),
            ..Body::StartRun(start).into_command(shop())
        }
    };
    let foreseen = |replica: &Replica, command: &Command| {
        let found = view::quota_refusal(&replica.store, replica.now_ms, command);
        found.expect("memory does not fail")
    };
    assert_eq!(foreseen(&replica, &start(None, 1)), None);
    ask(&mut replica, start(Some("k"), 1)).expect("there is room");
    // Its own request, and its own run, are answered.
    assert_eq!(foreseen(&replica, &start(Some("k"), 1)), None);
    assert_eq!(foreseen(&replica, &start(Some("k"), 2)), None);
    for command in [start(None, 2), start(Some("other"), 2)] {
        let exceeded = foreseen(&replica, &command).expect("there is no room");
        assert_eq!((exceeded.used, exceeded.limit), (1, 1));
        let refused = ask(&mut replica, command).expect_err("there is no room");
        assert!(refused.is_over_quota(), "{refused}");
    }
    // What must be applied to find out is not foreseen.
    let mut elsewhere = start(None, 2);
    elsewhere.scope = Namespace::new("acme.bank").expect("a name").into();
    assert_eq!(foreseen(&replica, &elsewhere), None);
    assert_eq!(foreseen(&replica, &set_key("a").into_command(shop())), None);
}
