//! Rows of what is kept until its time is over.

use super::{Row, row, sorted};
use flotilla_engine::ids::{ActionRunNumber, RunNumber};
use flotilla_engine::rows::{Expiration, Expirations, Expiring, RunRemains};

pub(super) fn rows() -> Vec<Row> {
    let expiration = Expiration {
        due_ms: 5_000,
        subject: Expiring::ActionRun(ActionRunNumber(9)),
    };
    vec![
        row::<Expirations>(expiration, ()),
        row::<RunRemains>(RunNumber(7), ()),
    ]
}

#[test]
fn what_expires_first_sorts_first() {
    let expiration = |due_ms, subject| Expiration { due_ms, subject };
    sorted::<Expirations>(&[
        expiration(255, Expiring::ActionRun(ActionRunNumber(9))),
        expiration(256, Expiring::Run(RunNumber(8))),
        expiration(256, Expiring::Run(RunNumber(9))),
        expiration(256, Expiring::ActionRun(ActionRunNumber(1))),
    ]);
}
