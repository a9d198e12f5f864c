//! About how many bytes a view takes in a response: what the budget of one read is compared with.

use super::event::EventView;
use super::report::ReportedStep;
use super::reported_step::ReportedAttempt;
use super::run::{CurrentStep, RunView, StepView};
use super::scope_tree::ScopeView;
use crate::ids::StepName;
use crate::json::Json;
use crate::tables::AttributeValue;

/// The numbers and the short names of a row.
pub(super) const ROW_BYTES: u64 = 64;

fn text(text: &str) -> u64 {
    text.len() as u64
}

fn optional_text(optional: Option<&str>) -> u64 {
    optional.map_or(0, text)
}

fn optional_json(json: Option<&Json>) -> u64 {
    json.map_or(0, |json| text(json.as_str()))
}

impl RunView {
    pub(super) fn bytes(&self) -> u64 {
        let payloads = [&self.error, &self.metadata, &self.output, &self.state];
        let payloads = payloads.map(|payload| optional_json(payload.as_ref()));
        let texts = [&self.detail, &self.target].map(|one| optional_text(one.as_deref()));
        let locks = self.locks.iter().map(|lock| text(lock));
        let attributes = self.search_attributes.values().map(|value| match value {
            AttributeValue::String(string) => text(string),
            AttributeValue::Number(_) | AttributeValue::Timestamp(_) => 0,
        });
        let current = self.current_steps.iter().map(CurrentStep::bytes);
        let steps = self.steps.iter().map(|(name, step)| step.bytes(name));
        let parts = payloads.into_iter().chain(texts).chain(locks);
        let parts = parts.chain(attributes).chain(current).chain(steps);
        let scopes = self.scopes.as_ref().map_or(0, ScopeView::bytes);
        ROW_BYTES + text(self.input.as_str()) + scopes + parts.sum::<u64>()
    }
}

impl StepView {
    pub(super) fn bytes(&self, name: &StepName) -> u64 {
        let output = optional_json(self.output.as_ref());
        ROW_BYTES + text(name.as_str()) + text(&self.outcome) + output
    }
}

impl CurrentStep {
    pub(super) fn bytes(&self) -> u64 {
        ROW_BYTES + text(&self.scope) + text(self.step.as_str())
    }
}

impl ScopeView {
    fn bytes(&self) -> u64 {
        let scopes = self.scopes.iter().map(Self::bytes);
        ROW_BYTES + text(&self.path) + scopes.sum::<u64>()
    }
}

impl EventView {
    pub(super) fn bytes(&self) -> u64 {
        let step = optional_text(self.step.as_deref());
        ROW_BYTES + text(&self.scope) + step + text(&self.detail) + text(&self.attributes)
    }
}

impl ReportedStep {
    pub(super) fn bytes(&self) -> u64 {
        let payloads = optional_json(self.input.as_ref()) + optional_json(self.output.as_ref());
        let attempts = self.attempts.iter().map(ReportedAttempt::bytes);
        let names = text(&self.scope) + text(self.step.as_str());
        ROW_BYTES + names + payloads + attempts.sum::<u64>()
    }
}

impl ReportedAttempt {
    fn bytes(&self) -> u64 {
        let error = self.error.as_ref();
        let error = error.map_or(0, |error| text(&error.code) + text(&error.message));
        let worker = self
            .worker
            .as_ref()
            .map_or(0, |worker| text(worker.as_str()));
        let child = self.child.as_ref().map_or(0, |child| text(child.as_str()));
        ROW_BYTES + error + worker + child + optional_text(self.executor.as_deref())
    }
}
