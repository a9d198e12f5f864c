//! The host's functions in ABI 1: log, key-value store, outcome (A7, A40).

use crate::guests::{
    BASE, IMPORTS, answer, answering, handling, invoke, invoke_with, module, number,
};
use flotilla_wasm::{Host, InvocationError, KvError, Limits, LogLevel, LogLine, Report, Requests};
use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

/// A store in memory; the key `broken` is refused.
#[derive(Default)]
struct Memory(BTreeMap<Vec<u8>, Vec<u8>>);

impl Memory {
    fn check(key: &[u8]) -> Result<(), KvError> {
        if key == b"broken" {
            Err(KvError {
                reason: "it is broken".to_owned(),
            })
        } else {
            Ok(())
        }
    }
}

impl Host for Memory {
    fn kv_get(&mut self, key: &[u8], _deadline: Instant) -> Result<Option<Vec<u8>>, KvError> {
        Self::check(key)?;
        Ok(self.0.get(key).cloned())
    }

    fn kv_set(&mut self, key: &[u8], value: &[u8], _deadline: Instant) -> Result<(), KvError> {
        Self::check(key)?;
        self.0.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn kv_delete(&mut self, key: &[u8], _deadline: Instant) -> Result<bool, KvError> {
        Self::check(key)?;
        Ok(self.0.remove(key).is_some())
    }
}

/// A store that responds only after the deadline.
struct Late;

impl Late {
    fn wait_until(deadline: Instant) {
        while let Some(time) = deadline.checked_duration_since(Instant::now()) {
            thread::park_timeout(time);
        }
    }
}

impl Host for Late {
    fn kv_get(&mut self, _key: &[u8], deadline: Instant) -> Result<Option<Vec<u8>>, KvError> {
        Self::wait_until(deadline);
        Ok(None)
    }

    fn kv_set(&mut self, _key: &[u8], _value: &[u8], deadline: Instant) -> Result<(), KvError> {
        Self::wait_until(deadline);
        Ok(())
    }

    fn kv_delete(&mut self, _key: &[u8], deadline: Instant) -> Result<bool, KvError> {
        Self::wait_until(deadline);
        Ok(true)
    }
}

const DATA: &str = r#"(data (i32.const 16) "keyvaluebroken")"#;

/// The value of an expression in a guest, with a store that holds key=value.
fn with_store(expression: &str) -> i32 {
    let store = Memory(BTreeMap::from([(b"key".to_vec(), b"value".to_vec())]));
    let module = answering(DATA, expression);
    number(invoke_with(
        &module,
        b"{}",
        Limits::default(),
        Box::new(store),
    ))
}

#[test]
fn log_lines_are_kept_in_order_even_when_the_call_fails() {
    let module = handling(
        r"(i64.store (i32.const 0) (i64.const 0x21_6f_6c_6c_65_48))
          (call $log (i32.const 2) (i32.const 0) (i32.const 5))
          (call $log (i32.const 4) (i32.const 5) (i32.const 1))
          (call $log (i32.const 4) (i32.const 65536) (i32.const 1))
          unreachable",
    );
    let report = invoke(&module, b"{}");
    assert!(report.result.is_err());
    let line = |level, text: &str| LogLine {
        level,
        text: text.to_owned(),
    };
    assert_eq!(
        report.logs.lines(),
        [line(LogLevel::Info, "Hello"), line(LogLevel::Error, "!")]
    );
    assert_eq!(report.logs.dropped_count(), 1);
}

#[test]
fn without_a_store_every_call_of_it_answers_5() {
    for call in [
        "(call $kv_get (i32.const 16) (i32.const 3) (i32.const 64) (i32.const 16))",
        "(call $kv_set (i32.const 16) (i32.const 3) (i32.const 19) (i32.const 5))",
        "(call $kv_delete (i32.const 16) (i32.const 3))",
    ] {
        assert_eq!(number(invoke(&answering(DATA, call), b"{}")), -5, "{call}");
    }
}

#[test]
fn a_store_is_read_written_and_deleted_from() {
    let get = "(call $kv_get (i32.const 16) (i32.const 3) (i32.const 64) (i32.const 16))";
    assert_eq!(with_store(get), 5);
    // After the read the buffer holds "valu".
    assert_eq!(
        with_store(&format!(
            "(block (result i32) (drop {get}) (i32.load (i32.const 64)))"
        )),
        i32::from_le_bytes(*b"valu")
    );
    // Set value=broken, then read it back.
    assert_eq!(
        with_store(
            "(i32.add
                (call $kv_set (i32.const 19) (i32.const 5) (i32.const 24) (i32.const 6))
                (call $kv_get (i32.const 19) (i32.const 5) (i32.const 64) (i32.const 16)))"
        ),
        6
    );
    assert_eq!(
        with_store("(call $kv_delete (i32.const 16) (i32.const 3))"),
        0
    );
}

