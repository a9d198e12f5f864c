//! Trials by stand-ins for the child: scripts that end as it may end.

use super::*;
use crate::config::ModuleCompiler;
use crate::memory::MemoryPool;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

const POISON: &[u8] = b"poison";

/// What a trial may take.
const MEMORY_BYTES: usize = 128 << 20;

/// Memory for `count` trials and compilations.
fn memory(count: usize) -> ModuleMemory {
    ModuleMemory {
        compilations: MemoryPool::new(count * MEMORY_BYTES),
        compilation_bytes: MEMORY_BYTES,
        code_bytes_max: 32 << 20,
    }
}

fn digest(number: u8) -> ModuleDigest {
    ModuleDigest([number; 32])
}

/// An action that does nothing.
fn idle() -> Vec<u8> {
    let text = br#"(module (memory (export "memory") 1) (func (export "_start")))"#;
    flotilla_wasm::to_binary(text).unwrap().into_owned()
}

/// A script that counts its calls, waits for the file `gate` if the module is [`POISON`], and then ends as `end` says.
fn modules(folder: &TempDir, end: &str) -> Arc<Modules> {
    let script = r#"cd "$0"; read -r first; echo >> calls
        if [ "$first" = poison ]; then until [ -e gate ]; do sleep 0.01; done; fi; "#;
    let arguments = [
        "-c".into(),
        format!("{script}{end}").into(),
        folder.path().into(),
    ];
    let compiler = ModuleCompiler {
        program: "/bin/sh".into(),
        arguments: arguments.into(),
    };
    let threads = GuestThreads::new(2);
    let trial = Some(Trial::new(compiler, MEMORY_BYTES));
    Arc::new(Modules::new(
        threads,
        trial,
        memory(2),
        CancellationToken::new(),
    ))
}

fn calls(folder: &Path) -> usize {
    fs::read_to_string(folder.join("calls")).map_or(0, |lines| lines.lines().count())
}

fn open_gate(folder: &TempDir) {
    fs::write(folder.path().join("gate"), "").unwrap();
}

#[tokio::test]
async fn a_module_is_tried_and_compiled_once() {
    let folder = tempfile::tempdir().unwrap();
    let modules = modules(&folder, "echo 100");
    modules.admit(digest(1), idle()).await.unwrap();
    assert!(modules.find(digest(1)).is_none(), "it is not compiled yet");
    for _ in 0..2 {
        modules.compile(digest(1), idle()).await.unwrap();
    }
    assert!(matches!(modules.find(digest(1)), Some(Ok(_))));
    modules.admit(digest(1), idle()).await.unwrap();
    assert_eq!(calls(folder.path()), 1);
    assert_eq!(modules.sandbox().unwrap().compilations_count(), 1);
}

#[tokio::test]
async fn a_failure_is_answered_without_another_trial_and_nothing_is_compiled_here() {
    let folder = tempfile::tempdir().unwrap();
    let modules = modules(&folder, "kill -XCPU $$");
    let slow = Unavailable::Broken(Broken::CompileTime);
    for _ in 0..3 {
        let compiled = modules.compile(digest(1), idle()).await;
        assert_eq!(compiled.err(), Some(slow.clone()));
    }
    assert_eq!(modules.admit(digest(1), idle()).await, Err(slow));
    assert!(matches!(
        modules.find(digest(1)),
        Some(Err(Broken::CompileTime))
    ));
    assert_eq!(calls(folder.path()), 1);
    assert_eq!(modules.sandbox().unwrap().compilations_count(), 0);
}

#[tokio::test]
async fn callers_of_a_poisonous_module_wait_together_and_callers_of_others_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let modules = modules(
        &folder,
        r#"[ "$first" != poison ] || kill -ABRT $$; echo 100"#,
    );
    let poisoned: Vec<_> = (0..8)
        .map(|_| {
            let modules = modules.clone();
            tokio::spawn(async move { modules.compile(digest(1), POISON.to_vec()).await.err() })
        })
        .collect();
    while calls(folder.path()) == 0 {
        tokio::task::yield_now().await;
    }
    modules.compile(digest(2), idle()).await.unwrap();
    assert!(poisoned.iter().all(|caller| !caller.is_finished()));
    open_gate(&folder);
    for caller in poisoned {
        let large = Unavailable::Broken(Broken::CompileMemory {
            bytes_max: MEMORY_BYTES,
        });
        assert_eq!(caller.await.unwrap(), Some(large));
    }
    assert_eq!(calls(folder.path()), 2);
}

