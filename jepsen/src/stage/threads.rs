//! The threads of a node: to diagnose one that runs but does not answer.

use flotilla_tests::Node;
use std::fs;
use std::path::Path;

/// A line for each thread: its name, its state, where the kernel holds it and how long it has run.
pub(crate) fn describe(node: &Node) -> String {
    let Some(process_id) = node.process_id().filter(|_| node.is_alive()) else {
        return "it does not run\n".to_owned();
    };
    let threads = fs::read_dir(format!("/proc/{process_id}/task"));
    let threads = threads.into_iter().flatten().filter_map(Result::ok);
    threads.map(|thread| line(&thread.path())).collect()
}

fn line(thread: &Path) -> String {
    let read = |name: &str| fs::read_to_string(thread.join(name)).unwrap_or_default();
    let stat = read("stat");
    // After the name in brackets: the state comes first, user and system ticks twelfth and thirteenth.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or("?");
    let (name, held) = (read("comm"), read("wchan"));
    let (state, user, system) = (field(0), field(11), field(12));
    let name = name.trim();
    format!("{name}: {state} in {held}, {user} + {system} ticks\n")
}
