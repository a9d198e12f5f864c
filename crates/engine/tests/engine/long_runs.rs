//! What a step costs does not depend on the number of steps before it (design rule 7).

use crate::replica::Replica;
use crate::samples;
use crate::script::define;
use flotilla_engine::ids::{RunId, RunNumber, SignalType};
use flotilla_engine::json::Json;
use flotilla_engine::rows::Runs;
use flotilla_engine::{Body, SignalRun};
use std::fmt::Write as _;

const STEPS: usize = 1_000;

/// A numbered step that waits for a signal, before the next one.
fn chain() -> String {
    let mut text = String::from("define chain 1\n start: wait go -> success=s1");
    for number in 1..STEPS {
        let next = match number + 1 {
            STEPS => "flo.Completed".to_owned(),
            next => format!("s{next}"),
        };
        write!(text, "\n s{number}: wait go -> success={next}").expect("a String");
    }
    text
}

/// What a step costs.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    writes_count: usize,
    written_bytes: usize,
    lookups_count: usize,
    scanned_rows: usize,
}

#[test]
fn a_late_step_of_a_long_run_costs_as_much_as_an_early_one() {
    let mut replica = Replica::new();
    let create = samples::plain_revision(define(&chain()));
    let create = Body::CreateDefinition(Box::new(create));
    replica.ask(create).expect("it is sound");
    let start = Body::StartRun(samples::plain_start("chain", samples::json()));
    replica.ask(start).expect("it is enabled");
    let costs: Vec<Cost> = (0..STEPS)
        .map(|_| {
            let signal = SignalRun {
                run_id: RunId::generated(RunNumber(1)),
                signal_type: SignalType::new("go").expect("a type"),
                payload: Json::null(),
                scope: None,
                signal_id: None,
            };
            replica.ask(Body::SignalRun(signal)).expect("it is open");
            Cost {
                writes_count: replica.writes_count,
                written_bytes: replica.written_bytes,
                lookups_count: replica.lookups.len(),
                scanned_rows: replica.rows,
            }
        })
        .collect();
    assert!(replica.has::<Runs>(&RunNumber(1)));
    // From here on, numbers such as that of the step take three bytes.
    let early = &costs[STEPS / 2];
    assert_eq!(early, &costs[STEPS - 2]);
    assert_eq!(early.writes_count, 7);
}
