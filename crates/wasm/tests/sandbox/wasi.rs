//! WASI commands: how they end, and their limits (A8, A9).

use crate::commands::{command, echo, failing, telling};
use crate::guests::{answer, digest, failure, invoke, invoke_in, invoke_within};
use flotilla_wasm::{Failure, InvocationError, Limits, LogLevel, Report, Sandbox};

const PAGE: usize = 65_536;

fn exited(report: Report) -> (u32, String) {
    match failure(report) {
        exited @ Failure::Exited { status, .. } => (status, exited.to_string()),
        other => panic!("expected an exit, but the call ended in {other:?}"),
    }
}

#[test]
fn what_is_read_from_stdin_and_written_to_stdout_is_the_answer() {
    let echo = echo();
    for length in [0, 1, 4_096, 100_000] {
        let input = vec![b'x'; length];
        assert_eq!(
            answer(invoke(&echo, &input)),
            ("success".to_owned(), input),
            "{length}"
        );
    }
}

#[test]
fn a_command_is_compiled_once_and_every_call_begins_afresh() {
    let counter = command(
        "",
        "(i32.store (i32.const 32) (i32.add (i32.load (i32.const 32)) (i32.const 1)))
         (call $tell (i32.load (i32.const 32)))",
    );
    let sandbox = Sandbox::new().unwrap();
    let module = sandbox.compile(digest(0), &counter).unwrap();
    for _ in 0..2 {
        let report = invoke_in(&sandbox, &module);
        assert_eq!(answer(report).1, 1_i32.to_le_bytes());
    }
    assert_eq!(sandbox.compilations_count(), 1);
}

#[test]
fn exit_0_is_success_and_exit_75_is_pending_and_both_keep_the_output() {
    for (status, outcome) in [(0, "success"), (75, "pending")] {
        let body = format!(
            "(call $say (i32.const 1) (i32.const 1024) (i32.const 2))
             (call $proc_exit (i32.const {status}))
             (call $say (i32.const 1) (i32.const 1024) (i32.const 2))"
        );
        let report = invoke(&command("{}", &body), b"");
        assert_eq!(answer(report), (outcome.to_owned(), b"{}".to_vec()));
    }
}

#[test]
fn any_other_status_is_a_failure_with_the_last_line_of_stderr() {
    for status in [1, 3, 76, 255, u32::MAX] {
        let report = invoke(&failing("card\\nno funds \\n\\n", 16, status), b"");
        let error = report.result.clone().unwrap_err();
        assert_eq!((error.outcome(), error.code()), ("failure", "exit_status"));
        assert_eq!(exited(report), (status, "no funds".to_owned()));
    }
}

#[test]
fn a_failure_without_a_message_is_described_by_its_status() {
    let report = invoke(&failing("\\n", 1, 3), b"");
    let message = "expected the action to exit with 0, but it exited with 3".to_owned();
    assert_eq!(exited(report), (3, message));
}

#[test]
fn stderr_is_the_log_of_a_command_that_succeeds_too() {
    let body = "(call $say (i32.const 2) (i32.const 1024) (i32.const 11))";
    let report = invoke(&command("first\\nsecond", body), b"");
    let lines = report.logs.lines();
    let lines: Vec<_> = lines.iter().map(|line| (line.level, &*line.text)).collect();
    assert_eq!(
        lines,
        [(LogLevel::Info, "first"), (LogLevel::Info, "secon")]
    );
    answer(report);
}

#[test]
fn a_trap_keeps_the_last_line_of_stderr() {
    let body = "(call $say (i32.const 2) (i32.const 1024) (i32.const 8)) unreachable";
    let said = failure(invoke(&command("panicked", body), b"")).to_string();
    assert_eq!(
        said,
        "expected the action to return, but it trapped: wasm `unreachable` instruction executed, \
         after the last line of stderr: panicked"
    );
    let silent = failure(invoke(&command("", "unreachable"), b"")).to_string();
    assert!(silent.ends_with("instruction executed"), "{silent}");
}