#[test]
fn each_refusal_of_the_store_has_its_code() {
    let cases = [
        (
            -1,
            "(call $kv_get (i32.const 16) (i32.const 2) (i32.const 64) (i32.const 16))",
        ),
        (-1, "(call $kv_delete (i32.const 16) (i32.const 2))"),
        (
            -3,
            "(call $kv_get (i32.const 16) (i32.const 3) (i32.const 64) (i32.const 4))",
        ),
        (
            -5,
            "(call $kv_get (i32.const 24) (i32.const 6) (i32.const 64) (i32.const 16))",
        ),
        (
            -5,
            "(call $kv_set (i32.const 24) (i32.const 6) (i32.const 16) (i32.const 3))",
        ),
        (-5, "(call $kv_delete (i32.const 24) (i32.const 6))"),
    ];
    for (code, call) in cases {
        assert_eq!(with_store(call), code, "{call}");
    }
}

#[test]
fn a_call_that_the_store_refuses_leaves_its_cause_in_the_log() {
    let set = "(call $kv_set (i32.const 24) (i32.const 6) (i32.const 16) (i32.const 3))";
    let store = Box::new(Memory::default());
    let report = invoke_with(&answering(DATA, set), b"{}", Limits::default(), store);
    let line = LogLine {
        level: LogLevel::Warn,
        text: "expected the key-value store to respond, but it is broken".to_owned(),
    };
    assert_eq!(report.logs.lines(), [line]);
}

#[test]
fn keys_and_values_are_taken_up_to_64_kib_and_longer_ones_never_reach_the_store() {
    let get = |key: usize| {
        format!("(call $kv_get (i32.const 0) (i32.const {key}) (i32.const 0) (i32.const 0))")
    };
    let delete = |key: usize| format!("(call $kv_delete (i32.const 0) (i32.const {key}))");
    let set = |key: usize, value: usize| {
        format!("(call $kv_set (i32.const 0) (i32.const {key}) (i32.const 0) (i32.const {value}))")
    };
    let cases = [
        (-1, get(65_536)),
        (-5, get(65_537)),
        (-1, delete(65_536)),
        (-5, delete(65_537)),
        (0, set(65_536, 65_536)),
        (-5, set(65_537, 1)),
        (-5, set(1, 65_537)),
    ];
    for (code, call) in cases {
        // A second page, so that the longer values are within the memory.
        let handle = format!(
            r#"(func (export "handle") (param i32 i32) (result i64)
                (drop (memory.grow (i32.const 1)))
                (i32.store (i32.const 0) {call})
                (i64.const 4))"#
        );
        let store = Box::new(Memory::default());
        let report = invoke_with(
            &module(&[IMPORTS, BASE, &handle]),
            b"{}",
            Limits::default(),
            store,
        );
        assert_eq!(number(report), code, "{call}");
    }
}

#[test]
fn a_call_that_waited_for_the_store_past_its_timeout_has_timed_out() {
    let limits = Limits::new(1 << 20, 1 << 10, 20).unwrap();
    for call in [
        "(call $kv_get (i32.const 16) (i32.const 3) (i32.const 64) (i32.const 16))",
        "(call $kv_set (i32.const 16) (i32.const 3) (i32.const 19) (i32.const 5))",
        "(call $kv_delete (i32.const 16) (i32.const 3))",
    ] {
        // The guest returns right after its call, so only the call itself can notice.
        let report = invoke_with(&answering(DATA, call), b"{}", limits, Box::new(Late));
        let timed_out = Err(InvocationError::TimedOut { timeout_ms: 20 });
        assert_eq!(report.result, timed_out, "{call}");
    }
}

