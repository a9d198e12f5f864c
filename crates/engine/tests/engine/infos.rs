//! How many info entries a run takes, and how they are read (W92).

use crate::samples;
use crate::trimming::World;
use flotilla_engine::ids::{RunId, RunNumber};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{INFO_BYTES_MAX, INFOS_MAX, READ_BYTES_MAX};
use flotilla_engine::view::{self, InfoPage, InfoRange};
use flotilla_engine::{AddInfo, Body, Rejection, RejectionCode, Reply};

const WAITS: &str = "define rounds 1\n start: wait go -> success=flo.Completed";

fn add(world: &mut World, bytes: usize) -> Result<Reply, Rejection> {
    let content = format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    let body = Body::AddInfo(AddInfo {
        run_id: RunId::generated(RunNumber(1)),
        content: Json::from_checked(content),
    });
    world.try_apply(vec![body]).remove(0)
}

fn page(world: &World, after: u32) -> InfoPage {
    let run_id = RunId::generated(RunNumber(1));
    let found = view::infos(
        &world.store,
        &samples::namespace(),
        &run_id,
        InfoRange {
            after,
            limit: 1_000,
        },
    );
    found
        .expect("memory does not fail")
        .expect("the run exists")
}

#[test]
fn a_run_takes_a_number_of_entries_and_no_more() {
    let mut world = World::new(WAITS, 1);
    for _ in 0..INFOS_MAX {
        add(&mut world, 10).expect("accepted");
    }
    let refused = add(&mut world, 10).expect_err("one too many");
    assert_eq!(refused.code(), RejectionCode::LimitExceeded);
    let page = page(&world, INFOS_MAX - 2);
    let numbers: Vec<u32> = page.entries.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, [INFOS_MAX - 1, INFOS_MAX]);
    assert!(!page.has_more);
}

#[test]
fn a_page_of_large_entries_ends_before_it_is_too_large() {
    let mut world = World::new(WAITS, 1);
    let refused = add(&mut world, INFO_BYTES_MAX + 1).expect_err("too large");
    assert_eq!(refused.code(), RejectionCode::TooLarge);
    for _ in 0..50 {
        add(&mut world, INFO_BYTES_MAX).expect("accepted");
    }
    let first = page(&world, 0);
    let bytes = first.entries.len() as u64 * INFO_BYTES_MAX as u64;
    assert_eq!(bytes, READ_BYTES_MAX);
    assert!(first.has_more);
    let rest = page(&world, first.entries.last().expect("an entry").number);
    assert_eq!(rest.entries.len() + first.entries.len(), 50);
    assert!(!rest.has_more);
}
