//! The work of one entry is bounded, whatever definitions and payloads contain (design rule 13).

use crate::replica::Replica;
use crate::samples;
use crate::script::define;
use flotilla_engine::bytes::Bytes;
use flotilla_engine::codec::encode;
use flotilla_engine::definition::{
    AttributeKind, Definition, Expression, Part, Path, Root, RunTarget, SearchAttribute, Segment,
    Step, StepIndex, StepKind, Target, Template, TerminalStatus, Transition,
};
use flotilla_engine::expression::{CompiledExpression, Comprehension, Constant, Node};
use flotilla_engine::ids::{
    ActionRunNumber, AttributeName, Namespace, OutcomeName, RunId, RunNumber, SignalType, StepName,
    WorkerId,
};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{
    APPEND_RECORDS_MAX, ATTRIBUTES_BYTES_MAX, ATTRIBUTES_MAX, ENTRY_COMMANDS_MAX,
    ENTRY_WEIGHT_BYTES_MAX, MAPPING_PATHS_MAX, PAYLOAD_BYTES_MAX, PROCESSES_MAX, RECORD_BYTES_MAX,
};
use flotilla_engine::rows::{
    self, ActionRuns, Activations, AttributeValue, PendingWorks, Process, ProcessKind,
    QuarantinedKind, RunStatus, Runs, StreamSettings, encode_key, encode_prefix, encode_record,
};
use flotilla_engine::store::{KeyRange, Order, Writes};
use flotilla_engine::{
    AppendRecords, Body, CancelRun, CreateStream, DeadLetterSelector, ENGINE_VERSION, InvokeAction,
    NewRecord, Rejection, ReleaseQuarantined, Reply, RequeueDeadLetters, SignalRun, view,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

mod active_steps;
mod approvals;
mod compensations;
mod concurrency;
mod endings;
mod loops;
mod signals;
mod timeouts;
mod too_large;
mod world;

use world::World;

fn signal(run: u64, signal_type: &str, payload: &str) -> Body {
    Body::SignalRun(SignalRun {
        run_id: RunId::generated(RunNumber(run)),
        signal_type: SignalType::new(signal_type).expect("a type"),
        payload: Json::from_checked(payload.to_owned()),
        scope: None,
        signal_id: None,
    })
}

#[test]
fn a_child_that_no_parent_awaits_ends_when_it_is_released_although_it_has_work_left() {
    let mut world = World::new();
    world.create(define(
        "define child 1\n start: wait go -> success=flo.Completed",
    ));
    world.create(define(
        "define parent 1\n start: run @workflow/child -> success=flo.Completed",
    ));
    world.accept(start("parent", "{}".to_owned()));
    world.apply_spent(vec![signal(2, "go", "{}")]);
    assert!(world.run(2).continuation.is_some(), "its entry had no room");

    let at = (RunNumber(2), 1);
    let sound = rows::read::<Activations>(&world.store, &at);
    let sound = sound.expect("memory does not fail").expect("it is active");
    let mut damaged = sound.clone();
    damaged.step = StepIndex(999);
    world.plant::<Activations>(&at, &damaged);
    world.run_until_idle();
    world.plant::<Activations>(&at, &sound);

    let cancel = |run| {
        Body::CancelRun(CancelRun {
            run_id: RunId::generated(RunNumber(run)),
            reason: None,
            is_forced: false,
        })
    };
    world.accept(cancel(1));
    assert!(world.run(2).status.is_open(), "it is quarantined");
    world.accept(Body::ReleaseQuarantined(ReleaseQuarantined {
        kind: QuarantinedKind::Run,
        number: 2,
    }));
    world.run_until_idle();
    assert!(!world.run(2).status.is_open());
}

fn create(definition: Definition) -> Body {
    Body::CreateDefinition(Box::new(samples::plain_revision(definition)))
}

fn start(workflow: &str, input: String) -> Body {
    Body::StartRun(samples::plain_start(workflow, Json::from_checked(input)))
}

/// `{"x":"…"}` of the given size in bytes.
fn large(bytes: usize) -> String {
    format!("{{\"x\":\"{}\"}}", "x".repeat(bytes - 8))
}

fn attribute(position: usize, field: &str) -> SearchAttribute {
    SearchAttribute {
        name: AttributeName::new(format!("a{position}")).expect("a name"),
        kind: AttributeKind::String,
        from: path(Root::Input, field),
    }
}

fn path(root: Root, field: &str) -> Path {
    Path {
        root,
        segments: vec![Segment::Field(field.to_owned())],
    }
}

#[test]
fn search_attributes_are_bounded_in_number_and_the_large_ones_are_omitted() {
    let mut world = World::new();
    let mut definition = define("define wide 1\n start: wait go");
    definition.search_attributes = (0..=ATTRIBUTES_MAX).map(|at| attribute(at, "x")).collect();
    let refused = world.apply(vec![create(definition.clone())], 0).remove(0);
    assert!(
        matches!(refused, Err(Rejection::LimitExceeded { .. })),
        "{refused:?}"
    );

    definition.search_attributes.truncate(ATTRIBUTES_MAX);
    world.create(definition.clone());
    world.accept(start("wide", large(900_000)));
    let run = world.run(1);
    assert!(run.attributes.is_empty());
    let detail = run.detail.clone().expect("it says what is omitted");
    assert!(detail.contains("\"a0\" (899994 bytes)"), "{detail}");
    assert!(encode_record::<Runs>(&run).len() < 8_192);
    world.accept(signal(1, "go", "null"));
    let detail = world.run(1).detail.expect("it ended");
    assert!(detail.contains("omitted"), "{detail}");

    // Each of these is small enough, and together they are not.
    world.accept(start(
        "wide",
        format!("{{\"x\":\"{}\"}}", "x".repeat(2_000)),
    ));
    let kept = world.run(2).attributes;
    assert_eq!(kept.len(), ATTRIBUTES_BYTES_MAX / 2_002);
}

#[test]
fn a_mapping_that_is_one_whole_payload_shares_the_stored_one() {
    let mut world = World::new();
    world.create(define(
        "define loop 1\n start: run @missing input=$.input -> failure=start",
    ));
    world.accept(start("loop", large(900_000)));
    world.run_until_idle();
    let run = world.run(1);
    assert!(!run.status.is_open());
    assert!(world.written_most < 3 << 20, "{} bytes", world.written_most);
}

#[test]
fn a_loop_that_copies_its_input_stores_it_once() {
    let mut world = World::new();
    let text = r#"define hammer 1
 start: run @missing input={"n":1,"all":"$.input"} -> failure=start"#;
    world.create(define(text));
    world.accept(start("hammer", large(900_000)));
    world.run_until_idle();
    assert!(!world.run(1).status.is_open());
    assert!(world.written_most < 2 << 20, "{} bytes", world.written_most);
}

#[test]
fn a_loop_that_copies_a_signal_continues_in_later_entries() {
    let mut world = World::new();
    let text = r#"define hammer 1 warn-after=1000
 start: wait go -> success=hammer
 hammer: run @missing input={"all":"$.steps.start.output"} -> failure=hammer"#;
    world.create(define(text));
    let starts = (0..8).map(|_| start("hammer", large(10))).collect();
    world.apply_until_accepted(starts);
    let signals = (1..=8).map(|run| signal(run, "go", &large(100_000)));
    world.apply(signals.collect(), 0);
    assert!(
        world.run(1).status.is_open(),
        "its entry had no room for all of it"
    );
    let entries_count = world.run_until_idle();
    assert!(entries_count > 5, "{entries_count}");
    for number in 1..=8 {
        let run = world.run(number);
        assert_eq!(
            run.detail.as_deref(),
            Some("max step limit reached: 256 steps without a wait")
        );
    }
    let pending = KeyRange::prefix(&encode_prefix::<PendingWorks>(&()));
    let mut left = 0;
    rows::visit::<PendingWorks>(&world.store, &pending, Order::Ascending, |_, _| {
        left += 1;
        ControlFlow::Continue(())
    })
    .expect("memory does not fail");
    assert_eq!(left, 0);
}

/// A condition that is true, and costs almost as much as an evaluation may.
fn costly() -> Expression {
    let range = || Node::List(vec![Node::Constant(Constant::Bool(true)); 36]);
    let all = |predicate| {
        let range = range();
        Node::Comprehension(Box::new(Comprehension::All { range, predicate }))
    };
    Expression {
        text: "costly".to_owned(),
        variables: Vec::new(),
        compiled: CompiledExpression {
            root: all(all(all(Node::Local(2)))),
        },
    }
}

#[test]
fn costly_conditions_are_evaluated_over_several_entries() {
    let mut world = World::new();
    let steps: String = (1..=100)
        .map(|n| format!("\n s{n}: run @missing"))
        .collect();
    let mut definition = define(&format!("define costly 1 list{steps}"));
    for step in &mut definition.steps {
        step.skip_if = Some(costly());
    }
    world.create(definition);
    world.accept(start("costly", "{}".to_owned()));
    assert!(world.run(1).continuation.is_some(), "one turn has no room");
    let entries_count = world.run_until_idle();
    assert!(entries_count > 20, "{entries_count}");
    let run = world.run(1);
    let completed = RunStatus::Ended(TerminalStatus::Completed);
    assert_eq!(run.status, completed, "{:?}", run.detail);
}

#[test]
fn leases_of_tasks_with_large_inputs_expire_over_several_entries() {
    const RUNS: usize = 40;
    let mut world = World::new();
    world.accept(Body::RegisterAction(Box::new(samples::plain_action())));
    let action = samples::action();
    world.create(define(&format!(
        "define charge 1\n start: run @{action} input=$.input -> success=flo.Completed"
    )));
    world.accept(Body::RegisterWorker(Box::new(samples::plain_worker(
        WorkerId::new("w").expect("an id"),
    ))));
    for _ in 0..RUNS / 5 {
        let starts = (0..5).map(|_| start("charge", large(PAYLOAD_BYTES_MAX - 100)));
        world.apply(starts.collect(), 5);
    }
    world.now_ms += 60_000;
    // Each of them becomes a dead letter, with a copy of its input.
    let entries_count = world.run_until_idle();
    assert!(entries_count > 2, "{entries_count}");
    for number in 1..=RUNS {
        assert!(!world.run(number as u64).status.is_open());
    }
}

/// What is left of a batch is done by a later entry, to which the leader adds it again.
#[test]
fn commands_that_copy_much_share_the_budget_of_their_entry() {
    const LETTERS: usize = 60;
    let mut world = World::new();
    world.accept(Body::RegisterAction(Box::new(samples::plain_action())));
    world.accept(Body::RegisterWorker(Box::new(samples::plain_worker(
        WorkerId::new("w").expect("an id"),
    ))));
    let invoke = || {
        Body::InvokeAction(InvokeAction {
            input: Json::from_checked(large(PAYLOAD_BYTES_MAX - 100)),
            ..samples::plain_invocation()
        })
    };
    for _ in 0..LETTERS / 5 {
        world.apply((0..5).map(|_| invoke()).collect(), 5);
    }
    let tokens = std::mem::take(&mut world.tokens);
    assert_eq!(tokens.len(), LETTERS);
    world.apply_until_accepted(tokens.into_iter().map(samples::failed).collect());
    let requeue = || {
        Body::RequeueDeadLetters(RequeueDeadLetters {
            action: samples::action(),
            dead_letters: DeadLetterSelector::UpTo(u64::MAX),
        })
    };
    let entries_count = world.apply_until_accepted((0..20).map(|_| requeue()).collect());
    assert!(entries_count > 2, "{entries_count}");
}

/// Commands that are the same, as many as a leader puts into one entry.
fn full_entry(body: &Body) -> Vec<Body> {
    let command = body.clone().into_command(Namespace::default_namespace());
    let bytes = encode(&command).len();
    let count = ENTRY_WEIGHT_BYTES_MAX / command.weight(bytes);
    vec![body.clone(); count.min(ENTRY_COMMANDS_MAX)]
}

#[test]
fn an_entry_that_a_leader_fills_has_budget_for_all_its_commands() {
    let mut world = World::new();
    world.accept(Body::RegisterAction(Box::new(samples::plain_action())));
    let stream = samples::stream();
    world.accept(Body::CreateStream(CreateStream {
        stream: stream.clone(),
        settings: StreamSettings::default(),
    }));
    world.create(define("define one 1\n start: wait go"));
    let append = |count: usize, bytes: usize| {
        let record = NewRecord {
            payload: Bytes::from(large(bytes).into_bytes()),
            headers: BTreeMap::new(),
            key: None,
            partition: None,
        };
        Body::AppendRecords(AppendRecords {
            stream: stream.clone(),
            records: vec![record; count],
        })
    };
    let invoke = |bytes| {
        Body::InvokeAction(InvokeAction {
            input: Json::from_checked(large(bytes)),
            ..samples::plain_invocation()
        })
    };
    for body in [
        append(APPEND_RECORDS_MAX, 10),
        append(APPEND_RECORDS_MAX, 1_000),
        append(1, PAYLOAD_BYTES_MAX - 100),
        invoke(10),
        invoke(3_000),
        invoke(PAYLOAD_BYTES_MAX - 100),
        start("one", large(10)),
        start("one", large(3_000)),
    ] {
        let commands = full_entry(&body);
        let count = commands.len();
        for reply in world.apply(commands, 0) {
            let kind = body.kind();
            assert!(reply.is_ok(), "{kind:?}, {count} commands: {reply:?}");
        }
    }
}

#[test]
fn starts_with_many_search_attributes_share_the_budget_of_their_entry() {
    let mut world = World::new();
    let mut definition = define("define wide 1\n start: wait go");
    let name = |at| AttributeName::new(format!("n{at:03}{}", "n".repeat(250))).expect("a name");
    definition.search_attributes = (0..ATTRIBUTES_MAX)
        .map(|at| SearchAttribute {
            name: name(at),
            ..attribute(at, "x")
        })
        .collect();
    world.create(definition);
    let starts = (0..ENTRY_COMMANDS_MAX).map(|_| start("wide", large(250)));
    let entries_count = world.apply_until_accepted(starts.collect());
    assert!(entries_count > 1, "{entries_count}");
    let last = world.run(ENTRY_COMMANDS_MAX as u64);
    assert_eq!(last.attributes.len(), ATTRIBUTES_MAX);
}

#[test]
fn registrations_of_many_processes_share_the_budget_of_their_entry() {
    let mut world = World::new();
    let process = |at| Process {
        name: format!("{at}"),
        kind: ProcessKind::Action,
    };
    let register = |number| {
        let id = WorkerId::new(format!("w{number}")).expect("an id");
        let mut worker = samples::plain_worker(id);
        worker.processes = (0..PROCESSES_MAX).map(process).collect();
        Body::RegisterWorker(Box::new(worker))
    };
    let entries_count = world.apply_until_accepted((0..200).map(register).collect());
    assert!(entries_count > 3, "{entries_count}");
}

#[test]
fn a_record_that_is_too_large_quarantines_its_run_only() {
    let mut replica = Replica::new();
    let mut definition = define("define order 1\n start: wait go");
    definition.search_attributes = vec![attribute(0, "x")];
    replica.ask(create(definition)).expect("it is sound");
    for _ in 0..2 {
        let start = start("order", "{}".to_owned());
        replica.ask(start).expect("it is enabled");
    }
    let run = rows::read::<Runs>(&replica.store, &RunNumber(1));
    let mut run = run.expect("memory does not fail").expect("it was started");
    let value = AttributeValue::String("x".repeat(RECORD_BYTES_MAX + 1));
    run.attributes.insert(0, value);
    let mut writes = Writes::default();
    let key = encode_key::<Runs>(&RunNumber(1));
    writes.put(&key, &encode_record::<Runs>(&run));
    replica.store.write(&writes);
    replica.decide_as(ENGINE_VERSION);

    let signal = |run| signal(run, "item", "{}");
    let panicked = replica.ask(signal(1));
    assert!(
        matches!(&panicked, Err(Rejection::Internal(text)) if text.contains("bytes of content")),
        "{panicked:?}"
    );
    let again = replica.ask(signal(1));
    assert!(
        matches!(again, Err(Rejection::RunQuarantined(_))),
        "{again:?}"
    );
    replica.ask(signal(2)).expect("the other run is in service");
}

#[test]
fn many_small_completions_with_large_next_steps_are_spread_over_entries() {
    const RUNS: u32 = 200;
    let mut world = World::new();
    world.accept(Body::RegisterAction(Box::new(samples::plain_action())));
    let action = samples::action();
    let text = format!(
        "define fan 1\n start: wait go -> success=check\n \
         check: run @{action} input={{}} -> success=next\n \
         next: run @{action} input={{\"order\":\"$.steps.start.output\"}} -> success=flo.Completed"
    );
    world.create(define(&text));
    world.accept(Body::RegisterWorker(Box::new(samples::plain_worker(
        WorkerId::new("w").expect("an id"),
    ))));
    for first in (1..=u64::from(RUNS)).step_by(5) {
        world.apply((0..5).map(|_| start("fan", large(10))).collect(), 0);
        let signals =
            (first..first + 5).map(|run| signal(run, "go", &large(PAYLOAD_BYTES_MAX - 100)));
        world.apply(signals.collect(), 5);
    }
    let tokens = std::mem::take(&mut world.tokens);
    assert_eq!(tokens.len(), RUNS as usize);
    let complete = |token| samples::plain_completion(token, Json::null());
    for reply in world.apply(tokens.into_iter().map(complete).collect(), 0) {
        assert!(matches!(reply, Ok(Reply::Done(_))), "{reply:?}");
    }
    let entries_count = world.run_until_idle();
    assert!(entries_count > 5, "{entries_count}");
    for number in 1..=u64::from(RUNS) {
        assert_eq!(world.run(number).activations_count, 3);
    }
    let last = rows::read::<ActionRuns>(&world.store, &ActionRunNumber(400));
    assert!(last.expect("memory does not fail").is_some());
}

#[test]
fn a_mapping_of_many_paths_reads_its_payload_once() {
    let mut world = World::new();
    let mut definition = define("define paths 1\n start: run @missing -> failure=flo.Failed");
    let template = Template {
        parts: object((0..=MAPPING_PATHS_MAX).map(|_| path(Root::Input, "y"))),
    };
    set_input(&mut definition, 0, template.clone());
    let refused = world.apply(vec![create(definition.clone())], 0).remove(0);
    assert!(
        matches!(refused, Err(Rejection::LimitExceeded { .. })),
        "{refused:?}"
    );
    let paths = (0..MAPPING_PATHS_MAX).map(|_| path(Root::Input, "y"));
    set_input(
        &mut definition,
        0,
        Template {
            parts: object(paths),
        },
    );
    world.create(definition);
    let input = format!(
        "{{\"x\":\"{}\",\"y\":7}}",
        "x".repeat(PAYLOAD_BYTES_MAX - 100)
    );
    world.accept(start("paths", input));
    let found = view::run(
        &world.store,
        &Namespace::default_namespace(),
        &RunId::generated(RunNumber(1)),
    );
    assert!(found.expect("memory does not fail").is_some());
}

/// An object with a field for each path.
fn object(paths: impl IntoIterator<Item = Path>) -> Vec<Part> {
    let mut parts = Vec::new();
    for (number, path) in paths.into_iter().enumerate() {
        let before = if number == 0 { "{" } else { "," };
        parts.push(Part::Literal(format!("{before}\"f{number}\":")));
        parts.push(Part::Path(path));
    }
    parts.push(Part::Literal("}".to_owned()));
    parts
}

fn set_input(definition: &mut Definition, step: usize, input: Template) {
    let StepKind::Run(run) = &mut definition.steps[step].kind else {
        panic!("expected a run step");
    };
    run.call.input = Some(input);
}

/// A definition at its bounds: steps in a ring, none of which waits, with mappings into the input and each other.
fn ring(steps_count: u16, paths: &[(u16, u8)], attributes_count: usize) -> Definition {
    let mut definition = define("define ring 1\n start: run @missing -> failure=start");
    definition.search_attributes = (0..attributes_count).map(|at| attribute(at, "x")).collect();
    let first = definition.steps.remove(0);
    definition.steps = (0..steps_count)
        .map(|number| Step {
            name: StepName::new(if number == 0 {
                "start".to_owned()
            } else {
                format!("s{number}")
            })
            .expect("a name"),
            may_repeat: true,
            kind: samples::steps::run(
                RunTarget::Action(samples::action()),
                Template {
                    parts: object(paths.iter().map(|(step, field)| {
                        let root = match step % (steps_count + 1) {
                            0 => Root::Input,
                            step => Root::StepOutput(StepIndex(step - 1)),
                        };
                        path(root, if *field == 0 { "x" } else { "error" })
                    })),
                },
            ),
            transitions: vec![Transition {
                outcome: OutcomeName::new("target_not_found").expect("an outcome"),
                target: Target::Step(StepIndex((number + 1) % steps_count)),
            }],
            ..first.clone()
        })
        .collect();
    definition
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn no_definition_and_no_input_makes_an_entry_pass_its_bounds(
        steps_count in 1_u16..24,
        paths in prop::collection::vec((any::<u16>(), 0_u8..2), 0..=MAPPING_PATHS_MAX),
        attributes_count in 0..=ATTRIBUTES_MAX,
        bytes in prop_oneof![Just(16_usize), 1_000..60_000_usize, Just(PAYLOAD_BYTES_MAX)],
        starts_count in 1_usize..40,
    ) {
        let mut world = World::new();
        world.create(ring(steps_count, &paths, attributes_count));
        let starts = (0..starts_count).map(|_| start("ring", large(bytes))).collect();
        world.apply_until_accepted(starts);
        world.run_until_idle();
        for number in 1..=starts_count as u64 {
            let run = world.run(number);
            prop_assert!(!run.status.is_open(), "{:?}", run);
            prop_assert!(encode_record::<Runs>(&run).len() < ATTRIBUTES_BYTES_MAX + 16_384);
        }
    }
}
