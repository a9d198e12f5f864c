//! A power failure during a write: the tail of the newest file of the log is not what was
//! written.
//!
//! Acknowledgements rest on synced writes, so only one node is torn at a time, and the
//! next only after it has caught up: the others still have what it lost. A node may also detect that
//! synced data is damaged, and refuse to start with an error that says so. An operator would replace
//! it; here its log is restored.

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

/// The torn file, and its earlier content.
struct Torn {
    node: u64,
    file: PathBuf,
    whole: Vec<u8>,
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
        let Some(file) = newest(&data.join("log"), "log") else {
            return format!("SIGKILL {victim}, whose log has no file");
        };
        self.torn = Some(Torn {
            node: victim,
            whole: fs::read(&file).expect("a file of a killed node"),
            file: file.clone(),
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
            match (node.is_alive(), node.status()) {
                (false, _) => Ok(false),
                (true, Ok(_)) => Ok(true),
                (true, Err(error)) => Err(error),
            }
        });
        if !settled {
            node.kill();
            fs::write(&torn.file, &torn.whole).expect("a disk with room");
        }
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
