//! What one read returns, and what it loads for that (W95).

use crate::replica::{Counting, Replica};
use crate::samples;
use crate::script::define;
use flotilla_engine::ids::{KvKey, RunId, RunNumber, SignalType, StepName, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{KV_VALUE_BYTES_MAX, PROCESSES_MAX};
use flotilla_engine::store::{MemoryStore, Reader};
use flotilla_engine::view::{
    self, FoundOutput, HistoryRange, KeySelection, Page, PageRange, RunQuery, RunView,
    StepResultSelector,
};
use flotilla_engine::{
    Body, InvokeAction, Process, ProcessKind, RegisterWorker, SetCondition, SetKey, SignalRun,
};
use std::fmt::Write as _;

const OUTPUT_BYTES: usize = 256 << 10;
const READ_MAX: usize = 3 << 20;

/// Steps that wait for a signal, one after the other.
fn chain(steps_count: usize) -> String {
    let mut text = String::from("define chain 1");
    for number in 0..steps_count {
        let next = match number + 1 {
            end if end == steps_count => "flo.Completed".to_owned(),
            next => format!("s{next}"),
        };
        write!(text, "\n s{number}: wait go -> success={next}").expect("a String");
    }
    text
}

fn output(number: usize, bytes: usize) -> Json {
    Json::from_checked(format!("[{number},\"{}\"]", "x".repeat(bytes)))
}

/// An open run that has left steps with outputs of this size.
fn run_with_outputs(steps_count: usize, bytes: usize) -> MemoryStore {
    run_of(&chain(steps_count + 1), steps_count, bytes)
}

/// A run of the definition `chain` that got signals with payloads of this size.
fn run_of(definition: &str, signals_count: usize, bytes: usize) -> MemoryStore {
    let mut replica = Replica::new();
    let create = Body::CreateDefinition(Box::new(samples::plain_revision(define(definition))));
    replica.ask(create).expect("it is sound");
    let start = samples::plain_start("chain", samples::json());
    replica.ask(Body::StartRun(start)).expect("it is enabled");
    for number in 0..signals_count {
        let signal = SignalRun {
            run_id: run_id(),
            signal_type: SignalType::new("go").expect("a type"),
            payload: output(number, bytes),
            scope: None,
            signal_id: None,
        };
        replica.ask(Body::SignalRun(signal)).expect("it is open");
    }
    replica.store
}

fn run_id() -> RunId {
    RunId::generated(RunNumber(1))
}

fn run(reader: &dyn Reader) -> RunView {
    let found = view::run(reader, &samples::namespace(), &run_id());
    found
        .expect("memory does not fail")
        .expect("the run exists")
}

fn name(number: usize) -> StepName {
    StepName::new(format!("s{number}")).expect("a name")
}

#[test]
fn a_run_shows_the_outputs_that_fit_and_reads_at_most_one_more() {
    let store = run_with_outputs(40, OUTPUT_BYTES);
    let counting = Counting::new(&store);
    let found = run(&counting);
    let shown = found.steps.values().filter_map(|step| step.output.as_ref());
    let shown: usize = shown.map(|output| output.as_str().len()).sum();
    assert!(shown <= READ_MAX, "{shown} bytes");
    assert!(
        counting.bytes() < READ_MAX + 2 * OUTPUT_BYTES,
        "{} bytes",
        counting.bytes()
    );
    // All but what the run itself takes.
    let shown_count = READ_MAX / OUTPUT_BYTES - 1;
    for number in 0..40 {
        let step = &found.steps[&name(number)];
        let is_shown = number >= 40 - shown_count;
        assert_eq!(step.output.is_some(), is_shown, "step {number}");
        assert_eq!(step.is_output_omitted, !is_shown, "step {number}");
    }
}

#[test]
fn each_output_that_a_run_leaves_out_is_read_alone() {
    let store = run_with_outputs(40, OUTPUT_BYTES);
    for number in 0..40 {
        let counting = Counting::new(&store);
        let selector = StepResultSelector {
            step: name(number),
            scope: None,
            visit: None,
        };
        let found = view::step_output(&counting, &samples::namespace(), &run_id(), &selector);
        let FoundOutput::Found(found) = found.expect("memory does not fail") else {
            panic!("expected the output of step {number}");
        };
        assert_eq!(found.output, Some(output(number, OUTPUT_BYTES)));
        assert!(
            counting.bytes() < 2 * OUTPUT_BYTES,
            "{} bytes",
            counting.bytes()
        );
    }
}

#[test]
fn a_run_with_small_outputs_shows_all_of_them() {
    let store = run_with_outputs(40, 100);
    let found = run(&store);
    assert_eq!(found.steps.len(), 40);
    for (name, step) in found.steps {
        assert!(step.output.is_some() && !step.is_output_omitted, "{name}");
    }
}

/// Names with ascending numbers.
fn in_order(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{prefix}{number:03}"))
        .collect()
}

/// Follows a list to its end; returns the number of items of each page, and the names of all items.
fn pages<T>(
    store: &MemoryStore,
    read: impl Fn(&dyn Reader, PageRange<'_>) -> Page<T>,
    name: impl Fn(T) -> String,
) -> (Vec<usize>, Vec<String>) {
    let (mut counts, mut names, mut after) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
    loop {
        let range = PageRange {
            after: after.as_deref(),
            limit: 1_000,
        };
        let counting = Counting::new(store);
        let page = read(&counting, range);
        assert!(
            counting.bytes() < READ_MAX + (1 << 20),
            "{} bytes",
            counting.bytes()
        );
        counts.push(page.items.len());
        names.extend(page.items.into_iter().map(&name));
        after = page.next;
        if after.is_none() {
            return (counts, names);
        }
    }
}

#[test]
fn pages_of_large_keys_are_cut_and_continue_without_a_gap() {
    let mut replica = Replica::new();
    for number in 0..100 {
        let set = SetKey {
            key: KvKey::new(format!("k{number:03}")).expect("a key"),
            value: vec![b'x'; KV_VALUE_BYTES_MAX].into(),
            ttl_ms: None,
            condition: SetCondition::Always,
        };
        replica.ask(Body::SetKey(set)).expect("it is small enough");
    }
    let read = |reader: &dyn Reader, range: PageRange<'_>| {
        let all = KeySelection {
            prefix: "",
            now_ms: 0,
        };
        view::keys(reader, &samples::namespace(), all, range).expect("memory does not fail")
    };
    let (counts, keys) = pages(&replica.store, read, |found| found.key.to_string());
    // 48 values alone are 3 MiB.
    assert_eq!(counts, [47, 47, 6]);
    assert_eq!(keys, in_order("k", 100));
}

#[test]
fn pages_of_workers_with_many_processes_are_cut_and_continue_without_a_gap() {
    let mut replica = Replica::new();
    let process = |number: usize| Process {
        name: format!("{number:0256}"),
        kind: ProcessKind::Action,
    };
    for number in 0..20 {
        let id = WorkerId::new(format!("w{number:03}")).expect("an id");
        let worker = RegisterWorker {
            processes: (0..PROCESSES_MAX).map(process).collect(),
            ..samples::plain_worker(id)
        };
        replica
            .ask(Body::RegisterWorker(Box::new(worker)))
            .expect("it is within the bounds");
    }
    let read = |reader: &dyn Reader, range: PageRange<'_>| {
        view::workers(reader, &samples::namespace(), range).expect("memory does not fail")
    };
    let (counts, ids) = pages(&replica.store, read, |found| found.worker.id.to_string());
    assert!(counts.len() > 2, "{counts:?}");
    assert_eq!(ids, in_order("w", 20));
}

