//! A power failure during a write: the tail of the newest file of the log is not what was
//! written.
//!
//! Acknowledgements rest on synced writes, so only one node is torn at a time, and the
//! next only after it has caught up: the others still have what it lost. A node may also detect that
//! synced data is damaged, and refuse to start with an error that says so, or end once its leader tells it what it has
//! lost. An operator would replace it; here its log is restored.

use super::Nemesis;
use super::kill::a_follower;
use crate::stage::{Stage, newest};
use flotilla_tests::{TIMEOUT, wait_until};
use rand::RngExt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The maximum length of the torn tail, in bytes.
const TORN_BYTES_MAX: u64 = 200;

/// Tears the tail of a killed node's log.
#[derive(Default)]
pub(super) struct TornWrite {
    torn: Option<Torn>,
}

/// The node with the torn file, and the earlier content of all files of its log.
struct Torn {
    node: u64,
    whole: Vec<(PathBuf, Vec<u8>)>,
}

impl Nemesis for TornWrite {
    fn name(&self) -> &'static str {
        "torn-write"
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        stage.cluster.await_health();
        let Some(victim) = a_follower(stage) else {
            return "nothing: there is no follower".to_owned();
        };
        stage.cluster.kill(victim);
        let data = stage.cluster.node(victim).data_dir().to_owned();
        let log = data.join("log");
        let Some(file) = newest(&log, "log") else {
            return format!("SIGKILL {victim}, whose log has no file");
        };
        self.torn = Some(Torn {
            node: victim,
            whole: contents(&log),
        });
        let bytes = stage.random.random_range(1..TORN_BYTES_MAX);
        let how = match stage.random.random_range(0..3) {
            0 => append(&file, bytes),
            1 => truncate(&file, bytes),
            _ => flip(&file, bytes),
        };
        format!("SIGKILL {victim}, and the tail of its log {how}")
    }

    fn heal(&mut self, stage: &mut Stage) {
        let Some(torn) = self.torn.take() else {
            return;
        };
        let node = stage.cluster.node_mut(torn.node);
        node.restart();
        let settled = wait_until("the torn node to serve or to refuse", TIMEOUT, || {
            // A linearizable read: it has the entries that it had acknowledged, unless its leader told it that it has not.
            let read = node.flo().run(&["--timeout", "5s", "ns", "list"]);
            match (node.is_alive(), read) {
                (false, _) => Ok(false),
                (true, answer) if answer.code == 0 => Ok(true),
                (true, answer) => Err(answer.show()),
            }
        });
        if !settled {
            node.kill();
            restore(&node.data_dir().join("log"), &torn.whole);
        }
    }
}

/// The files of a folder.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(folder).expect("a folder of a killed node");
    let files = files.map(|file| file.expect("a file of a killed node").path());
    let read = |file: PathBuf| {
        let bytes = fs::read(&file).expect("a file of a killed node");
        (file, bytes)
    };
    files.map(read).collect()
}

/// Gives a folder these files only.
fn restore(folder: &Path, files: &[(PathBuf, Vec<u8>)]) {
    fs::remove_dir_all(folder).expect("a folder of a killed node");
    fs::create_dir(folder).expect("a disk with room");
    for (file, bytes) in files {
        fs::write(file, bytes).expect("a disk with room");
    }
}

/// Data that was never synced: the beginning of a write.
fn append(file: &Path, bytes: u64) -> String {
    let mut log = OpenOptions::new()
        .append(true)
        .open(file)
        .expect("a file of a killed node");
    let garbage: Vec<u8> = (0..bytes)
        .map(|byte| u8::try_from(byte % 251).unwrap_or(0))
        .collect();
    log.write_all(&garbage).expect("a disk with room");
    format!("has {bytes} additional bytes")
}

fn truncate(file: &Path, bytes: u64) -> String {
    let log = OpenOptions::new()
        .write(true)
        .open(file)
        .expect("a file of a killed node");
    let length = log.metadata().map_or(0, |metadata| metadata.len());
    log.set_len(length.saturating_sub(bytes))
        .expect("a file of a killed node");
    format!("lacks {bytes} bytes")
}

fn flip(file: &Path, bytes: u64) -> String {
    let mut content = fs::read(file).expect("a file of a killed node");
    let back = usize::try_from(bytes).unwrap_or(1);
    let Some(place) = content.len().checked_sub(back) else {
        return "is empty".to_owned();
    };
    content[place] ^= 1;
    fs::write(file, content).expect("a disk with room");
    format!("has a wrong bit {bytes} bytes before its end")
}
