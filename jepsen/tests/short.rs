//! A short run of a few nemeses over all workloads; `cargo xtask jepsen` runs longer ones.

use flotilla_jepsen::nemesis;
use flotilla_jepsen::run::{Plan, run};
use flotilla_jepsen::workload;
use std::env;
use std::time::Duration;

/// Leaders are killed, leaders are cut off, links are bad: what happens most.
const NEMESES: [&str; 3] = ["kill-leader", "partition-leader", "lossy-links"];

#[test]
fn nothing_acknowledged_is_lost_and_nothing_happens_twice() {
    let given = env::var("FLOTILLA_SEED").ok();
    let seed = given.map_or_else(rand::random, |text| text.parse().expect("a number"));
    for name in NEMESES {
        let report = run(Plan {
            workloads: workload::all(),
            nemesis: nemesis::named(name).expect("a nemesis of the README"),
            seed,
            duration: Duration::from_secs(12),
            // Other tests load the machine; the long run holds the cluster to 10 s.
            recovery_max: Duration::from_secs(60),
            bug: None,
            folder: env::temp_dir().join(format!("flotilla-jepsen-{seed}-{name}")),
            keep: false,
        });
        println!("{report}");
        assert!(report.is_sound(), "FLOTILLA_SEED={seed} repeats the faults");
    }
}
