//! What keeps a run from continuing with another revision of its workflow (W89).

use super::{BlockIndex, Definition, Step, StepIndex};
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
        if let (Some(own), Some(target)) = (self.invoked(step), other.invoked(in_other))
            && own != target
        {
            return Some(format!("step \"{name}\" invokes {target} instead of {own}"));
        }
        let is_moved = self.opener_name(step.block) != other.opener_name(in_other.block);
        let is_handler = self.is_handler(index);
        (is_moved && !is_handler).then(|| format!("step \"{name}\" is in another block"))
    }

    fn by_name(&self) -> BTreeMap<&StepName, (StepIndex, &Step)> {
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
