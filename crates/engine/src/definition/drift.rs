//! What keeps a run from continuing with another revision of its workflow (W89).

use super::{BlockIndex, Definition, Step, StepIndex, StepMapping};
use crate::ids::StepName;
use std::collections::BTreeMap;

impl Definition {
    /// Whether a run continues with `other` where it has stopped with this definition: both have the same steps and blocks,
    /// in the same order, as definitions with the same [signature](Self::signature) do.
    #[must_use]
    pub fn has_same_layout_as(&self, other: &Self) -> bool {
        let is_alike = |step: (&Step, &Step)| {
            let (own, others) = step;
            own.name == others.name
                && own.block == others.block
                && own.kind.name() == others.kind.name()
                && self.invoked(own) == other.invoked(others)
        };
        let blocks = |definition: &Self| -> Vec<(StepIndex, Option<StepIndex>)> {
            let blocks = definition.blocks.iter();
            blocks.map(|block| (block.start, block.opener)).collect()
        };
        self.steps.len() == other.steps.len()
            && self.steps.iter().zip(&other.steps).all(is_alike)
            && blocks(self) == blocks(other)
            && (self.on_error, self.on_cancel) == (other.on_error, other.on_cancel)
    }

    /// How the steps of `other` differ from those of this definition, a sentence each; at most `limit`.
    #[must_use]
    pub fn layout_differences(&self, other: &Self, limit: usize) -> Vec<String> {
        let (own, others) = (self.by_name(), other.by_name());
        let changed = own
            .iter()
            .filter_map(|(name, (index, step))| match others.get(name) {
                None => Some(format!("step \"{name}\" is missing")),
                Some((_, in_other)) => self.difference((*index, step), (other, in_other)),
            });
        let new = others.keys().filter(|name| !own.contains_key(*name));
        let new = new.map(|name| format!("step \"{name}\" is new"));
        let mut differences: Vec<String> = changed.chain(new).take(limit).collect();
        if differences.is_empty() {
            let mut steps = self.steps.iter().zip(&other.steps);
            let moved = steps.find(|(own, others)| own.name != others.name);
            differences.push(match moved {
                Some((own, others)) => {
                    format!(
                        "step \"{}\" is in the place of \"{}\"",
                        others.name, own.name
                    )
                }
                None => "the blocks or handlers differ".to_owned(),
            });
        }
        differences
    }

    /// How a step of another definition differs from the one of this definition that has the same name.
    fn difference(
        &self,
        (index, step): (StepIndex, &Step),
        (other, in_other): (&Self, &Step),
    ) -> Option<String> {
        let name = &step.name;
        let (own_kind, kind) = (step.kind.name(), in_other.kind.name());
        if own_kind != kind {
            return Some(format!(
                "step \"{name}\" has the kind {kind} instead of {own_kind}"
            ));
        }
        let is_moved = self.opener_name(step.block) != other.opener_name(in_other.block);
        if is_moved && !self.is_handler(index) {
            return Some(format!("step \"{name}\" is in another block"));
        }
        match (self.invoked(step), other.invoked(in_other)) {
            (Some(own), Some(target)) if own != target => {
                Some(format!("step \"{name}\" invokes {target} instead of {own}"))
            }
            _ => None,
        }
    }

    /// Describes in one sentence why a step has no counterpart in `other`, or, if the [mapping](Self::mapping_to) has one,
    /// that its branches differ.
    pub(crate) fn describe_difference(
        &self,
        index: StepIndex,
        (other, mapping): (&Self, &StepMapping),
    ) -> String {
        let step = self.step(index);
        let name = &step.name;
        let own_kind = step.kind.name();
        let kind = other.by_name().get(name).map(|(_, step)| step.kind.name());
        match kind {
            None => format!("step \"{name}\" is missing"),
            Some(kind) if kind != own_kind => {
                format!("step \"{name}\" has the kind {kind} instead of {own_kind}")
            }
            Some(_) if mapping.step(index).is_some() => {
                format!("the branches of step \"{name}\" differ")
            }
            Some(_) => format!("step \"{name}\" is in another block"),
        }
    }

    /// Describes in one sentence that a step has lost the compensation that a run may need.
    pub(crate) fn describe_missing_compensation(&self, index: StepIndex) -> String {
        format!("step \"{}\" has no compensation", self.step(index).name)
    }

    /// Whether the step at `index` and one of another definition invoke the same action, workflow or plan.
    pub(crate) fn has_same_target(
        &self,
        index: StepIndex,
        (other, step): (&Self, StepIndex),
    ) -> bool {
        self.invoked(self.step(index)) == other.invoked(other.step(step))
    }

    pub(super) fn by_name(&self) -> BTreeMap<&StepName, (StepIndex, &Step)> {
        let steps = (0..).map(StepIndex).zip(&self.steps);
        steps
            .map(|(index, step)| (&step.name, (index, step)))
            .collect()
    }

    /// The step that opens a block.
    fn opener_name(&self, block: BlockIndex) -> Option<&StepName> {
        let opener = self.block(block).opener?;
        Some(&self.step(opener).name)
    }
}
