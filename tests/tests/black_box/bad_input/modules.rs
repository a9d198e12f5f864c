//! WASM modules that misbehave.

use super::parked::Parked;
use crate::files::{example, fixture};
use flotilla_tests::poisonous_module;

/// Expects the node to run a good module afterwards.
fn expect_sandbox_unharmed(parked: Parked) {
    let flo = parked.flo();
    let module = example("actions/ship-order.wat");
    let _ = flo.text(&["action", "register", "good", "--wasm", &module]);
    let output = flo.json(&["action", "invoke", "good", r#"{"id":1}"#]);
    assert_eq!(output["shipped"], true, "{output}");
    parked.expect_nothing_lost();
}

#[test]
fn a_malformed_module_is_refused_at_registration() {
    let parked = Parked::start();
    let flo = parked.flo();
    let binary = parked
        .scratch()
        .write("broken.wasm", b"\0asm\x01\0\0\0\x07\x7f\x00");
    let text = parked.scratch().write("broken.wat", "(module (func");
    for file in [&binary, &text] {
        let refusal = flo.refused(&["action", "register", "broken", "--wasm", file]);
        assert!([2, 3].contains(&refusal.exit), "{refusal:?}");
        refusal.says("expected");
    }
    let greedy = fixture("greedy.wat");
    let refusal = flo.refused(&["action", "register", "broken", "--wasm", &greedy]);
    refusal.says("67108864").hints("memory");
    let lists = flo.json(&["action", "list"]);
    assert_eq!(lists["items"].as_array().map(Vec::len), Some(0), "{lists}");
    expect_sandbox_unharmed(parked);
}

#[test]
fn a_looping_module_is_interrupted_at_its_timeout() {
    let parked = Parked::start();
    let flo = parked.flo();
    let module = fixture("looping.wat");
    let limits = ["--timeout-ms", "300", "--max-retries", "0"];
    let register = [
        &["action", "register", "looping", "--wasm", &module],
        &limits[..],
    ]
    .concat();
    let _ = flo.text(&register);
    let invoke = ["action", "invoke", "looping", "--wait"];
    let refusal = flo.refused(&invoke);
    refusal.expect(3, "action_run_not_completed");
    let runs = flo.json(&["action", "runs", "looping"]);
    assert_eq!(runs["items"][0]["outcome"], "timeout", "{runs}");
    expect_sandbox_unharmed(parked);
}

#[test]
fn a_memory_hungry_module_fails_at_its_limit() {
    let parked = Parked::start();
    let flo = parked.flo();
    let module = fixture("hungry.wat");
    let register = [
        "action",
        "register",
        "hungry",
        "--wasm",
        &module,
        "--max-retries",
        "0",
    ];
    let _ = flo.text(&register);
    let refusal = flo.refused(&["action", "invoke", "hungry", "--wait"]);
    refusal.expect(3, "action_run_not_completed");
    let runs = flo.json(&["action", "runs", "hungry"]);
    let row = &runs["items"][0];
    assert_eq!(row["outcome"], "failure", "{runs}");
    let message = row["error_message"].as_str().expect("why it failed");
    assert!(
        message.contains("memory") || message.contains("trap"),
        "{message}"
    );
    expect_sandbox_unharmed(parked);
}

#[test]
fn a_module_that_wants_more_than_an_action_is_given_is_refused_at_registration() {
    let parked = Parked::start();
    let flo = parked.flo();
    let mounting = fixture("mounting.wat");
    flo.refused(&["action", "register", "mounting", "--wasm", &mounting])
        .expect(2, "module_invalid")
        .says("host_files")
        .hints("WASI preview 1");
    let looping = fixture("looping.wat");
    let register = ["action", "register", "a", "--wasm", &looping];
    for (flag, bytes, said) in [
        ("--max-memory-bytes", "1000", "65536"),
        ("--max-memory-bytes", "268435457", "268435456"),
        ("--max-output-bytes", "4194305", "4194304"),
    ] {
        let refusal = flo.refused(&[&register[..], &[flag, bytes]].concat());
        refusal.expect(2, "invalid_argument").says(said);
    }
    flo.refused(&["action", "register", "a", "--max-memory-bytes", "65536"])
        .expect(2, "usage")
        .says("--wasm");
    expect_sandbox_unharmed(parked);
}

#[test]
fn a_module_that_opens_files_fails_with_the_reason() {
    let parked = Parked::start();
    let flo = parked.flo();
    let module = fixture("filing.wat");
    let register = ["action", "register", "filing", "--wasm", &module];
    let _ = flo.text(&[&register[..], &["--max-retries", "0"]].concat());
    flo.refused(&["action", "invoke", "filing"])
        .expect(3, "action_run_not_completed")
        .says("no orders")
        .says("path_open")
        .says("neither files nor network");
    expect_sandbox_unharmed(parked);
}

#[test]
fn a_module_that_is_too_much_for_the_compiler_is_refused_and_delays_no_other() {
    let parked = Parked::start();
    let flo = parked.flo();
    let module = example("actions/ship-order.wat");
    let _ = flo.text(&["action", "register", "ship", "--wasm", &module]);
    let poison = parked
        .scratch()
        .write("poison.wat", poisonous_module().as_bytes());
    let register = ["action", "register", "poison", "--wasm", &poison];
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| {
            let patient = [&register[..], &["--timeout", "120s"]].concat();
            flo.refused(&patient)
        });
        for id in 0..3 {
            let output = flo.json(&["action", "invoke", "ship", &id.to_string()]);
            assert_eq!(output["order"], id, "{output}");
        }
        assert!(!refused.is_finished(), "the compiler is still busy");
        let refusal = refused.join().expect("it is refused");
        refusal
            .expect(2, "module_invalid")
            .says("expected the module to compile within")
            .hints("optimization for size");
    });
    // The verdict is known, so that no time passes.
    flo.refused(&[&register[..], &["--timeout", "5s"]].concat())
        .expect(2, "module_invalid");
    expect_sandbox_unharmed(parked);
}

#[test]
fn memory_and_output_are_limited_by_what_was_registered() {
    let parked = Parked::start();
    let flo = parked.flo();
    let greedy = fixture("greedy.wat");
    let register = ["action", "register", "greedy", "--wasm", &greedy];
    let registered = flo.json(&[&register[..], &["--max-memory-bytes", "67108864"]].concat());
    assert_eq!(registered["max_memory_bytes"], 67_108_864, "{registered}");
    assert_eq!(registered["max_output_bytes"], 1 << 20, "{registered}");

    let shipping = example("actions/ship-order.wat");
    let register = ["action", "register", "ship", "--wasm", &shipping];
    let limits = ["--max-output-bytes", "30", "--max-retries", "0"];
    let _ = flo.text(&[&register[..], &limits].concat());
    let output = flo.json(&["action", "invoke", "ship", "1"]);
    assert_eq!(output["order"], 1, "{output}");
    flo.refused(&["action", "invoke", "ship", "1000000"])
        .expect(3, "action_run_not_completed")
        .says("30 bytes");
    expect_sandbox_unharmed(parked);
}
