//! The example action that the demonstration runs.

use crate::guests::{answer, failure, invoke};
use flotilla_wasm::{Failure, Limits, inspect, to_binary};

fn ship_order() -> Vec<u8> {
    let text = include_bytes!("../../../../examples/actions/ship-order.wat");
    to_binary(text).unwrap().into_owned()
}

#[test]
fn ship_order_is_accepted_and_answers_with_the_order() {
    let module = ship_order();
    inspect(&module, &Limits::default()).unwrap();
    let report = invoke(&module, br#"{"id":"A-17"}"#);
    assert_eq!(report.logs.lines()[0].text, "order shipped");
    let (outcome, output) = answer(report);
    assert_eq!(outcome, "success");
    assert_eq!(
        String::from_utf8(output).unwrap(),
        r#"{"shipped":true,"order":{"id":"A-17"}}"#
    );
}

#[test]
fn ship_order_grows_its_memory_for_a_large_order() {
    let order = format!("\"{}\"", "x".repeat(1_000_000));
    let output = answer(invoke(&ship_order(), order.as_bytes())).1;
    assert_eq!(
        output,
        format!("{{\"shipped\":true,\"order\":{order}}}").into_bytes()
    );
}

#[test]
fn ship_order_refuses_an_empty_input() {
    assert_eq!(failure(invoke(&ship_order(), b"")), Failure::InvalidInput);
}
