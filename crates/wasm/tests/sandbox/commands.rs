//! WASI commands as WebAssembly text.

use crate::guests::module;

/// Every function that a command can call, and two of our own: `$say` writes a range of memory to a
/// stream, `$tell` writes a number to stdout. They use the memory up to 32.
const PRELUDE: &str = r#"
    (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_sizes_get"
        (func $args_sizes_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_res_get"
        (func $clock_res_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get"
        (func $clock_time_get (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get"
        (func $environ_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get"
        (func $environ_sizes_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_fdstat_get"
        (func $fd_fdstat_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_fdstat_set_flags"
        (func $fd_fdstat_set_flags (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_filestat_get"
        (func $fd_filestat_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read"
        (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write"
        (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff"
        (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sched_yield" (func $sched_yield (result i32)))
    (import "wasi_snapshot_preview1" "fd_prestat_get"
        (func $fd_prestat_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_seek"
        (func $fd_seek (param i32 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_raise" (func $proc_raise (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "sock_accept"
        (func $sock_accept (param i32 i32 i32) (result i32)))
    (import "flo" "set_state_patch" (func $set_state_patch (param i32 i32) (result i32)))
    (import "flo" "set_usage" (func $set_usage (param i32 i32) (result i32)))
    (import "flo" "set_delay" (func $set_delay (param i64) (result i32)))

    (memory (export "memory") 1)
    (func $say (param $stream i32) (param $pointer i32) (param $length i32)
        (i32.store (i32.const 0) (local.get $pointer))
        (i32.store (i32.const 4) (local.get $length))
        (drop (call $fd_write
            (local.get $stream) (i32.const 0) (i32.const 1) (i32.const 8))))
    (func $tell (param $number i32)
        (i32.store (i32.const 16) (local.get $number))
        (call $say (i32.const 1) (i32.const 16) (i32.const 4)))
"#;

/// A command whose `_start` has the given body, with a text at 1024.
pub(crate) fn command(text: &str, body: &str) -> Vec<u8> {
    let data = format!(r#"(data (i32.const 1024) "{text}")"#);
    let start = format!(r#"(func (export "_start") {body})"#);
    module(&[PRELUDE, &data, &start])
}

/// A command that writes the value of an expression to stdout.
pub(crate) fn telling(expression: &str) -> Vec<u8> {
    command("", &format!("(call $tell {expression})"))
}

/// A command that exits with a status, after it wrote a text to stderr.
pub(crate) fn failing(stderr: &str, length: usize, status: u32) -> Vec<u8> {
    let body = format!(
        "(call $say (i32.const 2) (i32.const 1024) (i32.const {length}))
         (call $proc_exit (i32.const {status}))"
    );
    command(stderr, &body)
}

/// A command that writes its input to its output, 4 KiB at a time.
pub(crate) fn echo() -> Vec<u8> {
    command(
        "",
        "(loop $again
            (i32.store (i32.const 0) (i32.const 4096))
            (i32.store (i32.const 4) (i32.const 4096))
            (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
            (if (i32.load (i32.const 8)) (then
                (call $say (i32.const 1) (i32.const 4096) (i32.load (i32.const 8)))
                (br $again))))",
    )
}
