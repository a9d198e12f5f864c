//! The workload of clients: an order in three steps, the last of which has branches; a trip with a loop, a race and a block
//! that is retried, whose steps are undone if it fails or is cancelled, and some of which call a handler if they are cancelled;
//! a workflow that a schedule starts; and one that the records of a stream start, whose child has an input schema.

use crate::bug::Bug;
use flotilla_engine::ActionType;
use flotilla_engine::ids::{
    ActionName, IdempotencyKey, KvKey, RunId, RunNumber, SignalId, SignalType, StepName,
    StreamName, TokenId, TokenName, WorkflowName, WorkflowVersion,
};
use flotilla_engine::json::Json;
use flotilla_engine::{
    AppendRecords, BindSubject, BindingSubject, BlockSubject, Body, CancelRun, CommandScope,
    CreateDefinition, CreateToken, Grant, InvokeAction, NewRecord, RegisterAction, ResumeRevision,
    ResumeRun, RetryFrom, RetryRun, RevokeToken, SecretHash, SetCondition, SetKey,
    SetWorkflowEnabled, SignalRun, StartRun, UnbindSubject, VersionChoice,
};
use std::collections::BTreeMap;

/// The actions that workers run.
pub(super) const ACTIONS: [&str; 6] = ["charge", "ship", "tick", "book", "stamp", "undo"];
/// The action that clients invoke.
pub(crate) const INVOKED: &str = "charge";
/// Actions without retries: one failed attempt fails the action run, so that blocks are retried and compensations fail.
const UNRETRIED: [&str; 2] = ["stamp", "undo"];
/// The workflow that clients start.
const ORDER: &str = "order";
/// The workflow that clients start, and whose runs compensate.
const TRIP: &str = "trip";
/// The workflow that a schedule starts.
const TICK: &str = "tick";
/// The stream whose records start runs. The first append creates it.
const PARCELS: &str = "parcels";
/// The type of the signal that an order waits for.
const APPROVAL: &str = "approval";
/// How long the lease of a task lasts, in milliseconds.
pub(crate) const LEASE_MS: u64 = 3_000;

const ORDER_TEXT: &str = r#"
kind: Workflow
name: order
version: "1"
idempotency: required
concurrency:
  key: shop
  limit: 6
start:
  run: "@actions/charge"
  retry:
    max_attempts: 3
    backoff: constant
    initial_delay_ms: 300
  transitions:
    success: approve
    failure: flo.Failed
steps:
  approve:
    waitForSignal:
      type: approval
      timeoutMs: 4000
      onTimeout: ship
    transitions:
      success: ship
  ship:
    parallel:
      branches:
        parcel:
          run: "@actions/ship"
        letter:
          - name: print
            run: "@actions/ship"
          - name: send
            waitForSignal:
              type: sent
              timeoutMs: 200
            transitions:
              timeout: flo.Completed
    transitions:
      success: flo.Completed
      failure: flo.Failed
"#;

/// A step that only the later version of an order has, and the one that follows.
const FOLD: &str = "          - name: fold
            set: {folded: true}
          - name: print";

/// What undoes the first step of a trip.
const COMPENSATION: &str = r#"    compensate: {run: "@actions/undo"}"#;
/// What the first step of a trip calls if it is cancelled.
const STEP_HANDLER: &str = r#"    onCancel: {run: "@actions/undo"}"#;
/// What the loop of a trip iterates over.
const ITEMS: &str = "items: [1, 2, 3]";

const TRIP_TEXT: &str = r#"
kind: Workflow
name: trip
version: "1"
idempotency: required
state: {toured: 0}
steps:
  - name: flight
    run: "@actions/book"
    compensate: {run: "@actions/undo"}
    onCancel: {run: "@actions/undo"}
  - name: stay
    parallel:
      branches:
        hotel:
          run: "@actions/book"
          compensate: {run: "@actions/undo"}
        car:
          run: "@actions/book"
          compensate: {run: "@actions/undo"}
  - name: quote
    parallel:
      join: any
      branches:
        near:
          run: "@actions/book"
          compensate: {run: "@actions/undo"}
          onCancel: {run: "@actions/undo"}
        far:
          run: "@actions/book"
          compensate: {run: "@actions/undo"}
          onCancel: {run: "@actions/undo"}
  - name: visa
    retry: {max_attempts: 3, backoff: constant, initial_delay_ms: 100}
    block:
      - name: apply
        run: "@actions/book"
        compensate: {run: "@actions/undo"}
      - name: stamp
        run: "@actions/stamp"
        retry: false
  - name: tours
    forEach:
      items: [1, 2, 3]
      concurrency: 2
      merge: {toured: sum}
      do:
        run: "@actions/book"
        set: {toured: $.item}
  - name: confirm
    waitForSignal:
      type: approval
      timeoutMs: 1000
      onTimeout: flo.Failed
