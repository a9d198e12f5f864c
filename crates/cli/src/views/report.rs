//! The report of a run, as `flo workflow report` prints it.

use super::{RunView, json};
use crate::output::{Row, table};
use crate::{period, time};
use flotilla_client::{PublishedName, v1};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A page of the report of a run.
#[derive(Debug, Serialize)]
pub(crate) struct ReportView {
    /// Absent on the pages after the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunView>,
    steps: Vec<StepView>,
    next_page_token: Option<String>,
    incomplete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<ReportView>,
}

/// What tasks have used, by name.
#[derive(Debug, Serialize)]
struct UsageView {
    own: Value,
    below: Value,
    steps: BTreeMap<String, Value>,
}

#[derive(Debug, Serialize)]
struct StepView {
    scope: String,
    step: String,
    visit: u32,
    kind: String,
    phase: Option<String>,
    active: bool,
    outcome: Option<String>,
    input: Value,
    output: Value,
    started_at_ms: Option<u64>,
    ended_at_ms: Option<u64>,
    attempts: Vec<AttemptView>,
    attempts_count: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

#[derive(Debug, Serialize)]
struct AttemptView {
    number: u32,
    started_at_ms: Option<u64>,
    ended_at_ms: Option<u64>,
    outcome: Option<String>,
    code: Option<String>,
    message: Option<String>,
    worker: Option<String>,
    executor: Option<String>,
    child_run_id: Option<String>,
}

impl From<v1::GetRunReportResponse> for ReportView {
    fn from(report: v1::GetRunReportResponse) -> Self {
        Self {
            run: report.run.map(Into::into),
            steps: report.steps.into_iter().map(Into::into).collect(),
            next_page_token: Some(report.next_page_token).filter(|token| !token.is_empty()),
            incomplete: report.incomplete,
            usage: report.usage.map(Into::into),
            children: Vec::new(),
        }
    }
}

impl From<v1::RunUsage> for UsageView {
    fn from(usage: v1::RunUsage) -> Self {
        let steps = usage.steps.iter();
        Self {
            own: json::value(&usage.own),
            below: json::value(&usage.below),
            steps: steps
                .map(|(step, sums)| (step.clone(), json::value(sums)))
                .collect(),
        }
    }
}

impl From<v1::ReportedStep> for StepView {
    fn from(step: v1::ReportedStep) -> Self {
        Self {
            phase: step.phase().published_name(),
            scope: step.scope,
            step: step.step,
            visit: step.visit,
            kind: step.kind,
            active: step.active,
            outcome: step.outcome,
            input: json::optional_value(step.input.as_deref()),
            output: json::optional_value(step.output.as_deref()),
            started_at_ms: step.started_at_ms,
            ended_at_ms: step.ended_at_ms,
            attempts: step.attempts.into_iter().map(Into::into).collect(),
            attempts_count: step.attempts_count,
            redacted: step.redacted,
        }
    }
}

impl From<v1::ReportedAttempt> for AttemptView {
    fn from(attempt: v1::ReportedAttempt) -> Self {
        Self {
            number: attempt.number,
            started_at_ms: attempt.started_at_ms,
            ended_at_ms: attempt.ended_at_ms,
            outcome: attempt.outcome,
            code: attempt.code,
            message: attempt.message,
            worker: attempt.worker,
            executor: attempt.executor,
            child_run_id: attempt.child_run_id,
        }
    }
}

impl ReportView {
    /// Adds the report of a child run.
    pub(crate) fn add_child(&mut self, child: Self) {
        self.children.push(child);
    }

    /// The runs of which there are more pages, each with the token of the next one. Their ids are those of the first pages.
    pub(crate) fn next_pages(&self, run_id: &str) -> Vec<(String, String)> {
        let own = self.next_page_token.iter();
        let own = own.map(|token| (run_id.to_owned(), token.clone()));
        let below = self.children.iter();
        let below = below.flat_map(|child| {
            let run_id = child.run.as_ref().map_or("", RunView::run_id);
            child.next_pages(run_id)
        });
        own.chain(below).collect()
    }

    /// The run and a table of its steps, then the same of its children.
    pub(crate) fn text(&self) -> String {
        let mut parts = Vec::new();
        self.add_text(&mut parts);
        parts.join("\n\n")
    }

    fn add_text(&self, parts: &mut Vec<String>) {
        parts.extend(self.run.as_ref().map(RunView::summary));
        parts.push(table(&self.steps));
        if let Some(usage) = &self.usage {
            let mut line = format!("used: {}", usage.own);
            if usage.below != Value::Object(Map::new()) {
                line += &format!("; by child runs: {}", usage.below);
            }
            parts.push(line);
        }
        if self.incomplete {
            parts.push(
                "This report is incomplete: older steps and attempts are no longer kept."
                    .to_owned(),
            );
        }
        for child in &self.children {
            child.add_text(parts);
        }
    }
}

impl StepView {
    /// What the last attempt says about where it was executed.
    fn executed_by(&self) -> String {
        let last = self.attempts.last();
        let texts = last.map(|last| [&last.child_run_id, &last.executor, &last.worker]);
        let texts = texts.into_iter().flatten().flatten().cloned();
        texts.collect::<Vec<_>>().join(" ")
    }

    /// Whether it has ended with a good outcome.
    fn has_gone_well(&self) -> bool {
        matches!(
            self.outcome.as_deref(),
            Some("success" | "skipped" | "approved")
        )
    }

    /// Why the last attempt failed that did, or the step.
    fn error(&self) -> String {
        let failed = self.attempts.iter().rev();
        let failed = failed.map(|attempt| (&attempt.code, &attempt.message));
        let failed = failed.map(|(code, message)| [code.as_deref(), message.as_deref()]);
        let own = &self.output["error"];
        let own = ["code", "message"].map(|name| own[name].as_str());
        let all = failed.chain([own]).map(|words| {
            let words = words.into_iter().flatten().collect::<Vec<_>>();
            words.join(": ")
        });
        all.into_iter()
            .find(|words| !words.is_empty())
            .unwrap_or_default()
    }
}

impl Row for StepView {
    const HEADINGS: &'static [&'static str] = &[
        "STEP", "VISIT", "KIND", "OUTCOME", "ATTEMPTS", "STARTED", "TOOK", "BY", "ERROR",
    ];

    fn cells(&self) -> Vec<String> {
        let place = match self.scope.as_str() {
            "" => self.step.clone(),
            scope => format!("{scope}/{}", self.step),
        };
        let took = self.started_at_ms.zip(self.ended_at_ms);
        let took = took.map(|(started, ended)| period::show_ms(ended.saturating_sub(started)));
        vec![
            place,
            self.visit.to_string(),
            self.kind.clone(),
            match (&self.outcome, self.active) {
                (Some(outcome), _) => outcome.clone(),
                (None, true) => "active".to_owned(),
                (None, false) => "-".to_owned(),
            },
            self.attempts_count.to_string(),
            time::show_optional(self.started_at_ms),
            took.unwrap_or_else(|| "-".to_owned()),
            self.executed_by(),
            if self.has_gone_well() {
                String::new()
            } else {
                self.error()
            },
        ]
    }
}
