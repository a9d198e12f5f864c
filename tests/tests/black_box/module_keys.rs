//! Modules that use the key-value store.

use crate::files::fixture;
use flotilla_tests::{Cluster, Flo, TIMEOUT, wait_until};
use serde_json::Value;
use std::thread;

const INPUTS: usize = 24;

#[test]
fn a_module_counts_in_the_store_to_the_mark_while_leaders_are_killed() {
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let module = fixture("tally.wat");
    let _ = flo.text(&["action", "register", "tally", "--wasm", &module]);
    let counting = thread::spawn({
        let flo = flo.clone();
        move || (1..=INPUTS).for_each(|input| count(&flo, input))
    });
    for marks in [INPUTS / 4, INPUTS / 2] {
        await_marks(&flo, marks);
        let leader = cluster.leader();
        cluster.kill(leader);
        // The others continue without it.
        await_marks(&flo, marks + 2);
        cluster.restart(leader);
    }
    counting.join().expect("every input is counted");
    assert_eq!(flo.text(&["kv", "get", "tally"]), "I".repeat(INPUTS));
    cluster.await_health();
    let _ = cluster.agreement();
}

/// Counts an input, and expects it to be counted once. Retries if the response is lost.
fn count(flo: &Flo, input: usize) {
    let input_text = input.to_string();
    let invoke = [
        "action",
        "invoke",
        "tally",
        &input_text,
        "--idempotency-key",
        &input_text,
    ];
    let tally = wait_until("an answer", TIMEOUT, || {
        let answer = flo.run(&invoke);
        match answer.code {
            0 => Ok(answer.json()),
            4 | 5 => Err(answer.show()),
            _ => panic!("{}", answer.show()),
        }
    });
    assert_eq!(tally, Value::from("I".repeat(input)));
}

fn await_marks(flo: &Flo, count: usize) {
    wait_until("more marks", TIMEOUT, || {
        let answer = flo.run(&["kv", "get", "tally"]);
        let marks = answer.stdout.trim().len();
        if answer.code == 0 && marks >= count {
            return Ok(());
        }
        Err(answer.show())
    });
}
