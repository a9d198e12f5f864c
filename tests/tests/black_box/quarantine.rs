//! The quarantine (design rule 10) as an operator sees it: empty here, since no build has a bug to plant.

use flotilla_tests::DevNode;
use serde_json::json;

#[test]
fn in_a_sound_cluster_nothing_is_set_aside_and_nothing_is_found() {
    let node = DevNode::start();
    let flo = node.flo();
    let listed = flo.json(&["cluster", "quarantine", "list"]);
    assert_eq!(listed, json!({"items": [], "next_page_token": null}));
    let retried = flo.json(&["cluster", "quarantine", "release", "--all"]);
    assert_eq!(retried, json!({"released_count": 0, "items": []}));
    flo.refused(&["cluster", "quarantine", "release", "run", "wfrun-1"])
        .expect(1, "quarantine_not_found")
        .hints("flo cluster quarantine list");
    flo.refused(&["cluster", "quarantine", "release", "run"])
        .expect(2, "usage");
    flo.refused(&["cluster", "quarantine", "release", "boat", "wfrun-1"])
        .expect(2, "usage");
}
