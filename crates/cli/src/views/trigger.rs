//! A workflow's triggers.

use super::{name, or_dash};
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// All triggers of a workflow.
#[derive(Debug, Serialize)]
pub(crate) struct TriggersView {
    triggers: Vec<TriggerView>,
}

impl From<Vec<v1::Trigger>> for TriggersView {
    fn from(triggers: Vec<v1::Trigger>) -> Self {
        Self {
            triggers: triggers.into_iter().map(TriggerView::from).collect(),
        }
    }
}

impl TriggersView {
    /// The triggers for people, with an empty line between them.
    pub(crate) fn text(&self) -> String {
        let triggers = self.triggers.iter().map(TriggerView::text);
        triggers.collect::<Vec<_>>().join("\n\n")
    }
}

/// A trigger and its position in the stream.
#[derive(Debug, Serialize)]
pub(crate) struct TriggerView {
    stream: String,
    namespace: String,
    consumer_group: String,
    mode: String,
    batch_size: u32,
    batch_timeout_ms: u64,
    when: Option<String>,
    state: String,
    lag: u64,
    since_ms: u64,
    run_count: u64,
    record_count: u64,
    skipped_count: u64,
    refused_count: u64,
    lost_count: u64,
    last_fired_at_ms: Option<u64>,
}

impl From<v1::Trigger> for TriggerView {
    fn from(trigger: v1::Trigger) -> Self {
        Self {
            mode: name(trigger.mode()),
            state: name(trigger.state()),
            stream: trigger.stream,
            namespace: trigger.namespace,
            consumer_group: trigger.consumer_group,
            batch_size: trigger.batch_size,
            batch_timeout_ms: trigger.batch_timeout_ms,
            when: trigger.when,
            lag: trigger.lag,
            since_ms: trigger.since_ms,
            run_count: trigger.run_count,
            record_count: trigger.record_count,
            skipped_count: trigger.skipped_count,
            refused_count: trigger.refused_count,
            lost_count: trigger.lost_count,
            last_fired_at_ms: trigger.last_fired_at_ms,
        }
    }
}

impl TriggerView {
    /// The trigger for people: one property per line.
    fn text(&self) -> String {
        let last = self
            .last_fired_at_ms
            .map_or_else(|| "-".to_owned(), time::show);
        let group = format!("{} ({})", self.consumer_group, self.mode);
        let stream = format!("{} in {}", self.stream, self.namespace);
        let runs = format!("{} of {} records", self.run_count, self.record_count);
        let lines = [
            ("stream", stream),
            ("group", group),
            ("batch", self.batch()),
            ("when", or_dash(self.when.as_deref())),
            ("state", self.state.clone()),
            ("behind", records(self.lag)),
            ("runs", runs),
            ("skipped", records(self.skipped_count)),
            ("refused", records(self.refused_count)),
            ("lost", records(self.lost_count)),
            ("last fired", last),
        ];
        lines
            .map(|(heading, text)| format!("{heading:<12}{text}"))
            .join("\n")
    }

    fn batch(&self) -> String {
        match self.batch_size {
            1 => "a run for each record".to_owned(),
            size => format!("up to {size} records within {} ms", self.batch_timeout_ms),
        }
    }
}

fn records(count: u64) -> String {
    match count {
        1 => "1 record".to_owned(),
        count => format!("{count} records"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn trigger() -> v1::Trigger {
        v1::Trigger {
            stream: "orders".to_owned(),
            namespace: "prod".to_owned(),
            consumer_group: "wf-orders".to_owned(),
            mode: v1::GroupMode::KeyShared.into(),
            batch_size: 50,
            batch_timeout_ms: 5_000,
            state: v1::TriggerState::NoStream.into(),
            lag: 1,
            since_ms: 5,
            run_count: 2,
            record_count: 80,
            skipped_count: 7,
            when: Some("record.payload.total > 100".to_owned()),
            ..v1::Trigger::default()
        }
    }

    #[test]
    fn a_trigger_has_the_published_fields() {
        expect![[r#"{"stream":"orders","namespace":"prod","consumer_group":"wf-orders","mode":"key_shared","batch_size":50,"batch_timeout_ms":5000,"when":"record.payload.total > 100","state":"no_stream","lag":1,"since_ms":5,"run_count":2,"record_count":80,"skipped_count":7,"refused_count":0,"lost_count":0,"last_fired_at_ms":null}"#]]
            .assert_eq(&serde_json::to_string(&TriggerView::from(trigger())).expect("printable"));
    }

    #[test]
    fn a_person_reads_what_it_listens_to_and_how_far_it_is() {
        expect![[r#"
            stream      orders in prod
            group       wf-orders (key_shared)
            batch       up to 50 records within 5000 ms
            when        record.payload.total > 100
            state       no_stream
            behind      1 record
            runs        2 of 80 records
            skipped     7 records
            refused     0 records
            lost        0 records
            last fired  -"#]]
        .assert_eq(&TriggerView::from(trigger()).text());
    }
}
