//! The context that all readers of one document share.

use super::expression;
use super::names::{Handler, Names};
use crate::{Code, Finding, Reference, Severity, Span, suggest};
use flotilla_engine::definition::{BlockIndex, Root};
use flotilla_engine::ids::StreamName;

/// Proof that an error has been reported: only [`Context::error`] makes one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported(());

/// What paths and expressions may refer to, besides the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Visible {
    /// The data of the run.
    #[default]
    Run,
    /// The data of the run and `result`: in `set` and in the `output` of a step.
    Result,
    /// The data of the run and `error`: in the mapping of a fallback.
    Error,
    /// The data of the run, `error` and `attempt`: in `retry.when`.
    Attempt,
    /// The data of the run, `result` and `output`, which are the same: in the mapping of a compensation.
    Output,
    /// The metadata, and what `flo` says about the run: in the keys of `concurrency`, which are asked for before its first step.
    Start,
    /// Nothing: in `state`.
    Nothing,
    /// The record, and not even the input: in the `when` of a trigger, which is asked before there is a run.
    Record,
}

impl Visible {
    /// What must come first where little is visible, if `first` cannot.
    pub(super) fn why_refused(self, first: &str) -> Option<&'static str> {
        match (self, first) {
            (Self::Record, _) => Some("expected it to begin with `record` here"),
            (_, "input") | (Self::Start, "flo" | "meta") => None,
            (Self::Start, _) => {
                Some("expected it to begin with `$.input`, `$.meta` or `$.flo` here")
            }
            (Self::Nothing, _) => Some("expected it to begin with `$.input` here"),
            (Self::Run | Self::Result | Self::Error | Self::Attempt | Self::Output, _) => None,
        }
    }
}

/// What `error` stands for where things are visible, in the steps of a handler.
pub(super) fn sees_error(visible: Visible, handler: Option<Handler>) -> Option<Root> {
    match (visible, handler) {
        (Visible::Error | Visible::Attempt, _) => Some(Root::Error),
        (Visible::Run | Visible::Result | Visible::Output, Some(Handler::Error)) => {
            Some(Root::EndCause)
        }
        (
            Visible::Run
            | Visible::Result
            | Visible::Output
            | Visible::Start
            | Visible::Nothing
            | Visible::Record,
            _,
        ) => None,
    }
}

/// What `cancel` stands for where things are visible, in the steps of a handler.
pub(super) fn sees_cancel(visible: Visible, handler: Option<Handler>) -> Option<Root> {
    match (visible, handler) {
        (Visible::Start | Visible::Nothing | Visible::Record, _)
        | (_, Some(Handler::Error) | None) => None,
        (_, Some(Handler::Cancel)) => Some(Root::EndCause),
    }
}

/// The maximum of suggestions for one document; each may compare a thousand words.
const SUGGESTIONS_MAX: u32 = 100;

/// How long a step waits at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// In milliseconds.
    pub(super) ms: u64,
    pub(super) span: Span,
    /// Whether it is a step of a handler.
    pub(super) is_in_handler: bool,
}

/// The findings so far, and the names that the document defines.
#[derive(Debug, Default)]
pub(super) struct Context<'doc> {
    pub(super) names: Names<'doc>,
    pub(super) findings: Vec<Finding>,
    pub(super) references: Vec<Reference>,
    pub(super) expressions: expression::Total,
    /// The streams to which steps append records, and where the steps name them.
    pub(super) emitted: Vec<(StreamName, Span)>,
    /// How long steps wait at most, and where that is said.
    pub(super) waits: Vec<Wait>,
    /// What paths and expressions may refer to, besides the input.
    pub(super) visible: Visible,
    /// The block in whose scope they are resolved.
    block: Option<BlockIndex>,
    suggestions_count: u32,
}

impl<'doc> Context<'doc> {
    pub(super) fn error(&mut self, finding: Finding) -> Reported {
        debug_assert_eq!(finding.severity(), Severity::Error);
        self.findings.push(finding);
        Reported(())
    }

    /// Reports E100, the code of every error without a more specific one.
    pub(super) fn malformed(&mut self, span: Span, message: impl Into<String>) -> Reported {
        self.error(Finding::new(Code::E100, span, message))
    }

    pub(super) fn warn(&mut self, finding: Finding) {
        debug_assert_eq!(finding.severity(), Severity::Warning);
        self.findings.push(finding);
    }

    /// Reads something in which paths and expressions may refer to other things.
    pub(super) fn seeing<T>(&mut self, visible: Visible, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.visible, visible);
        let result = read(self);
        self.visible = before;
        result
    }

    /// Reads something whose paths and expressions are resolved in the scope of a block.
    pub(super) fn within<T>(&mut self, block: BlockIndex, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.block.replace(block);
        let result = read(self);
        self.block = before;
        result
    }

    /// The block in whose scope paths and expressions are resolved.
    pub(super) fn block(&self) -> BlockIndex {
        self.block.unwrap_or(BlockIndex::ROOT)
    }

    /// Notes how long a step waits at most (E521).
    pub(super) fn note_wait(&mut self, ms: u64, span: Span) {
        let is_in_handler = self.names.handler_around(self.block()).is_some();
        self.waits.push(Wait {
            ms,
            span,
            is_in_handler,
        });
    }

    /// Whether `error` stands for something here: in `onError`, too (W80).
    pub(super) fn sees_error(&self) -> Option<Root> {
        sees_error(self.visible, self.names.handler_around(self.block()))
    }

    /// What `cancel` stands for here: something in `onCancel` (W81).
    pub(super) fn sees_cancel(&self) -> Option<Root> {
        sees_cancel(self.visible, self.names.handler_around(self.block()))
    }

    /// The names of items and their indexes (W57).
    pub(super) fn items(&self) -> Vec<(String, Root)> {
        let around = self.names.loops_around(self.block());
        let mut items = Vec::new();
        if let Some(innermost) = around.first() {
            items.push(("item".to_owned(), Root::Item(innermost.step)));
            items.push(("index".to_owned(), Root::ItemIndex(innermost.step)));
        }
        for iteration in around {
            if let Some(name) = iteration.name {
                items.push((name.to_owned(), Root::Item(iteration.step)));
                items.push((format!("{name}_index"), Root::ItemIndex(iteration.step)));
            }
        }
        items
    }

    /// The candidate that `word` was probably meant to be.
    pub(super) fn nearest<'a>(
        &mut self,
        word: &str,
        candidates: impl Iterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if !self.may_suggest() {
            return None;
        }
        self.note_suggestion();
        suggest::nearest(word, candidates)
    }

    /// Whether another suggestion may be searched.
    pub(super) fn may_suggest(&self) -> bool {
        self.suggestions_count < SUGGESTIONS_MAX
    }

    pub(super) fn note_suggestion(&mut self) {
        self.suggestions_count += 1;
    }

    /// The step that `word` was probably meant to be.
    pub(super) fn nearest_step(&mut self, word: &str) -> Option<String> {
        self.nearest_name(word, |names| names.steps().map(str::to_owned).collect())
    }

    /// The target that `word` was probably meant to be.
    pub(super) fn nearest_target(&mut self, word: &str) -> Option<String> {
        self.nearest_name(word, |names| names.targets().map(str::to_owned).collect())
    }

    fn nearest_name(
        &mut self,
        word: &str,
        candidates: impl Fn(&Names<'doc>) -> Vec<String>,
    ) -> Option<String> {
        let candidates = match self.may_suggest() {
            true => candidates(&self.names),
            false => return None,
        };
        let nearest = self.nearest(word, candidates.iter().map(String::as_str));
        nearest.map(str::to_owned)
    }
}
