//! The key that says what a step does.

use super::super::{
    Context, Field, Fields, Reported, for_each::ForEachDraft, parallel::ParallelDraft,
    transitions::OutcomeSource,
};
use flotilla_engine::definition::Branch;

/// A key that says what a step does.
pub(super) enum KindField<'doc> {
    Run(Field<'doc>),
    Wait(Field<'doc>),
    Parallel(Result<ParallelDraft<'doc>, Reported>),
    Block(Result<Branch, Reported>),
    ForEach(Result<ForEachDraft<'doc>, Reported>),
    Switch(Field<'doc>),
    Emit(Field<'doc>),
    Timer(Field<'doc>),
    Approval(Field<'doc>),
    /// Only `set`.
    Set,
}

impl<'doc> KindField<'doc> {
    /// The kind keys of a step, with those in `opening`.
    pub(super) fn all(
        opening: [Option<Self>; 3],
        fields: &mut Fields<'doc>,
        context: &mut Context<'doc>,
    ) -> Vec<Self> {
        let run = fields.take("run", context).map(Self::Run);
        let wait = fields.take("waitForSignal", context).map(Self::Wait);
        let arms = fields.take_any(&["switch", "arms"], context);
        let emit = fields.take("emit", context).map(Self::Emit);
        let timer = fields.take("wait", context).map(Self::Timer);
        let before = [run, wait].into_iter();
        let approval = fields.take("approval", context).map(Self::Approval);
        let after = [arms.map(Self::Switch), emit, timer, approval];
        before.chain(opening).chain(after).flatten().collect()
    }

    /// All keys.
    pub(super) const KEYS: [&'static str; 10] = [
        "`run`",
        "`waitForSignal`",
        "`parallel`",
        "`block`",
        "`forEach`",
        "`switch`",
        "`emit`",
        "`wait`",
        "`approval`",
        "`set`",
    ];

    pub(super) fn key(&self) -> &'static str {
        let [
            run,
            wait,
            parallel,
            block,
            for_each,
            switch,
            emit,
            timer,
            approval,
            set,
        ] = Self::KEYS;
        match self {
            Self::Run(_) => run,
            Self::Wait(_) => wait,
            Self::Parallel(_) => parallel,
            Self::Block(_) => block,
            Self::ForEach(_) => for_each,
            Self::Switch(_) => switch,
            Self::Emit(_) => emit,
            Self::Timer(_) => timer,
            Self::Approval(_) => approval,
            Self::Set => set,
        }
    }

    /// Whether `retry` belongs to it.
    pub(super) fn takes_retry(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Block(_))
    }

    /// Whether it can wait for something other than blocks.
    pub(super) fn waits(&self) -> bool {
        match self {
            Self::Run(_) | Self::Wait(_) | Self::Timer(_) | Self::Approval(_) => true,
            Self::Parallel(_)
            | Self::Block(_)
            | Self::ForEach(_)
            | Self::Switch(_)
            | Self::Emit(_)
            | Self::Set => false,
        }
    }

    /// The outcomes with which it may end, where they do not depend on a target or a block.
    pub(super) fn possible_outcomes(&self, has_default: bool) -> Option<&'static [&'static str]> {
        match self {
            Self::Run(_) | Self::Parallel(_) | Self::Block(_) => None,
            Self::ForEach(_) | Self::Wait(_) => Some(&["success", "failure", "timeout", "skipped"]),
            Self::Switch(_) if has_default => Some(&["success", "failure", "skipped"]),
            Self::Switch(_) => Some(&["success", "failure", "skipped", "no_match"]),
            Self::Emit(_) | Self::Timer(_) | Self::Set => Some(&["success", "failure", "skipped"]),
            Self::Approval(_) => Some(&[
                "approved", "rejected", "success", "failure", "timeout", "skipped",
            ]),
        }
    }

    /// What gives a step that succeeds its outcome.
    pub(super) fn outcome_source(&self) -> OutcomeSource {
        match self {
            Self::Run(_) => OutcomeSource::Target,
            Self::Block(_) => OutcomeSource::Block,
            Self::Parallel(Ok(parallel)) if parallel.has_join() => OutcomeSource::Block,
            _ => OutcomeSource::Nothing,
        }
    }

    /// Whether it opens blocks.
    pub(super) fn opens_blocks(&self) -> bool {
        matches!(self, Self::Parallel(_) | Self::Block(_) | Self::ForEach(_))
    }

    /// Completes "since it …".
    pub(super) fn what_the_step_does(&self) -> &'static str {
        match self {
            Self::Run(_) => "has a target",
            Self::Wait(_) => "waits for a signal",
            Self::Parallel(_) => "has branches",
            Self::Block(_) => "has a block",
            Self::ForEach(_) => "iterates over items",
            Self::Switch(_) => "is a switch",
            Self::Emit(_) => "appends a record",
            Self::Timer(_) => "waits for a time",
            Self::Approval(_) => "waits for a decision",
            Self::Set => "only sets state",
        }
    }
}