onError: [{name: page, run: "@actions/undo"}]
onCancel: [{name: tidy, run: "@actions/undo"}]
"#;

const TICK_TEXT: &str = r#"
kind: Workflow
name: tick
version: "1"
target: shop
schedule:
  interval: 2000
  max_concurrent: 3
start:
  run: "@actions/tick"
  transitions:
    success: flo.Completed
    failure: flo.Failed
"#;

/// Its input has a schema, so the leader checks each record.
const SORT_TEXT: &str = r#"
kind: Workflow
name: sort
version: "1"
trigger: {stream: parcels}
input: {type: object}
steps:
  - name: label
    run: "@workflow/label"
    inputMapping: {parcel: $.input.parcel}
"#;

/// The child of those runs: the leader checks its input, too.
const LABEL_TEXT: &str = r#"
kind: Workflow
name: label
version: "1"
input: {type: object, required: [parcel]}
start:
  run: "@actions/tick"
  transitions:
    success: flo.Completed
    failure: flo.Failed
"#;

/// What must exist before clients start.
pub(super) fn preparations(bug: Option<Bug>) -> Vec<Body> {
    let actions = ACTIONS.map(register_action);
    // Runs are resumed with either of the two, whose steps differ.
    let later = ORDER_TEXT.replacen("version: \"1\"", "version: \"2\"", 1);
    let later = later.replacen("          - name: print", FOLD, 1);
    let trip = match bug {
        Some(Bug::LostCompensation) => TRIP_TEXT.replacen(COMPENSATION, "", 1),
        Some(Bug::LostHandler) => TRIP_TEXT.replacen(STEP_HANDLER, "", 1),
        Some(Bug::LostItem) => TRIP_TEXT.replacen(ITEMS, "items: [1, 2]", 1),
        _ => TRIP_TEXT.to_owned(),
    };
    let texts = [ORDER_TEXT, &later, &trip, TICK_TEXT, LABEL_TEXT, SORT_TEXT];
    let definitions = texts.map(|text| {
        let definition = flotilla_dsl::parse(text).definition;
        Body::CreateDefinition(Box::new(CreateDefinition {
            definition: definition.expect("the text is a workflow"),
            source: text.to_owned(),
            make_latest: true,
        }))
    });
    actions.into_iter().chain(definitions).collect()
}

/// Registers one of the actions.
pub(crate) fn register_action(name: &str) -> Body {
    Body::RegisterAction(Box::new(RegisterAction {
        name: action(name),
        kind: ActionType::User,
        module: None,
        timeout_ms: LEASE_MS,
        max_retries: if UNRETRIED.contains(&name) { 0 } else { 5 },
        retry_delay_ms: 100,
        description: None,
        is_only_if_missing: false,
    }))
}

/// Disables the schedule.
pub(super) fn disable_schedule() -> Body {
    Body::SetWorkflowEnabled(SetWorkflowEnabled {
        workflow: WorkflowName::new(TICK).expect("a valid name"),
        is_enabled: false,
    })
}

/// A start of an order, with an input of this many bytes.
pub(super) fn start(key: &str, payload_bytes: usize) -> Body {
    Body::StartRun(run_of(ORDER, key, payload_bytes))
}

/// A start of a trip.
pub(super) fn start_trip(key: &str) -> Body {
    Body::StartRun(run_of(TRIP, key, 0))
}

/// A retry of an order: another one from its beginning, or from one of its steps.
pub(super) fn retry(run_id: &RunId, key: &str, from: Option<&str>) -> Body {
    // The cluster chooses the ids: each has the number of its run.
    let number = run_id.as_str().trim_start_matches("wfrun-").parse();
    Body::RetryRun(RetryRun {
        run_id: run_id.clone(),
        run: RunNumber(number.expect("the cluster chose the id")),
        from: from.map(|step| RetryFrom {
            step: StepName::new(step).expect("a valid name"),
            is_forced: false,
        }),
        start: run_of(ORDER, key, 0),
    })
}

fn run_of(workflow: &str, key: &str, payload_bytes: usize) -> StartRun {
    StartRun {
        idempotency_key: Some(IdempotencyKey::new(key).expect("a valid key")),
        ..StartRun::new(
            WorkflowName::new(workflow).expect("a valid name"),
            Json::string(&"x".repeat(payload_bytes)),
        )
    }
}

