//! Blocks: the steps that belong together, and how they lead to each other (W50).

use super::{StepIndex, Template, step::index};
use serde::{Deserialize, Serialize};

index! {
    /// The position of a block in [`super::Definition::blocks`]; 0 is the workflow's own.
    BlockIndex
}

impl BlockIndex {
    /// The workflow's own block.
    pub const ROOT: Self = Self(0);
}

/// A group of steps with one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// How its steps lead to each other.
    pub form: BlockForm,
    /// The step that it begins with.
    pub start: StepIndex,
    /// The step that opens it; `None` for the workflow's own block.
    pub opener: Option<StepIndex>,
    /// What becomes its output; without one it is that of the step left last (W52). The workflow's own block does not have one.
    pub output: Option<Template>,
}

/// The forms of a block (W50).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockForm {
    /// `start` and `steps`: only transitions lead on.
    Graph,
    /// A list of steps: where no transition matches, a good outcome leads to the next step (W50a).
    List,
    /// A single step. Without transitions its outcome is that of the block.
    Single,
}
