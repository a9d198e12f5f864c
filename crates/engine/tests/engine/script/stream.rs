//! Parses commands on streams and renders streams and records.

use super::line::Line;
use super::show::{option, quarantined, text};
use super::world::World;
use flotilla_engine::ids::{PartitionKey, StreamName};
use flotilla_engine::rows::{Retention, StreamRecord, StreamSettings};
use flotilla_engine::view::{self, RecordRange, RecordView};
use flotilla_engine::{
    AppendRecords, Body, CreateStream, DeleteStream, NewRecord, StreamPosition, TrimStream, TrimTo,
};
use std::fmt::Display;

/// `create-stream S partitions=N count=N age=MS bytes=N limit=N`, `append S PAYLOAD… partition=N
/// key=K HEADER=V…`, `trim S before=ID` or `newest=N`, `delete-stream S`
pub(super) fn command(verb: &str, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "create-stream" => Body::CreateStream(CreateStream {
            stream: stream(line),
            settings: settings(line),
        }),
        "append" => Body::AppendRecords(AppendRecords {
            stream: stream(line),
            records: records(line),
        }),
        "trim" => Body::TrimStream(TrimStream {
            stream: stream(line),
            to: match line.option("before") {
                Some(id) => TrimTo::Before(id.parse().expect("a record id")),
                None => TrimTo::Newest(line.number("newest").expect("before=ID or newest=N")),
            },
        }),
        "delete-stream" => Body::DeleteStream(DeleteStream {
            stream: stream(line),
        }),
        _ => return None,
    })
}

fn settings(line: &mut Line) -> StreamSettings {
    let default = StreamSettings::default();
    StreamSettings {
        partitions: line.number("partitions").unwrap_or(default.partitions),
        retention: Retention {
            count_max: line.number("count"),
            max_age_ms: line.number("age"),
            max_bytes: line.number("bytes"),
        },
        bytes_limit: line.number("limit").unwrap_or(default.bytes_limit),
    }
}

/// Each plain word is a record; the options that are left are headers of each. `times=N` appends
/// them N times.
fn records(line: &mut Line) -> Vec<NewRecord> {
    let partition = line.number("partition");
    let key = line
        .option("key")
        .map(|key| PartitionKey::new(key).expect("a key"));
    let times = line.number("times").unwrap_or(1);
    let mut records = Vec::new();
    while line.has_words() {
        records.push(NewRecord {
            payload: line.payload(),
            headers: Default::default(),
            key: key.clone(),
            partition,
        });
    }
    let headers = super::command::labels(line);
    for record in &mut records {
        record.headers = headers.clone();
    }
    std::iter::repeat_n(records, times).flatten().collect()
}

pub(super) const QUESTIONS: [&str; 3] = ["read", "stream", "streams"];

/// `read S FROM TO partition=N limit=N`, `stream S`, `streams`
pub(super) fn answer(world: &World, verb: &str, line: &mut Line) -> Option<String> {
    if !QUESTIONS.contains(&verb) {
        return None;
    }
    let namespace = line.namespace();
    let answer = match verb {
        "read" => {
            let name = stream(line);
            let range = RecordRange {
                from: position(line, "0-0"),
                to: position(line, "$"),
                partition: line.number("partition"),
                limit: line.number("limit").unwrap_or(10),
            };
            let page = view::records(&world.store, &namespace, &name, &range)
                .expect("memory does not fail");
            page.map_or_else(
                || "none\n".to_owned(),
                |page| {
                    let records: String = page.records.iter().map(record_in_words).collect();
                    format!("{records}next {}\n", page.next)
                },
            )
        }
        "stream" => {
            let name = stream(line);
            let found =
                view::stream(&world.store, &namespace, &name).expect("memory does not fail");
            found.map_or_else(
                || "none\n".to_owned(),
                |found| {
                    let words = describe(&found.record, found.first_id);
                    let state = quarantined(found.is_quarantined);
                    format!("{}{state}\n", words.trim_end())
                },
            )
        }
        "streams" => {
            let page = view::streams(&world.store, &namespace, view::PageRange::first(100));
            let items = page.expect("memory does not fail").items;
            let line =
                |one: &view::StreamView| format!("{} {}\n", one.name, one.record.record_count);
            items.iter().map(line).collect()
        }
        _ => return None,
    };
    Some(answer)
}

fn describe(record: &StreamRecord, first: Option<impl Display>) -> String {
    let partitions = record.partitions.iter().map(|one| {
        let (kept, all) = (one.record_count, one.appended_count);
        format!("{kept}/{all}")
    });
    format!(
        "{} records {} bytes{} last {} partitions {}{}{}\n",
        record.record_count,
        record.bytes,
        option(" first ", &first),
        record.last_id,
        partitions.collect::<Vec<_>>().join(" "),
        option(" sweep at ", &record.sweep_due_ms),
        option(
            " lost ",
            &(record.lost_count > 0).then_some(record.lost_count)
        ),
    )
}

pub(super) fn record_in_words(record: &RecordView) -> String {
    let content = &record.content;
    let headers = content.headers.iter();
    let headers: String = headers
        .map(|(name, value)| format!(" {name}={value}"))
        .collect();
    format!(
        "{} in {} {}{}{headers}\n",
        record.id,
        record.partition,
        text(&content.payload),
        option(" key ", &content.key),
    )
}

fn position(line: &mut Line, default: &str) -> StreamPosition {
    let text = line.next().unwrap_or_else(|| default.to_owned());
    text.parse().expect("a place in a stream")
}

pub(super) fn stream(line: &mut Line) -> StreamName {
    StreamName::new(line.word()).expect("a stream's name")
}
