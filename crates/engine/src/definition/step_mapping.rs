//! Which steps and blocks of two definitions correspond to each other (W89).

use super::{BlockIndex, Definition, StepIndex, StepKind};

/// Maps the steps and blocks of one definition to those of another.
///
/// A step corresponds to the step with the same name and kind in the corresponding block. The blocks of corresponding steps
/// correspond in order. Branches correspond only if all of them have the same names in the same order.
pub struct StepMapping {
    steps: Vec<Option<StepIndex>>,
    blocks: Vec<Option<BlockIndex>>,
}

impl StepMapping {
    /// The step of the other definition that corresponds to `step`.
    #[must_use]
    pub fn step(&self, step: StepIndex) -> Option<StepIndex> {
        self.steps.get(step.position()).copied().flatten()
    }

    /// The block of the other definition that corresponds to `block`.
    #[must_use]
    pub fn block(&self, block: BlockIndex) -> Option<BlockIndex> {
        self.blocks.get(block.position()).copied().flatten()
    }
}

impl StepMapping {
    /// The step of the first definition to which `step` of the other one corresponds.
    #[must_use]
    pub fn former(&self, step: StepIndex) -> Option<StepIndex> {
        let mut steps = (0..).map(StepIndex).zip(&self.steps);
        let found = steps.find(|(_, other)| **other == Some(step));
        found.map(|(former, _)| former)
    }

    /// Whether all blocks of a step of `own` have corresponding ones.
    pub(crate) fn has_blocks_of(&self, own: &Definition, step: StepIndex) -> bool {
        let mut branches = own.branches(step).iter();
        branches.all(|branch| self.block(branch.block).is_some())
    }
}

impl Definition {
    /// The steps and blocks of `other` that correspond to those of this definition. All of them do if both have the [same
    /// layout](Self::has_same_layout_as), regardless of the names of their branches.
    #[must_use]
    pub fn mapping_to(&self, other: &Self) -> StepMapping {
        if self.has_same_layout_as(other) {
            return self.identity();
        }
        let mut mapping = StepMapping {
            steps: vec![None; self.steps.len()],
            blocks: vec![None; self.blocks.len()],
        };
        mapping.blocks[BlockIndex::ROOT.position()] = Some(BlockIndex::ROOT);
        let others = other.by_name();
        let mut steps: Vec<_> = (0..).map(StepIndex).zip(&self.steps).collect();
        // A step that opens blocks comes before those in them.
        steps.sort_by_key(|(_, step)| self.blocks_around(step.block).count());
        for (own, step) in steps {
            let found = others.get(&step.name).filter(|(index, in_other)| {
                mapping.block(step.block) == Some(in_other.block)
                    && step.kind.name() == in_other.kind.name()
                    && self.is_handler(own) == other.is_handler(*index)
            });
            if let Some((index, _)) = found {
                mapping.steps[own.position()] = Some(*index);
                mapping.add_blocks((self, own), (other, *index));
            }
        }
        mapping
    }

    fn identity(&self) -> StepMapping {
        let (steps, blocks) = (self.steps.len(), self.blocks.len());
        StepMapping {
            steps: (0..)
                .map(|index| Some(StepIndex(index)))
                .take(steps)
                .collect(),
            blocks: (0..)
                .map(|index| Some(BlockIndex(index)))
                .take(blocks)
                .collect(),
        }
    }
}

impl StepMapping {
    /// Adds the blocks of two steps that correspond to each other.
    fn add_blocks(
        &mut self,
        (own, own_step): (&Definition, StepIndex),
        (other, other_step): (&Definition, StepIndex),
    ) {
        let branches = own.branches(own_step).iter();
        let others = other.branches(other_step);
        let is_parallel = matches!(own.step(own_step).kind, StepKind::Parallel(_));
        let have_same_names = branches
            .clone()
            .map(|one| &one.name)
            .eq(others.iter().map(|one| &one.name));
        if is_parallel && !have_same_names {
            return;
        }
        for (own, other) in branches.zip(others) {
            self.blocks[own.block.position()] = Some(other.block);
        }
    }
}