#[test]
fn every_stretch_that_is_not_within_the_memory_answers_6() {
    let good = "(i32.const 16) (i32.const 3)";
    for bad in [
        "(i32.const 65536) (i32.const 1)",
        "(i32.const 65535) (i32.const 2)",
        "(i32.const -1) (i32.const 1)",
        "(i32.const 16) (i32.const -1)",
        "(i32.const -16) (i32.const 32)",
    ] {
        for call in [
            format!("(call $kv_get {bad} {good})"),
            format!("(call $kv_get {good} {bad})"),
            format!("(call $kv_set {bad} {good})"),
            format!("(call $kv_set {good} {bad})"),
            format!("(call $kv_delete {bad})"),
            format!("(call $set_outcome {bad})"),
            format!("(call $set_state_patch {bad})"),
        ] {
            assert_eq!(with_store(&call), -6, "{call}");
        }
    }
}

#[test]
fn the_last_outcome_that_was_set_is_reported() {
    let data = r#"(data (i32.const 16) "firstneeds_review")"#;
    let module = answering(
        data,
        "(i32.add
            (call $set_outcome (i32.const 16) (i32.const 5))
            (call $set_outcome (i32.const 21) (i32.const 12)))",
    );
    assert_eq!(
        answer(invoke(&module, b"{}")),
        ("needs_review".to_owned(), vec![0; 4])
    );
}

#[test]
fn an_invalid_outcome_returns_7_and_changes_nothing() {
    for name in ["two words", "execution_failure", "", "caf\\c3\\a9", "\\ff"] {
        let length = name.replace("\\c3\\a9", "xx").replace("\\ff", "x").len();
        let data = format!(r#"(data (i32.const 16) "{name}")"#);
        let call = format!("(call $set_outcome (i32.const 16) (i32.const {length}))");
        let (outcome, output) = answer(invoke(&answering(&data, &call), b"{}"));
        assert_eq!(outcome, "success", "{name}");
        assert_eq!(output, (-7_i32).to_le_bytes(), "{name}");
    }
}

/// Calls with a patch, and perhaps other calls, and returns the report.
fn with_patch(calls: &str) -> Report {
    let data = r#"(data (i32.const 16) "{\22a\22:1}{\22b\22:2}")"#;
    invoke(&answering(data, calls), b"{}")
}

#[test]
fn the_last_state_patch_usage_and_delay_that_were_set_are_reported() {
    let report = with_patch(
        "(i32.add
            (i32.add
                (call $set_state_patch (i32.const 16) (i32.const 7))
                (call $set_state_patch (i32.const 23) (i32.const 7)))
            (i32.add
                (call $set_usage (i32.const 16) (i32.const 7))
                (i32.add (call $set_delay (i64.const 5)) (call $set_delay (i64.const 700)))))",
    );
    assert_eq!(report.requests.usage, br#"{"a":1}"#);
    assert_eq!(report.requests.state_patch, br#"{"b":2}"#);
    assert_eq!(report.requests.delay_ms, 700);
    assert_eq!(answer(report), ("success".to_owned(), vec![0; 4]));
}

#[test]
fn an_action_that_fails_has_a_state_patch_too() {
    let report = invoke(
        &handling(
            "(drop (call $set_state_patch (i32.const 0) (i32.const 2)))
             (drop (call $set_delay (i64.const 9)))
             unreachable",
        ),
        b"{}",
    );
    assert!(report.result.is_err());
    assert_eq!(report.requests.state_patch.len(), 2);
    assert_eq!(report.requests.delay_ms, 9);
}

#[test]
fn a_state_patch_usage_or_delay_over_the_bound_returns_7_and_changes_nothing() {
    let year_ms: i64 = 366 * 24 * 60 * 60 * 1_000;
    for call in [
        "(i32.add (i32.mul (memory.grow (i32.const 4)) (i32.const 0))
            (call $set_state_patch (i32.const 0) (i32.const 262145)))"
            .to_owned(),
        "(call $set_usage (i32.const 0) (i32.const 16385))".to_owned(),
        "(call $set_delay (i64.const -1))".to_owned(),
        format!("(call $set_delay (i64.const {}))", year_ms + 1),
    ] {
        let report = with_patch(&call);
        assert_eq!(report.requests, Requests::default(), "{call}");
        assert_eq!(answer(report).1, (-7_i32).to_le_bytes(), "{call}");
    }
}
