//! `flo bench wasm`: runs of one step that the nodes execute.

use super::load::{LoadFlags, Piece, Work};
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::create_workflow;
use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::Client;
use flotilla_client::v1::{ActionType, RegisterActionRequest};
use tokio::time::Instant;

const ACTION: &str = "flo-bench-echo";
const WORKFLOW: &str = "flo-bench-wasm";

const SOURCE: &str = r#"
kind: Workflow
name: flo-bench-wasm
version: "1"
retention_ms: 3600000
start:
  run: "@actions/flo-bench-echo"
  transitions: {success: flo.Completed, failure: flo.Failed}
"#;

/// Returns its input, for which it reserves memory after the first bytes.
const MODULE: &str = r#"
(module
  (memory (export "memory") 1)
  (func (export "alloc") (param $length i32) (result i32)
    (local $pages i32)
    (local.set $pages (i32.shr_u (i32.add (local.get $length) (i32.const 16)) (i32.const 16)))
    (if (i32.gt_u (local.get $pages) (i32.const 0))
      (then (if (i32.eq (memory.grow (local.get $pages)) (i32.const -1))
        (then (return (i32.const 0))))))
    (i32.const 16))
  (func (export "handle") (param $input i32) (param $length i32) (result i64)
    (i64.or
      (i64.shl (i64.extend_i32_u (local.get $input)) (i64.const 32))
      (i64.extend_i32_u (local.get $length)))))
"#;

/// Measure runs of one WebAssembly step
///
/// The step returns its input, which is checked. A run's latency is from its start to its end, as
/// its client sees them.
///
/// Leaves behind: the definition and the action, and the runs for an hour.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench wasm --clients 64 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Wasm {
    /// Payload bytes in the input of each run, in addition to a number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,

    #[command(flatten)]
    load: LoadFlags,

    #[command(flatten)]
    report: ReportFlags,
}

impl Wasm {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let bench = Bench::open(session, &self.load, &self.report, &[])?;
        register(bench.client()).await?;
        create_workflow(bench.client(), SOURCE).await?;
        let echoes = Echoes {
            payloads: Payloads::new(self.payload),
        };
        let conditions = Conditions {
            payload_bytes: Some(self.payload),
            steps_per_run: Some(1),
            ..Conditions::new("wasm", "runs", "run")
        };
        bench.measure(echoes, conditions).await
    }
}

async fn register(client: &Client) -> Result<(), Failure> {
    let module = flotilla_wasm::to_binary(MODULE.as_bytes())
        .map_err(|error| Failure::new(Code::ModuleMalformed, error.to_string()))?;
    let request = RegisterActionRequest {
        name: ACTION.to_owned(),
        r#type: ActionType::Wasm.into(),
        wasm_module: module.into_owned().into(),
        ..RegisterActionRequest::default()
    };
    client.register_action(request).await?;
    Ok(())
}

struct Echoes {
    payloads: Payloads,
}

impl Work for Echoes {
    type Prepared = ();

    async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, piece: &Piece, (): ()) -> Result<Instant, Failure> {
        let input = self.payloads.input(piece.number);
        runs::carry_out(piece, WORKFLOW, input, piece.number).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_and_the_module_are_valid() {
        let parsed = flotilla_dsl::parse(SOURCE);
        assert!(parsed.findings.is_empty(), "{:?}", parsed.findings);
        let module = flotilla_wasm::to_binary(MODULE.as_bytes()).expect("text");
        let limits = flotilla_wasm::Limits::default();
        flotilla_wasm::inspect(&module, &limits).expect("an action");
    }
}
