//! What each function of preview 1 returns to a command (A8).

use crate::commands::{command, telling};
use crate::guests::{answer, invoke, invoke_within, number};
use flotilla_wasm::Limits;

/// The value of an expression in a command.
fn told(expression: &str) -> i32 {
    number(invoke(&telling(expression), b"input"))
}

/// The output of a command with this body.
fn output(body: &str) -> Vec<u8> {
    answer(invoke(&command("", body), b"input")).1
}

#[test]
fn the_program_is_named_like_its_action_and_has_three_variables() {
    let list = |function: &str, length: usize| {
        output(&format!(
            "(drop (call ${function}_sizes_get (i32.const 64) (i32.const 68)))
             (call $say (i32.const 1) (i32.const 64) (i32.const 8))
             (drop (call ${function}_get (i32.const 80) (i32.const 128)))
             (call $say (i32.const 1) (i32.const 80) (i32.const 4))
             (call $say (i32.const 1) (i32.const 128) (i32.const {length}))"
        ))
    };
    let expected = |count: u32, texts: &[u8]| {
        let bytes = u32::try_from(texts.len()).unwrap();
        let numbers = [count, bytes, 128].map(u32::to_le_bytes);
        [numbers.as_flattened(), texts].concat()
    };
    let arguments = b"charge\0";
    assert_eq!(list("args", arguments.len()), expected(1, arguments));
    let variables = b"FLO_RUN_ID=run-7\0FLO_ACTION=charge\0FLO_ATTEMPT=2\0";
    assert_eq!(list("environ", variables.len()), expected(3, variables));
}

#[test]
fn the_clocks_tell_the_time_of_day_and_the_time_since_the_call_began() {
    let time = |clock: u32| {
        let read = format!(
            "(drop (call $clock_time_get (i32.const {clock}) (i64.const 0) (i32.const 64)))
             (call $say (i32.const 1) (i32.const 64) (i32.const 8))"
        );
        let output = output(&format!("{read} {read}"));
        let (first, second) = output.split_at(8);
        [first, second].map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
    };
    const YEAR_NANOSECONDS: u64 = 365 * 24 * 3_600 * 1_000_000_000;
    assert!(time(0)[0] > 50 * YEAR_NANOSECONDS);
    let [first, second] = time(1);
    assert!(first <= second && second < YEAR_NANOSECONDS);
    // CPU time is not exposed.
    for clock in [2, 3, 4] {
        let call =
            format!("(call $clock_time_get (i32.const {clock}) (i64.const 0) (i32.const 64))");
        assert_eq!(told(&call), 28);
    }
    assert_eq!(
        told("(call $clock_res_get (i32.const 1) (i32.const 64))"),
        0
    );
}

#[test]
fn random_bytes_differ() {
    let bytes = output(
        "(drop (call $random_get (i32.const 64) (i32.const 32)))
         (call $say (i32.const 1) (i32.const 64) (i32.const 32))",
    );
    let (first, second) = bytes.split_at(16);
    assert_ne!(first, second);
}

#[test]
fn a_poll_tells_what_is_due_first_and_gives_back_what_the_guest_put_in() {
    // Two subscriptions: a clock (userdata 7) and stdin (userdata 8).
    let poll = |kind: u32, nanoseconds: u64| {
        output(&format!(
            "(i64.store (i32.const 1024) (i64.const 7))
             (i32.store (i32.const 1040) (i32.const 1))
             (i64.store (i32.const 1048) (i64.const {nanoseconds}))
             (i64.store (i32.const 1072) (i64.const 8))
             (i32.store8 (i32.const 1080) (i32.const {kind}))
             (call $tell (call $poll_oneoff
                (i32.const 1024) (i32.const 2048) (i32.const 2) (i32.const 64)))
             (call $say (i32.const 1) (i32.const 64) (i32.const 4))
             (call $say (i32.const 1) (i32.const 2048) (i32.const 64))"
        ))
    };
    let event = |userdata: u8, errno: u8, kind: u8, bytes: u8| {
        let mut event = [0; 32];
        (event[0], event[8], event[10], event[16]) = (userdata, errno, kind, bytes);
        event
    };
    let told = |events: &[[u8; 32]]| {
        let mut told = vec![0; 8 + 64];
        told[4] = events.len().try_into().unwrap();
        told[8..][..events.len() * 32].copy_from_slice(&events.concat());
        told
    };
    const HOUR_NANOSECONDS: u64 = 3_600 * 1_000_000_000;
    // Stdin has five bytes ready; writing to it is an immediate error.
    assert_eq!(poll(1, HOUR_NANOSECONDS), told(&[event(8, 0, 1, 5)]));
    assert_eq!(poll(2, HOUR_NANOSECONDS), told(&[event(8, 8, 2, 0)]));
    // A clock that is due is reported beside them.
    assert_eq!(poll(1, 0), told(&[event(7, 0, 0, 0), event(8, 0, 1, 5)]));
    // The second subscription is a clock too, of the time of day: due from the start.
    assert_eq!(poll(0, 1), told(&[event(8, 0, 0, 0)]));
}