#[test]
fn a_command_that_computes_or_sleeps_for_too_long_times_out() {
    // A subscription to the monotonic clock, due in an hour.
    let sleep = "
        (i32.store (i32.const 1040) (i32.const 1))
        (i64.store (i32.const 1048) (i64.const 3600000000000))
        (drop (call $poll_oneoff
            (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 3000)))";
    let limits = Limits::new(1 << 20, 1 << 10, 50).unwrap();
    for body in ["(loop $again (br $again))", sleep] {
        let report = invoke_within(&command("", body), b"", limits);
        let timed_out = Err(InvocationError::TimedOut { timeout_ms: 50 });
        assert_eq!(report.result, timed_out, "{body}");
    }
}

#[test]
fn a_command_that_wants_more_memory_than_its_limit_is_ended() {
    let limits = Limits::new(4 * PAGE as u64, 1 << 10, 30_000).unwrap();
    let growing = |pages: usize| {
        let body = format!("(drop (memory.grow (i32.const {pages})))");
        invoke_within(&command("", &body), b"", limits)
    };
    answer(growing(3));
    assert_eq!(
        failure(growing(4)),
        Failure::MemoryExceeded {
            bytes_wanted: 5 * PAGE,
            bytes_max: 4 * PAGE
        }
    );
}

#[test]
fn an_output_up_to_the_limit_is_answered_and_more_ends_the_call() {
    let limits = Limits::new(PAGE as u64, 8, 30_000).unwrap();
    let echo = echo();
    assert_eq!(
        answer(invoke_within(&echo, b"12345678", limits)).1,
        b"12345678"
    );
    let error = invoke_within(&echo, b"123456789", limits).result;
    let error = error.unwrap_err();
    assert_eq!(error.code(), "output_limit");
    assert_eq!(error, Failure::OutputOverrun { bytes_max: 8 }.into());
    let endless = command(
        "{}",
        "(loop $again (call $say (i32.const 1) (i32.const 1024) (i32.const 2)) (br $again))",
    );
    assert_eq!(
        failure(invoke(&endless, b"")),
        Failure::OutputOverrun { bytes_max: 1 << 20 }
    );
}

#[test]
fn a_command_that_asks_for_files_or_network_is_refused_and_its_failure_says_so() {
    let open = "(call $path_open (i32.const 3) (i32.const 0) (i32.const 1024) (i32.const 8)
        (i32.const 0) (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 32))";
    let accept = "(call $sock_accept (i32.const 3) (i32.const 0) (i32.const 32))";
    for (call, name) in [(open, "path_open"), (accept, "sock_accept")] {
        assert_eq!(
            answer(invoke(&telling(call), b"")).1,
            76_i32.to_le_bytes(),
            "{name}"
        );
        let body = format!(
            "(drop {call}) (drop {open})
             (call $say (i32.const 2) (i32.const 1024) (i32.const 9))
             (call $proc_exit (i32.const 1))"
        );
        let report = invoke(&command("no access", &body), b"");
        let message =
            format!("no access (it called `{name}`, but an action has neither files nor network)");
        assert_eq!(exited(report), (1, message));
    }
}

#[test]
fn a_command_can_set_a_state_patch_its_usage_and_a_delay_whether_it_succeeds_or_fails() {
    for (status, is_success) in [(0, true), (3, false)] {
        let body = format!(
            "(call $tell (i32.add
                (call $set_state_patch (i32.const 1024) (i32.const 7))
                (i32.add
                    (call $set_usage (i32.const 1031) (i32.const 7))
                    (i32.add
                        (call $set_delay (i64.const 700))
                        (call $set_usage (i32.const 65530) (i32.const 7))))))
             (call $proc_exit (i32.const {status}))"
        );
        let report = invoke(&command(r#"{\22a\22:1}{\22b\22:2}"#, &body), b"");
        assert_eq!(report.requests.state_patch, br#"{"a":1}"#);
        assert_eq!(report.requests.usage, br#"{"b":2}"#);
        assert_eq!(report.requests.delay_ms, 700);
        assert_eq!(report.result.is_ok(), is_success);
        if let Ok(answer) = report.result {
            // The last range is not within the memory.
            assert_eq!(answer.output, (-6_i32).to_le_bytes());
        }
    }
}