#[tokio::test]
async fn a_trial_continues_without_its_caller_and_delays_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let modules = modules(&folder, "echo 100");
    let given_up = timeout(
        Duration::from_millis(20),
        modules.admit(digest(1), POISON.to_vec()),
    );
    assert!(given_up.await.is_err());
    // Another registration would wait; calls do not.
    modules.compile(digest(2), idle()).await.unwrap();
    open_gate(&folder);
    assert_eq!(modules.admit(digest(1), POISON.to_vec()).await, Ok(()));
    assert_eq!(calls(folder.path()), 2);
}

#[tokio::test]
async fn each_end_of_a_child_has_its_meaning() {
    let compile = |reason: &str| {
        Some(Broken::Compile {
            reason: reason.to_owned(),
        })
    };
    let cases = [
        ("kill -XCPU $$", Some(Broken::CompileTime)),
        (
            "kill -ABRT $$",
            Some(Broken::CompileMemory {
                bytes_max: MEMORY_BYTES,
            }),
        ),
        ("kill -SEGV $$", compile("the compiler crashed")),
        ("exit 101", compile("the compiler failed")),
        ("printf 'it is odd'; exit 1", compile("it is odd")),
        (
            "echo 33554433",
            Some(Broken::CodeTooLarge { bytes: 33_554_433 }),
        ),
        // Whether the module is at fault is unknown.
        ("kill -KILL $$", None),
        ("exit 7", None),
        ("echo done", None),
    ];
    for (end, broken) in cases {
        let folder = tempfile::tempdir().unwrap();
        let refused = modules(&folder, end).admit(digest(1), idle()).await;
        match (refused, broken) {
            (Err(Unavailable::Broken(found)), Some(broken)) => assert_eq!(found, broken, "{end}"),
            (Err(Unavailable::Unknown(refusal)), None) => {
                assert!(refusal.may_succeed_later(), "{end}");
            }
            (refused, _) => panic!("{end}: {refused:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_does_not_end_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let modules = modules(&folder, "echo 100");
    let refused = modules.admit(digest(1), POISON.to_vec()).await;
    let Err(Unavailable::Unknown(refusal)) = refused else {
        panic!("{refused:?}")
    };
    assert!(refusal.to_string().contains("after 60 s"), "{refusal}");
}

#[tokio::test]
async fn a_node_that_stops_ends_its_trials() {
    let folder = tempfile::tempdir().unwrap();
    let modules = modules(&folder, "echo 100");
    modules.shutdown.cancel();
    let refused = modules.admit(digest(1), POISON.to_vec()).await;
    let stopping = Refusal::shutting_down();
    assert_eq!(refused, Err(Unavailable::Unknown(stopping)));
}

#[tokio::test]
async fn a_compiler_that_is_missing_is_not_the_fault_of_the_module() {
    let compiler = ModuleCompiler {
        program: "/no/such/program".into(),
        arguments: Vec::new(),
    };
    let trial = Some(Trial::new(compiler, MEMORY_BYTES));
    let threads = GuestThreads::new(1);
    let modules = Arc::new(Modules::new(
        threads,
        trial,
        memory(2),
        CancellationToken::new(),
    ));
    let refused = modules.admit(digest(1), idle()).await;
    assert!(
        matches!(refused, Err(Unavailable::Unknown(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_child_gets_the_memory_of_a_trial_and_that_counts_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    // The memory is the last argument.
    let end = format!("[ \"$1\" = {MEMORY_BYTES} ] && echo 100");
    let modules = modules(&folder, &end);
    let reserved = || modules.memory.compilations.bytes_reserved();
    let given_up = timeout(
        Duration::from_millis(20),
        modules.admit(digest(1), POISON.to_vec()),
    );
    assert!(given_up.await.is_err());
    assert_eq!(reserved(), MEMORY_BYTES);
    open_gate(&folder);
    assert_eq!(modules.admit(digest(1), POISON.to_vec()).await, Ok(()));
    assert_eq!(reserved(), 0);
    modules.compile(digest(2), idle()).await.unwrap();
    assert_eq!(reserved(), 0);
    assert!(modules.code_bytes() > 0);
}
