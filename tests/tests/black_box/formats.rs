//! Every verb obeys `-o`, and so do the outputs for other programs: graphs, completions.

use crate::files::{example, example_workflows, fixture};
use flotilla_tests::{CommandWorker, DevNode, Flo};
use serde_json::{Value, json};

#[test]
fn every_verb_prints_json_and_yaml() {
    let node = DevNode::start();
    let flo = node.flo();
    let parked = fixture("parked.yaml");
    let _worker = CommandWorker::start(&flo, node.scratch(), "w1", &[("work", "cat")]);
    let action_run = flo.text(&["action", "invoke", "work", "{}", "--async"]);
    let unwanted = flo.text(&[
        "action",
        "invoke",
        "work",
        "--delay-ms",
        "600000",
        "--async",
    ]);
    let lines = format!(
        "workflow create -f {parked} | workflow validate -f {parked} | workflow graph -f {parked} | \
         workflow start parked --run-id r-1 --idempotency-key k | workflow status r-1 | \
         workflow signal r-1 --type odd --id s-1 | workflow history r-1 | workflow info r-1 {{}} | workflow info r-1 | \
         workflow history r-1 --follow --limit 2 | workflow list | workflow revisions parked | workflow runs | \
         workflow show parked | workflow show parked --version 1.0.0 --revision 1 | workflow graph parked | workflow disable parked | \
         workflow enable parked | workflow delete absent | action register pack | action list | action status {action_run} | \
         action runs work | action cancel {unwanted} | action invoke pack --async | action disable pack | action enable pack | \
         action delete pack | worker list | worker info w1 | cluster status | cluster health | cluster inspect | \
         cluster set --max-request-ids 7000000 | ns quota set open_runs=90 | ns quota show | ns quota show --defaults | \
         expr eval size([1,2])>1 | workflow cancel r-1 | worker drain w1"
    );
    for line in lines.split(" | ") {
        // Cancelled and drained things are gone, and ids are not reused.
        let is_once = ["cancel", "drain", "--run-id"]
            .iter()
            .any(|word| line.contains(word));
        let words: Vec<&str> = line.split(' ').collect();
        for object in flo.json_lines(&words) {
            assert!(object.is_object(), "{line}: {object}");
        }
        if !is_once {
            let yaml = flo.text(&[&["-o", "yaml"], &words[..]].concat());
            let is_json = serde_json::from_str::<Value>(&yaml).is_ok();
            assert!(yaml.contains(": ") && !is_json, "{line}: {yaml}");
        }
    }
    let started = flo.text(&["-o", "yaml", "workflow", "start", "parked"]);
    assert!(started.contains("run_id: wfrun-"), "{started}");
}

#[test]
fn a_refusal_has_the_form_that_was_asked_for() {
    let nobody = Flo::at("127.0.0.1:1");
    let yaml = nobody.run(&["-o", "yaml", "workflow", "list"]);
    assert_eq!(
        (yaml.code, yaml.stdout.as_str()),
        (5, ""),
        "{}",
        yaml.show()
    );
    assert!(
        yaml.stderr.starts_with("error:\n  code: "),
        "{}",
        yaml.show()
    );
}

#[test]
fn every_example_can_be_drawn_without_a_server() {
    let offline = Flo::at("127.0.0.1:1");
    for name in example_workflows() {
        let file = example(&format!("workflows/{name}"));
        let graph = offline.text(&["workflow", "graph", "-f", &file]);
        assert!(graph.contains("flowchart TD\n"), "{name}: {graph}");
        assert!(graph.contains("flo."), "{name} ends somewhere: {graph}");
    }
    let invalid = fixture("bomb.yaml");
    let refusal = offline.refused(&["workflow", "graph", "-f", &invalid]);
    refusal.expect(3, "definition_invalid");
}

#[test]
fn a_stored_workflow_is_drawn_like_its_file() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = example("workflows/order-processing.yaml");
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let drawn = flo.text(&["workflow", "graph", "order-processing"]);
    assert_eq!(drawn, flo.text(&["workflow", "graph", "-f", &file]));
    for label in [
        "success",
        "failure",
        "signal approval",
        "after 60m",
        "OrderRejected",
    ] {
        assert!(drawn.contains(label), "{label:?} in {drawn}");
    }
    let object = flo.json(&[
        "workflow",
        "graph",
        "order-processing",
        "--version",
        "1.0.0",
    ]);
    assert_eq!(object["workflow"], "order-processing");
    assert_eq!(object["mermaid"], json!(drawn + "\n"));
    flo.refused(&["workflow", "graph", "missing"])
        .expect(1, "workflow_not_found");
    let neither = flo.run(&["workflow", "graph"]);
    assert_eq!(neither.code, 2, "{}", neither.show());
}

#[test]
fn each_shell_gets_its_completions() {
    let offline = Flo::at("127.0.0.1:1");
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef flo"),
        ("fish", "complete -c flo"),
    ] {
        let script = offline.text(&["completions", shell]);
        assert!(script.contains(mark), "{shell}");
        assert!(script.contains("graph"), "{shell} knows the verbs");
    }
}
