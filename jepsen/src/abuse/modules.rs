//! Attacks by WebAssembly modules.

use super::arena::Arena;
use super::{Abuse, Needs};
use flotilla_tests::poisonous_module;
use std::time::Duration;

/// A module that is too much for the compiler, registered at every node again and again.
#[derive(Default)]
pub(super) struct PoisonousModule {
    file: String,
}

impl Abuse for PoisonousModule {
    fn name(&self) -> &'static str {
        "poisonous-module"
    }

    fn prepare(&mut self, arena: &mut Arena) {
        let scratch = arena.cluster.scratch();
        self.file = scratch.write("poison.wat", poisonous_module().as_bytes());
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        for id in arena.cluster.ids() {
            let (flo, file) = (arena.cluster.flo_at(id), self.file.clone());
            arena.spawn(async move {
                let register = move || {
                    let register = ["action", "register", "poison", "--wasm", &file];
                    // It is refused, perhaps after the attack.
                    flo.run(&[&register[..], &["--timeout", "60s"]].concat())
                };
                let _ = tokio::task::spawn_blocking(register).await;
            });
        }
        "each node gets a module of 300 KiB that the compiler cannot finish".to_owned()
    }
}

/// Calls that take all the memory that their module may have.
pub(super) struct HungryGuests;

impl HungryGuests {
    const CALLS: usize = 96;
    /// Grows its memory to 256 MiB, and writes to each of the kernel's pages.
    const MODULE: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "_start") (local $at i32)
    (drop (memory.grow (i32.const 4095)))
    (loop $next
      (i32.store (local.get $at) (i32.const 1))
      (local.set $at (i32.add (local.get $at) (i32.const 4096)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 268435456))))))"#;
}

impl Abuse for HungryGuests {
    fn name(&self) -> &'static str {
        "hungry-guests"
    }

    fn needs(&self) -> Needs {
        Needs {
            flags: &["--wasm-slots=32"],
            memory_bytes: 2 << 30,
            has_memory_groups: true,
            ..Needs::default()
        }
    }

    fn prepare(&mut self, arena: &mut Arena) {
        let module = arena.cluster.scratch().write("hungry.wat", Self::MODULE);
        let register = ["action", "register", "hungry", "--wasm", &module];
        let limits = ["--max-memory-bytes", "268435456", "--timeout-ms", "600000"];
        let _ = arena.cluster.flo().text(&[&register[..], &limits].concat());
    }

    fn begin(&mut self, arena: &mut Arena) -> String {
        for number in 0..Self::CALLS {
            let client = arena.attacker(number, Duration::from_secs(10));
            arena.spawn(async move {
                loop {
                    let request = flotilla_client::v1::InvokeActionRequest {
                        name: "hungry".to_owned(),
                        request_id: flotilla_client::new_request_id(),
                        wait: true,
                        ..Default::default()
                    };
                    // It may take longer than the caller waits.
                    let _ = client.invoke_action(request).await;
                }
            });
        }
        format!(
            "{} callers of an action that takes 256 MiB, at nodes with 32 slots",
            Self::CALLS
        )
    }
}