/// The approval of an order or a trip.
pub(super) fn approve(run_id: &RunId, id: &str) -> Body {
    Body::SignalRun(SignalRun {
        run_id: run_id.clone(),
        signal_type: SignalType::new(APPROVAL).expect("a valid type"),
        payload: Json::null(),
        scope: None,
        signal_id: Some(SignalId::new(id).expect("a valid id")),
    })
}

/// A cancellation of an order or a trip.
pub(super) fn cancel(run_id: &RunId, is_forced: bool) -> Body {
    Body::CancelRun(CancelRun {
        run_id: run_id.clone(),
        reason: None,
        is_forced,
    })
}

/// A resume of an order, with another version of its workflow or its own.
pub(super) fn resume(run_id: &RunId, version: Option<&str>) -> Body {
    let version = version.map(|version| WorkflowVersion::new(version).expect("a valid version"));
    Body::ResumeRun(ResumeRun {
        run_id: run_id.clone(),
        from: None,
        revision: version.map(|version| ResumeRevision {
            version: VersionChoice::Version(version),
            is_forced: true,
        }),
        metadata: None,
    })
}

/// A stand-alone action run.
pub(crate) fn invoke(key: &str) -> Body {
    Body::InvokeAction(InvokeAction {
        name: action(INVOKED),
        input: Json::null(),
        priority: 10,
        delay_ms: 0,
        labels: BTreeMap::new(),
        idempotency_key: Some(IdempotencyKey::new(key).expect("a valid key")),
    })
}

/// The key that the client of one node writes.
pub(crate) fn key(via: u64) -> KvKey {
    KvKey::new(format!("of-{via}")).expect("a valid key")
}

/// A write of a key.
pub(crate) fn set(key: &KvKey, value: &str, condition: SetCondition) -> Body {
    Body::SetKey(SetKey {
        key: key.clone(),
        value: value.into(),
        ttl_ms: None,
        condition,
    })
}

/// A token with a secret of these random numbers, which may write keys, and the command that creates it.
pub(super) fn create_token(secret: [u64; 4]) -> (TokenId, Body) {
    let mut bytes = [0; 32];
    for (chunk, number) in bytes.chunks_exact_mut(8).zip(secret) {
        chunk.copy_from_slice(&number.to_be_bytes());
    }
    let secret = SecretHash(bytes);
    let id = TokenId::of_secret(secret);
    let create = CreateToken {
        id,
        scope: CommandScope::Cluster,
        name: TokenName::new("writer").expect("a valid name"),
        identity: None,
        grants: writer_grants(),
        approves: Vec::new(),
        secret,
        ttl_ms: None,
    };
    (id, Body::CreateToken(Box::new(create)))
}

/// The revocation of such a token.
pub(super) fn revoke_token(id: TokenId) -> Body {
    let scope = CommandScope::Cluster;
    Body::RevokeToken(RevokeToken { id, scope })
}

/// What permits to write keys.
fn writer_grants() -> Vec<Grant> {
    vec![Grant::parse("operator@default").expect("a valid grant")]
}

/// The command with which a subject may write keys.
pub(super) fn bind_subject(subject: &BindingSubject) -> Body {
    Body::BindSubject(Box::new(BindSubject {
        subject: subject.clone(),
        scope: CommandScope::Cluster,
        grants: writer_grants(),
        approves: Vec::new(),
    }))
}

/// The command that takes the rights of such a subject back.
pub(super) fn unbind_subject(subject: &BindingSubject) -> Body {
    Body::UnbindSubject(UnbindSubject {
        subject: subject.clone(),
        scope: CommandScope::Cluster,
    })
}

/// The command that blocks such a subject.
pub(super) fn block_subject(subject: &BindingSubject) -> Body {
    Body::BlockSubject(BlockSubject {
        subject: subject.clone(),
        ends_at_ms: None,
    })
}

/// A record that starts a run.
pub(super) fn append(parcel: &str) -> Body {
    let record = NewRecord {
        payload: format!("{{\"parcel\":\"{parcel}\"}}").into_bytes().into(),
        headers: BTreeMap::new(),
        key: None,
        partition: None,
    };
    Body::AppendRecords(AppendRecords {
        stream: StreamName::new(PARCELS).expect("a valid name"),
        records: vec![record],
    })
}

/// An action's name.
pub(crate) fn action(name: &str) -> ActionName {
    ActionName::new(name).expect("a valid name")
}
