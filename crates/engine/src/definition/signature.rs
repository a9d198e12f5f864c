//! The signature of a definition, which shows whether a run can continue with another definition (W88).

use super::{BlockIndex, CallRole, Definition, Step, StepIndex};
use crate::codec;
use crate::digest::sha256_hex;
use crate::json::quote;
use std::fmt::Write;

/// The hexadecimal digits of a signature.
const DIGITS: usize = 16;

impl Definition {
    /// The first 16 hexadecimal digits of the SHA-256 digest of the workflow name, the steps and the handlers. Each step
    /// counts with its name, kind, target and blocks. Definitions with the same signature may differ in everything else,
    /// such as the version.
    #[must_use]
    pub fn signature(&self) -> String {
        let mut digest = sha256_hex(self.outline());
        digest.truncate(DIGITS);
        digest
    }

    /// The SHA-256 digest of the whole definition, in hexadecimal.
    #[must_use]
    pub fn content_hash(&self) -> String {
        sha256_hex(codec::encode(self))
    }

    /// The name, and the steps of all blocks, as canonical JSON.
    fn outline(&self) -> String {
        let mut members: Vec<Vec<StepIndex>> = vec![Vec::new(); self.blocks.len()];
        for (index, step) in (0..).map(StepIndex).zip(&self.steps) {
            if !self.is_handler(index) {
                members[step.block.position()].push(index);
            }
        }
        // A block opens only blocks that come after it.
        let mut blocks = vec![String::new(); self.blocks.len()];
        for (position, members) in members.iter().enumerate().rev() {
            let steps: Vec<String> = members
                .iter()
                .map(|index| self.step_outline(*index, &blocks))
                .collect();
            blocks[position] = format!("[{}]", steps.join(","));
        }
        let mut name = String::new();
        quote(self.name.as_str(), &mut name);
        let handler = |step: Option<StepIndex>| {
            let body = step.and_then(|step| self.branches(step).first());
            body.map_or("null", |body| blocks[body.block.position()].as_str())
        };
        let (block, on_cancel, on_error) = (
            &blocks[BlockIndex::ROOT.position()],
            handler(self.on_cancel),
            handler(self.on_error),
        );
        format!(
            "{{\"block\":{block},\"name\":{name},\"onCancel\":{on_cancel},\"onError\":{on_error}}}"
        )
    }

    /// What a step invokes, as the definition's text names it.
    pub(super) fn invoked(&self, step: &Step) -> Option<String> {
        let call = step.call(CallRole::Target)?;
        Some(self.target_text(&call.target))
    }

    fn step_outline(&self, index: StepIndex, blocks: &[String]) -> String {
        let step = self.step(index);
        let mut text = "[".to_owned();
        quote(step.name.as_str(), &mut text);
        text.push(',');
        quote(step.kind.name(), &mut text);
        text.push(',');
        match self.invoked(step) {
            Some(target) => quote(&target, &mut text),
            None => text.push_str("null"),
        }
        let branches = self.branches(index).iter();
        let opened: Vec<&str> = branches
            .map(|branch| blocks[branch.block.position()].as_str())
            .collect();
        write!(text, ",[{}]]", opened.join(",")).expect("a String takes every text");
        text
    }
}
