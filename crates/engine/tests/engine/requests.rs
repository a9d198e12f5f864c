//! Request ids at their bounds (design rule 9): what a script would need millions of commands for.

use crate::replica::Replica;
use crate::samples;
use crate::script::define;
use flotilla_engine::bytes::Bytes;
use flotilla_engine::ids::{KvKey, Namespace, RunId, RunNumber, SignalType, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{
    REQUEST_AGE_MS_MAX, REQUEST_RESERVE_MS, REQUEST_RETRY_MS, REQUEST_WINDOW_MS,
    REQUESTS_BYTES_EACH, REQUESTS_EXCESS_FACTOR, REQUESTS_MAX_DEFAULT, REQUESTS_MAX_HIGHEST,
    REQUESTS_MAX_LOWEST, REQUESTS_RESERVED_PART,
};
use flotilla_engine::rows::{RequestAges, RequestUsage, RequestUsages, Requests, read};
use flotilla_engine::{
    Body, Command, Rejection, Reply, RequestId, SetClusterSettings, SetCondition, SetKey,
    SignalRun, StartRun, SweepRequests, reply, view,
};

/// How old an id is at least when it is deleted at the bound.
const KEPT_MS: u64 = REQUEST_RETRY_MS + REQUEST_RESERVE_MS;

/// What the ids may take together, in bytes.
const BYTES_MAX: u64 = REQUESTS_MAX_DEFAULT * REQUESTS_BYTES_EACH;

/// The version 7 UUID that a client makes at this time.
fn made_at(at_ms: u64, number: u128) -> u128 {
    u128::from(at_ms) << 80 | 7 << 76 | 0b10 << 62 | number
}

/// A replica with a workflow.
fn replica() -> Replica {
    let mut replica = Replica::new();
    let create =
        samples::plain_revision(define("define order 1\n start: wait go -> success=start"));
    let created = replica.ask(Body::CreateDefinition(Box::new(create)));
    created.expect("the definition is right");
    replica
}

fn ask(replica: &mut Replica, id: u128, body: Body) -> Result<Reply, Rejection> {
    ask_in(replica, &Namespace::default_namespace(), id, body)
}

fn ask_in(
    replica: &mut Replica,
    namespace: &Namespace,
    id: u128,
    body: Body,
) -> Result<Reply, Rejection> {
    let command = Command {
        request_id: Some(RequestId(id)),
        ..body.into_command(namespace.clone())
    };
    replica.apply(Vec::new(), command)
}

/// Writes a key of a namespace, which is new work.
fn set(replica: &mut Replica, namespace: &Namespace, id: u128) -> Result<Reply, Rejection> {
    let set = SetKey {
        key: KvKey::new("k").expect("a key"),
        value: Bytes::from("v"),
        ttl_ms: None,
        condition: SetCondition::Always,
    };
    ask_in(replica, namespace, id, Body::SetKey(set))
}

fn namespace(name: &str) -> Namespace {
    Namespace::new(name).expect("a namespace")
}

/// Pretends that more ids are remembered than are: all of the default namespace.
fn use_up(replica: &mut Replica, edit: impl FnOnce(&mut RequestUsage)) {
    use_up_in(replica, &Namespace::default_namespace(), edit);
}

/// Pretends that a namespace has more ids than it has.
fn use_up_in(replica: &mut Replica, namespace: &Namespace, edit: impl FnOnce(&mut RequestUsage)) {
    let before = used(replica, namespace);
    let mut after = before;
    edit(&mut after);
    replica.plant::<RequestUsages>(&namespace.clone().into(), &after);
    replica.pretend(|cluster| {
        cluster.requests.count = cluster.requests.count - before.count + after.count;
        cluster.requests.bytes = cluster.requests.bytes - before.bytes + after.bytes;
    });
}

/// The ids that are remembered for a namespace.
fn used(replica: &Replica, namespace: &Namespace) -> RequestUsage {
    let used = read::<RequestUsages>(&replica.store, &namespace.clone().into());
    used.expect("memory does not fail").unwrap_or_default()
}

/// Starts a run with a request id, and answers with the run's.
fn start(replica: &mut Replica, id: u128) -> Result<String, Rejection> {
    let reply = ask(replica, id, Body::StartRun(start_run()))?;
    let Reply::RunStarted(reply::RunStarted { run_id, .. }) = reply else {
        panic!("expected a started run, but found {reply:?}");
    };
    Ok(run_id.to_string())
}

fn signal(replica: &mut Replica, id: u128) -> Result<Reply, Rejection> {
    let signal = SignalRun {
        run_id: RunId::new("wfrun-1").expect("an id"),
        signal_type: SignalType::new("go").expect("a type"),
        payload: Json::null(),
        scope: None,
        signal_id: None,
    };
    ask(replica, id, Body::SignalRun(signal))
}

fn set_requests_max(replica: &mut Replica, id: u128, value: u64) -> Result<Reply, Rejection> {
    let set = SetClusterSettings {
        requests_max: Some(value),
    };
    ask(replica, id, Body::SetClusterSettings(set))
}

fn is_remembered(replica: &Replica, id: u128) -> bool {
    replica.has::<Requests>(&(Namespace::default_namespace().into(), id))
}

/// A bound with the room beyond it.
fn reserved_too(bound: u64) -> u64 {
    bound + bound / REQUESTS_RESERVED_PART
}

fn start_run() -> StartRun {
    StartRun::new(WorkflowName::new("order").expect("a name"), Json::null())
}

#[test]
fn at_the_bound_new_work_is_refused_and_no_young_id_is_forgotten() {
    let mut replica = replica();
    // The larger the id, the older: order of age is not order of id.
    assert_eq!(start(&mut replica, 9), Ok("wfrun-1".to_owned()));
    assert_eq!(start(&mut replica, 8), Ok("wfrun-2".to_owned()));
    use_up(&mut replica, |used| used.count = REQUESTS_MAX_DEFAULT);
    replica.now_ms += KEPT_MS - 1;
    let before = replica.cluster();
    assert_eq!(
        start(&mut replica, 1),
        Err(Rejection::RequestIdLimitExceeded)
    );
    assert_eq!(replica.cluster().run_count, before.run_count);
    // What was accepted is still answered as before, and so is a retry of the refused one.
    assert_eq!(start(&mut replica, 9), Ok("wfrun-1".to_owned()));
    assert_eq!(
        start(&mut replica, 1),
        Err(Rejection::RequestIdLimitExceeded)
    );
}

#[test]
fn at_the_bound_ids_that_no_client_retries_give_way_the_oldest_first() {
    let mut replica = replica();
    assert_eq!(start(&mut replica, 9), Ok("wfrun-1".to_owned()));
    assert_eq!(start(&mut replica, 8), Ok("wfrun-2".to_owned()));
    use_up(&mut replica, |used| used.count = REQUESTS_MAX_DEFAULT);
    replica.now_ms += KEPT_MS;
    assert_eq!(start(&mut replica, 1), Ok("wfrun-3".to_owned()));
    assert!(!is_remembered(&replica, 9) && is_remembered(&replica, 8));
    assert_eq!(replica.cluster().requests.count, REQUESTS_MAX_DEFAULT);
    // One that was forgotten is a new request.
    assert_eq!(start(&mut replica, 9), Ok("wfrun-4".to_owned()));
    assert!(!is_remembered(&replica, 8) && is_remembered(&replica, 9));
}

#[test]
fn the_bound_in_bytes_holds_as_the_one_in_count() {
    let mut replica = replica();
    assert_eq!(start(&mut replica, 9), Ok("wfrun-1".to_owned()));
    let bytes = replica.cluster().requests.bytes;
    assert!((60..300).contains(&bytes), "{bytes} bytes for one id");
    use_up(&mut replica, |used| used.bytes = BYTES_MAX);
    assert_eq!(
        start(&mut replica, 1),
        Err(Rejection::RequestIdLimitExceeded)
    );
    replica.now_ms += KEPT_MS;
    assert_eq!(start(&mut replica, 1), Ok("wfrun-2".to_owned()));
    assert!(!is_remembered(&replica, 9));
    let kept = replica.cluster().requests.bytes;
    assert!(kept.abs_diff(BYTES_MAX) < bytes, "{kept} bytes");
}

#[test]
fn what_lets_open_work_end_has_room_beyond_the_bound() {
    let mut replica = replica();
    assert_eq!(start(&mut replica, 9), Ok("wfrun-1".to_owned()));
    use_up(&mut replica, |used| used.count = REQUESTS_MAX_DEFAULT);
    assert!(signal(&mut replica, 1).is_ok());
    use_up(&mut replica, |used| {
        used.count = reserved_too(REQUESTS_MAX_DEFAULT)
    });
    assert_eq!(
        signal(&mut replica, 2),
        Err(Rejection::RequestIdLimitExceeded)
    );
    use_up(&mut replica, |used| {
        used.count = 2;
        used.bytes = reserved_too(BYTES_MAX);
    });
    assert_eq!(
        signal(&mut replica, 2),
        Err(Rejection::RequestIdLimitExceeded)
    );
    // Without an id there is nothing to remember.
    assert!(replica.ask(Body::StartRun(start_run())).is_ok());
}

#[test]
fn a_namespace_below_its_share_has_room_when_another_one_has_used_up_the_total() {
    let mut replica = replica();
    let quiet = namespace("quiet");
    assert!(set(&mut replica, &quiet, 1).is_ok());
    use_up(&mut replica, |used| used.count = REQUESTS_MAX_DEFAULT);
    assert_eq!(
        start(&mut replica, 1),
        Err(Rejection::RequestIdLimitExceeded)
    );
    assert!(set(&mut replica, &quiet, 2).is_ok());
    assert_eq!(used(&replica, &quiet).count, 2);
    // There are two namespaces: the share is one half.
    use_up_in(&mut replica, &quiet, |used| {
        used.count = REQUESTS_MAX_DEFAULT / 2 - 1
    });
    assert!(set(&mut replica, &quiet, 3).is_ok());
    assert_eq!(
        set(&mut replica, &quiet, 4),
        Err(Rejection::RequestIdLimitExceeded)
    );
    // With a third one, shares are smaller. One that is new has room, too.
    let new = namespace("new");
    use_up_in(&mut replica, &quiet, |used| {
        used.count = REQUESTS_MAX_DEFAULT / 3
    });
    assert!(set(&mut replica, &new, 1).is_ok());
    assert_eq!(
        set(&mut replica, &quiet, 5),
        Err(Rejection::RequestIdLimitExceeded)
    );
}

#[test]
fn the_share_of_a_namespace_is_also_one_of_the_bytes() {
    let mut replica = replica();
    let quiet = namespace("quiet");
    assert!(set(&mut replica, &quiet, 1).is_ok());
    use_up(&mut replica, |used| used.bytes = BYTES_MAX);
    assert!(set(&mut replica, &quiet, 2).is_ok());
    use_up_in(&mut replica, &quiet, |used| used.bytes = BYTES_MAX / 2);
    assert_eq!(
        set(&mut replica, &quiet, 3),
        Err(Rejection::RequestIdLimitExceeded)
    );
}

#[test]
fn shares_do_not_grow_what_is_remembered_without_a_bound() {
    let mut replica = replica();
    // As after many namespaces that were deleted with their ids still remembered.
    use_up_in(&mut replica, &namespace("gone"), |used| {
        used.count = REQUESTS_EXCESS_FACTOR * REQUESTS_MAX_DEFAULT - 1;
    });
    let quiet = namespace("quiet");
    assert!(set(&mut replica, &quiet, 1).is_ok());
    assert_eq!(
        set(&mut replica, &quiet, 2),
        Err(Rejection::RequestIdLimitExceeded)
    );
}

#[test]
fn the_bound_is_a_setting_of_the_cluster_that_can_be_changed_at_the_bound() {
    let mut replica = replica();
    use_up(&mut replica, |used| {
        used.count = reserved_too(REQUESTS_MAX_DEFAULT);
    });
    assert_eq!(
        start(&mut replica, 1),
        Err(Rejection::RequestIdLimitExceeded)
    );
    assert!(set_requests_max(&mut replica, 2, 2 * REQUESTS_MAX_DEFAULT).is_ok());
    assert!(start(&mut replica, 1).is_ok());
    // By mistake below what is remembered: this can be taken back, too.
    assert!(set_requests_max(&mut replica, 3, REQUESTS_MAX_LOWEST).is_ok());
    assert_eq!(
        start(&mut replica, 4),
        Err(Rejection::RequestIdLimitExceeded)
    );
    assert!(set_requests_max(&mut replica, 5, REQUESTS_MAX_HIGHEST).is_ok());
    assert!(start(&mut replica, 4).is_ok());
    // The bound in bytes is raised with it.
    use_up(&mut replica, |used| used.bytes = BYTES_MAX);
    assert!(start(&mut replica, 6).is_ok());
}

#[test]
fn what_a_namespace_uses_is_forgotten_with_its_last_id() {
    let mut replica = replica();
    let other = namespace("other");
    assert!(set(&mut replica, &other, 1).is_ok());
    assert!(set(&mut replica, &other, 2).is_ok());
    assert!(replica.has::<RequestUsages>(&other.clone().into()));
    replica.now_ms += REQUEST_WINDOW_MS;
    let sweep = Body::SweepRequests(SweepRequests {});
    assert_eq!(replica.ask(sweep), Ok(Reply::Done(reply::Done {})));
    assert!(!replica.has::<RequestUsages>(&other.clone().into()));
    assert_eq!(replica.cluster().requests, RequestUsage::default());
}

#[test]
fn a_request_that_was_delayed_until_its_id_is_forgotten_is_not_applied_again() {
    let mut replica = replica();
    let id = made_at(replica.now_ms, 9);
    assert_eq!(start(&mut replica, id), Ok("wfrun-1".to_owned()));
    replica.now_ms += REQUEST_WINDOW_MS - 1;
    assert_eq!(
        start(&mut replica, id),
        Ok("wfrun-1".to_owned()),
        "it is remembered"
    );
    replica.now_ms += 1;
    let (age_ms, now_ms) = (REQUEST_WINDOW_MS, replica.now_ms);
    assert_eq!(
        start(&mut replica, id),
        Err(Rejection::RequestTooOld { age_ms, now_ms })
    );
    let fresh = made_at(replica.now_ms, 10);
    assert_eq!(start(&mut replica, fresh), Ok("wfrun-2".to_owned()));
}

#[test]
fn at_the_bound_no_id_is_forgotten_that_could_still_be_applied_again() {
    let mut replica = replica();
    // The client's clock is ahead of the cluster's.
    let id = made_at(replica.now_ms + REQUEST_RESERVE_MS - 1, 9);
    assert_eq!(start(&mut replica, id), Ok("wfrun-1".to_owned()));
    use_up(&mut replica, |used| used.count = REQUESTS_MAX_DEFAULT);
    replica.now_ms += KEPT_MS;
    assert_eq!(start(&mut replica, 1), Ok("wfrun-2".to_owned()));
    assert!(!is_remembered(&replica, id));
    let (age_ms, now_ms) = (REQUEST_RETRY_MS + 1, replica.now_ms);
    assert_eq!(
        start(&mut replica, id),
        Err(Rejection::RequestTooOld { age_ms, now_ms })
    );
}

#[test]
fn a_request_is_too_old_after_half_of_the_window_if_its_id_has_a_time() {
    let mut replica = replica();
    replica.now_ms = 2 * REQUEST_AGE_MS_MAX;
    let now_ms = replica.now_ms;
    let mut is_accepted = |id| match start(&mut replica, id) {
        Ok(_) => true,
        Err(Rejection::RequestTooOld { .. }) => false,
        Err(other) => panic!("expected another rejection than {other:?}"),
    };
    assert!(is_accepted(made_at(now_ms - REQUEST_RETRY_MS, 1)));
    assert!(!is_accepted(made_at(now_ms - REQUEST_RETRY_MS - 1, 2)));
    assert!(!is_accepted(made_at(now_ms - REQUEST_AGE_MS_MAX, 3)));
    // A clock that is ahead, and ids without a time.
    assert!(is_accepted(made_at(now_ms + REQUEST_WINDOW_MS, 4)));
    assert!(is_accepted(made_at(now_ms - REQUEST_AGE_MS_MAX - 1, 5)));
    let old = made_at(now_ms - REQUEST_WINDOW_MS, 6);
    assert!(is_accepted(old ^ 1 << 76) && is_accepted(old ^ 1 << 63));
}

#[test]
fn an_id_that_is_used_again_after_the_window_outlives_the_sweep_of_its_first_use() {
    let mut replica = replica();
    assert_eq!(start(&mut replica, 9), Ok("wfrun-1".to_owned()));
    replica.now_ms += REQUEST_WINDOW_MS - 1;
    let is_due = |replica: &Replica| {
        view::has_expired_requests(&replica.store, replica.now_ms).expect("memory does not fail")
    };
    assert!(!is_due(&replica));
    assert_eq!(start(&mut replica, 9), Ok("wfrun-1".to_owned()));
    replica.now_ms += 1;
    assert!(is_due(&replica));
    assert_eq!(start(&mut replica, 9), Ok("wfrun-2".to_owned()));
    let sweep = Body::SweepRequests(SweepRequests {});
    assert_eq!(replica.ask(sweep), Ok(Reply::Done(reply::Done {})));
    assert!(!is_due(&replica));
    assert_eq!(start(&mut replica, 9), Ok("wfrun-2".to_owned()));
    assert!(!replica.has::<RequestAges>(&0));
    assert_eq!(replica.cluster().requests.count, 1);
}

#[test]
fn a_run_whose_caller_chose_the_id_is_known_by_no_other() {
    let mut replica = replica();
    let start = StartRun {
        run_id: Some(RunId::new("chosen").expect("an id")),
        ..start_run()
    };
    replica.ask(Body::StartRun(start)).expect("accepted");
    let find = |run_id: RunId| {
        let found = view::run(&replica.store, &Namespace::default_namespace(), &run_id);
        found.expect("memory does not fail").is_some()
    };
    assert!(find(RunId::new("chosen").expect("an id")));
    assert!(!find(RunId::generated(RunNumber(1))));
}