#[test]
fn pages_of_runs_with_large_definitions_are_cut_and_continue_without_a_gap() {
    let mut replica = Replica::new();
    for number in 0..10 {
        let text = format!("define d{number:03} 1\n start: wait go -> success=flo.Completed");
        let mut definition = define(&text);
        definition.description = Some("x".repeat(700 << 10));
        let create = samples::plain_revision(definition);
        let create = Body::CreateDefinition(Box::new(create));
        replica.ask(create).expect("it is sound");
        let start = samples::plain_start(&format!("d{number:03}"), samples::json());
        replica.ask(Body::StartRun(start)).expect("it is enabled");
    }
    let read = |reader: &dyn Reader, range: PageRange<'_>| {
        let all = RunQuery::default();
        view::runs(reader, &samples::namespace(), &all, range).expect("memory does not fail")
    };
    let (counts, mut workflows) = pages(&replica.store, read, |found| found.workflow.to_string());
    assert_eq!(counts, [4, 4, 2]);
    workflows.reverse();
    assert_eq!(workflows, in_order("d", 10));
}

#[test]
fn a_list_of_action_runs_reads_no_payload() {
    let mut replica = Replica::new();
    let register = Body::RegisterAction(Box::new(samples::plain_action()));
    replica.ask(register).expect("it is new");
    for number in 0..20 {
        let invoke = InvokeAction {
            input: output(number, OUTPUT_BYTES),
            ..samples::plain_invocation()
        };
        replica
            .ask(Body::InvokeAction(invoke))
            .expect("it is enabled");
    }
    let counting = Counting::new(&replica.store);
    let (namespace, action) = (samples::namespace(), samples::action());
    let found = view::action_runs(&counting, &namespace, &action, PageRange::first(1_000));
    let found = found.expect("memory does not fail");
    assert_eq!((found.items.len(), found.next), (20, None));
    assert!(
        counting.bytes() < OUTPUT_BYTES,
        "{} bytes",
        counting.bytes()
    );
}

/// A step that visits itself, in branches with long names.
fn deep_loop() -> String {
    let mut text = String::from("define chain 1");
    for level in 0..14 {
        let name = format!("b{level:0240}");
        let transition = match level {
            0 => " -> success=flo.Completed",
            _ => "",
        };
        let form = match level {
            13 => "graph",
            _ => "single",
        };
        write!(text, "\n {name}: parallel{transition}").expect("a String");
        write!(text, "\n branch x{level:0240} of {name} {form}").expect("a String");
    }
    text.push_str("\n inner: wait go -> success=inner");
    text
}

#[test]
fn pages_of_a_history_with_long_events_are_cut_and_continue_without_a_gap() {
    let store = run_of(&deep_loop(), 400, 0);
    let (mut after_seq, mut pages_count) = (0, 0);
    loop {
        let range = HistoryRange {
            after_seq,
            limit: 1_000,
        };
        let page = view::history(&store, &samples::namespace(), &run_id(), range);
        let page = page.expect("memory does not fail").expect("the run exists");
        pages_count += 1;
        let paths = page.events.iter().map(|event| event.scope.len());
        assert!(paths.sum::<usize>() <= READ_MAX);
        for event in &page.events {
            assert_eq!(event.seq, after_seq + 1);
            after_seq = event.seq;
        }
        if !page.has_more {
            assert_eq!(after_seq, page.events_count);
            break;
        }
        // The events of a page that is cut by its bytes are fewer.
        assert!(page.events.len() < 1_000);
    }
    assert!(pages_count > 1);
}
