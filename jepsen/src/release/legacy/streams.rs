//! A stream with a group: some records acknowledged, some in flight, some unread.

use super::{DUE_MS, Legacy, Site, read};
use flotilla_tests::{CommandWorker, RecordCommand, TIMEOUT, wait_until};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;

const STREAM: &str = "release-records";
const GROUP: &str = "release-readers";
/// Acknowledged records, as many in flight, and as many unread.
const RECORDS: u64 = 3;

/// A stream and its group.
pub(super) struct Streams;

#[derive(Serialize, Deserialize)]
struct Acknowledged {
    records: Vec<Record>,
    /// The payloads of the records to be delivered, sorted.
    due: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    stream_id: String,
    partition_key: Option<String>,
    payload: String,
}

impl Legacy for Streams {
    fn name(&self) -> &'static str {
        "streams"
    }

    fn leave(&self, site: &Site) -> Value {
        let create = ["stream", "create", STREAM, "--partitions", "2"];
        drop(site.flo.text(&create));
        let due_ms = DUE_MS.to_string();
        let create = ["stream", "group", "create", STREAM, GROUP];
        let create = [&create[..], &["--ack-timeout-ms", &due_ms]].concat();
        drop(site.flo.text(&create));
        append(site, "read");
        let mut reader = consume(site, "release-reader", "cat > /dev/null");
        await_group(site, "acked_count", RECORDS);
        assert!(reader.drain().success(), "{}", reader.output());
        let mut due = append(site, "held");
        let gate = site.shut("held");
        let mut holder = consume(site, "release-holder", &gate.program());
        await_group(site, "pending_count", RECORDS);
        holder.kill();
        due.extend(append(site, "unread"));
        due.sort();
        json!(Acknowledged {
            records: records(site),
            due,
        })
    }

    fn resume(&self, site: &Site, acknowledged: &Value) {
        let Acknowledged { records: all, due } = read(acknowledged);
        assert_eq!(records(site), all);
        let file = site.scratch.path("delivered");
        let note = format!("payload=$(cat); echo \"$payload\" >> {}", file.display());
        let mut reader = consume(site, "release-successor", &note);
        await_group(site, "acked_count", all.len() as u64);
        assert!(reader.drain().success(), "{}", reader.output());
        let delivered = fs::read_to_string(file).unwrap_or_default();
        let mut delivered: Vec<&str> = delivered.lines().collect();
        delivered.sort_unstable();
        assert_eq!(
            delivered, due,
            "each that was not acknowledged, and no other"
        );
    }
}

/// Appends records, and returns their payloads.
fn append(site: &Site, name: &str) -> Vec<String> {
    let payloads: Vec<String> = (0..RECORDS)
        .map(|number| format!("{name}-{number}"))
        .collect();
    for payload in &payloads {
        let append = ["stream", "append", STREAM, payload];
        let append = [&append[..], &["--partition-key", payload]].concat();
        drop(site.flo.text(&append));
    }
    payloads
}

fn consume(site: &Site, id: &str, program: &str) -> CommandWorker {
    let command = RecordCommand {
        stream: STREAM,
        group: GROUP,
        script: program,
    };
    CommandWorker::consume(&site.flo, site.scratch, id, command)
}

fn records(site: &Site) -> Vec<Record> {
    let page = site.flo.json(&["stream", "read", STREAM, "--limit", "100"]);
    read(&page["items"])
}

/// Waits until the group's counter has this value.
fn await_group(site: &Site, count: &str, expected: u64) {
    wait_until("the counter of the group", TIMEOUT, || {
        let info = ["stream", "group", "info", STREAM, GROUP];
        let found = site.flo.json(&info);
        match found[count] == expected {
            true => Ok(()),
            false => Err(format!("{found}")),
        }
    });
}
