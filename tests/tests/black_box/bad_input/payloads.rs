//! Inputs and signals that are refused.

use super::parked::Parked;
use crate::wire::{self, DEADLINE};
use flotilla_api::v1;
use tonic::Code;
use tonic_types::StatusExt;

#[test]
fn a_payload_over_one_mebibyte_is_refused() {
    let parked = Parked::start();
    let text = format!("\"{}\"", "x".repeat(1 << 20));
    let file = format!("@{}", parked.scratch().write("large.json", text));
    let flo = parked.flo();
    let start = flo.refused(&["workflow", "start", "parked", &file]);
    start
        .expect(2, "too_large")
        .says("1048576")
        .hints("reference");
    let signal = ["workflow", "signal", parked.run_id(), "--type", "go", &file];
    let signal = flo.refused(&signal);
    signal.expect(2, "too_large").says("1048576");
    parked.expect_nothing_lost();
}

#[test]
fn an_input_that_is_not_json_is_refused_with_its_place() {
    let parked = Parked::start();
    let start = parked
        .flo()
        .refused(&["workflow", "start", "parked", "{\"a\": tru}"]);
    start
        .expect(2, "json_invalid")
        .says("line 1 column 10")
        .hints("@FILE");

    // The server gives the same error to a client that does not check the input.
    let runtime = wire::runtime();
    let status = runtime.block_on(async {
        let request = v1::StartRunRequest {
            workflow: "parked".to_owned(),
            input: "{\"a\": tru}".into(),
            ..v1::StartRunRequest::default()
        };
        let mut workflows = wire::workflows(&parked.node().endpoint());
        let reply = workflows.start_run(wire::within(DEADLINE, request)).await;
        reply.expect_err("it is not JSON")
    });
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let fields = status.get_details_bad_request().expect("what is wrong");
    assert_eq!(fields.field_violations[0].field, "input", "{fields:?}");
    parked.expect_nothing_lost();
}

#[test]
fn a_run_that_is_not_there_is_not_found() {
    let parked = Parked::start();
    let flo = parked.flo();
    for line in [
        &["workflow", "status", "wfrun-404"][..],
        &["workflow", "history", "wfrun-404"],
        &["workflow", "history", "wfrun-404", "--follow"],
        &["workflow", "signal", "wfrun-404", "--type", "go"],
        &["workflow", "cancel", "wfrun-404"],
    ] {
        let refusal = flo.refused(line);
        refusal.expect(1, "run_not_found").says("wfrun-404");
    }
    parked.expect_nothing_lost();
}

#[test]
fn a_signal_to_a_finished_run_is_refused_and_a_repeated_one_is_known() {
    let parked = Parked::start();
    let flo = parked.flo();
    let run_id = flo.text(&["workflow", "start", "parked", "--run-id", "mine"]);
    assert_eq!(run_id, "mine");
    let signal = ["workflow", "signal", "mine", "--type", "go", "--id", "s-1"];
    assert_eq!(flo.json(&signal)["existing"], false);
    let _ = flo.text(&["workflow", "history", "mine", "--follow"]);
    assert_eq!(flo.json(&signal)["existing"], true);
    let late = flo.refused(&["workflow", "signal", "mine", "--type", "go"]);
    late.expect(3, "run_ended").says("completed");
    let cancel = flo.refused(&["workflow", "cancel", "mine"]);
    cancel.expect(3, "run_ended");
    let _ = flo.text(&["workflow", "signal", parked.run_id(), "--type", "other"]);
}