#[test]
fn a_sleep_ends_when_its_time_is_over() {
    let sleep = |flags: u32, nanoseconds: u64| {
        output(&format!(
            "(i32.store (i32.const 1040) (i32.const 1))
             (i64.store (i32.const 1048) (i64.const {nanoseconds}))
             (i32.store16 (i32.const 1064) (i32.const {flags}))
             (call $tell (call $poll_oneoff
                (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 64)))
             (call $tell (i32.load (i32.const 64)))"
        ))
    };
    let slept = [0, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(sleep(0, 1_000_000), slept);
    // Until a time of the clock that is soon or already past.
    assert_eq!(sleep(1, 1_000_000), slept);
    assert_eq!(sleep(1, 0), slept);
}

#[test]
fn only_the_three_streams_are_there_and_each_has_its_direction() {
    let cases = [
        (0, "(call $fd_fdstat_get (i32.const 0) (i32.const 64))"),
        (0, "(call $fd_filestat_get (i32.const 2) (i32.const 64))"),
        (0, "(call $fd_fdstat_set_flags (i32.const 1) (i32.const 4))"),
        (0, "(call $sched_yield)"),
        (8, "(call $fd_fdstat_get (i32.const 3) (i32.const 64))"),
        (8, "(call $fd_prestat_get (i32.const 3) (i32.const 64))"),
        (
            8,
            "(call $fd_seek (i32.const -1) (i64.const 0) (i32.const 0) (i32.const 64))",
        ),
        (8, "(call $fd_close (i32.const 3))"),
        (
            8,
            "(call $fd_read (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 72))",
        ),
        (
            8,
            "(call $fd_write (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 72))",
        ),
        (
            8,
            "(call $fd_write (i32.const 3) (i32.const 64) (i32.const 1) (i32.const 72))",
        ),
        (58, "(call $fd_prestat_get (i32.const 0) (i32.const 64))"),
        (58, "(call $proc_raise (i32.const 9))"),
        (
            70,
            "(call $fd_seek (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 64))",
        ),
    ];
    for (errno, call) in cases {
        assert_eq!(told(call), errno, "{call}");
    }
}

#[test]
fn a_stream_that_was_closed_is_gone() {
    let closed = "(block (result i32)
        (drop (call $fd_close (i32.const 0)))
        (call $fd_read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 72)))";
    assert_eq!(told(closed), 8);
}

#[test]
fn every_stretch_that_is_not_within_the_memory_is_a_fault() {
    // The first pointer with fewer than four bytes behind it.
    let bad = "(i32.const 65533)";
    let buffer_outside = "(block (result i32)
        (i32.store (i32.const 64) (i32.const 65535))
        (i32.store (i32.const 68) (i32.const 2))
        (call $fd_write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 72)))";
    for call in [
        format!("(call $args_get {bad} (i32.const 64))"),
        format!("(call $args_get (i32.const 64) {bad})"),
        format!("(call $environ_sizes_get (i32.const 64) {bad})"),
        format!("(call $clock_res_get (i32.const 0) {bad})"),
        format!("(call $clock_time_get (i32.const 1) (i64.const 0) {bad})"),
        format!("(call $random_get {bad} (i32.const 4))"),
        "(call $random_get (i32.const 64) (i32.const -1))".to_owned(),
        format!("(call $fd_fdstat_get (i32.const 0) {bad})"),
        format!("(call $fd_filestat_get (i32.const 0) {bad})"),
        format!("(call $fd_read (i32.const 0) {bad} (i32.const 1) (i32.const 64))"),
        format!("(call $fd_read (i32.const 0) (i32.const 64) (i32.const 1) {bad})"),
        format!("(call $fd_write (i32.const 1) {bad} (i32.const 1) (i32.const 64))"),
        format!("(call $fd_write (i32.const 1) (i32.const 64) (i32.const 1) {bad})"),
        "(call $fd_write (i32.const 1) (i32.const -8) (i32.const 2) (i32.const 64))".to_owned(),
        buffer_outside.to_owned(),
        format!("(call $poll_oneoff {bad} (i32.const 64) (i32.const 1) (i32.const 64))"),
        format!("(call $poll_oneoff (i32.const 1024) {bad} (i32.const 1) (i32.const 64))"),
        format!("(call $poll_oneoff (i32.const 1024) (i32.const 2048) (i32.const 1) {bad})"),
    ] {
        assert_eq!(told(&call), 21, "{call}");
    }
}

#[test]
fn lists_of_any_length_but_a_bounded_one_are_refused() {
    for call in [
        "(call $fd_read (i32.const 0) (i32.const 64) (i32.const 1025) (i32.const 32))",
        "(call $fd_write (i32.const 1) (i32.const 64) (i32.const -1) (i32.const 32))",
        "(call $poll_oneoff (i32.const 64) (i32.const 64) (i32.const 1025) (i32.const 32))",
        "(call $poll_oneoff (i32.const 64) (i32.const 64) (i32.const 0) (i32.const 32))",
    ] {
        assert_eq!(told(call), 28, "{call}");
    }
}

#[test]
fn one_write_takes_a_mebibyte_and_says_so() {
    let body = "
        (drop (memory.grow (i32.const 47)))
        (i32.store (i32.const 64) (i32.const 0))
        (i32.store (i32.const 68) (i32.const 0x180000))
        (i32.store (i32.const 72) (i32.const 0))
        (i32.store (i32.const 76) (i32.const 1))
        (drop (call $fd_write (i32.const 1) (i32.const 64) (i32.const 2) (i32.const 80)))
        (call $tell (i32.load (i32.const 80)))";
    let limits = Limits::new(16 << 20, 4 << 20, 30_000).unwrap();
    let output = answer(invoke_within(&command("", body), b"", limits)).1;
    assert_eq!(output.len(), (1 << 20) + 4);
    assert_eq!(output[1 << 20..], (1_u32 << 20).to_le_bytes());
}
