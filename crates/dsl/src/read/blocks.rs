//! The blocks of a document and their steps (W50), collected before anything that refers to a step is read.

use super::{
    Context, Field, Fields, Reported,
    names::{self, START},
};
use crate::{Code, Finding, Span, tree::Kind};
use flotilla_engine::{
    definition::{Block, BlockForm, BlockIndex, StepIndex},
    ids::StepName,
    limits::STEPS_MAX,
};

/// The blocks and the steps of a document, in the definition's order.
pub(super) struct Blocks<'doc> {
    pub(super) blocks: Vec<Block>,
    pub(super) steps: Vec<StepDraft<'doc>>,
    /// Whether all steps could be collected.
    pub(super) complete: Result<(), Reported>,
}

/// A step whose place is known, and whose fields are still to be read.
pub(super) struct StepDraft<'doc> {
    /// Its name as written, for findings.
    pub(super) label: &'doc str,
    /// Where its name is, or the step without a name.
    pub(super) span: Span,
    pub(super) name: Result<StepName, Reported>,
    pub(super) fields: Result<Fields<'doc>, Reported>,
    pub(super) block: BlockIndex,
    pub(super) form: BlockForm,
    /// The step after it in a list.
    pub(super) next: Option<StepIndex>,
}

/// Collects the workflow's own block: `start` and `steps`, or `steps` as a list.
pub(super) fn collect<'doc>(
    top: &mut Fields<'doc>,
    context: &mut Context<'doc>,
) -> Result<Blocks<'doc>, Reported> {
    let start = top.take(START, context);
    let steps = top.take("steps", context);
    let mut blocks = Blocks {
        blocks: Vec::new(),
        steps: Vec::new(),
        complete: Ok(()),
    };
    match steps {
        Some(steps) if matches!(steps.node.kind, Kind::Sequence(_)) => {
            blocks.add_list(start, &steps, context)?;
        }
        steps => blocks.add_graph(required(start, top.span, context), steps, context)?,
    }
    Ok(blocks)
}

/// The start step of the workflow's own block, if that is a graph (E103).
fn required<'doc>(
    start: Option<Field<'doc>>,
    span: Span,
    context: &mut Context<'doc>,
) -> Result<Field<'doc>, Reported> {
    let Some(field) = start else {
        let finding = Finding::new(
            Code::E103,
            span,
            "expected a start step at the top level, but it is missing",
        );
        let hint = "add `start:` with `run:` or `waitForSignal:`, or make `steps:` a list";
        return Err(context.error(finding.hint(hint)));
    };
    let is_empty = match &field.node.kind {
        Kind::Null => true,
        Kind::Mapping(entries) => entries.is_empty(),
        _ => false,
    };
    if is_empty {
        let finding = Finding::new(
            Code::E103,
            field.span(),
            "expected a start step, but it is empty",
        );
        return Err(context.error(finding));
    }
    Ok(field)
}

impl<'doc> Blocks<'doc> {
    /// Adds a block whose steps lead on only by transitions.
    fn add_graph(
        &mut self,
        start: Result<Field<'doc>, Reported>,
        steps: Option<Field<'doc>>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        let block = self.add(BlockForm::Graph);
        let others = steps.map_or(Ok(Vec::new()), |field| field.entries(context));
        let (others, complete) = match others {
            Ok(others) => (others, Ok(())),
            Err(reported) => (Vec::new(), Err(reported)),
        };
        self.complete = self.complete.and(complete);
        self.check_room(
            1 + others.len(),
            others.iter().map(|step| step.key_span),
            context,
        )?;
        let span = start.as_ref().map_or(Span::START, |field| field.key_span);
        let fields = start.and_then(|field| field.fields(context));
        self.steps.push(StepDraft {
            label: START,
            span,
            name: Ok(StepName::new(START).expect("`start` is a well-formed step name")),
            fields,
            block,
            form: BlockForm::Graph,
            next: None,
        });
        for step in others {
            let index = self.next_step();
            self.steps.push(StepDraft {
                label: step.key,
                span: step.key_span,
                name: names::add_step(step.key, step.key_span, index, context),
                fields: step.fields(context),
                block,
                form: BlockForm::Graph,
                next: None,
            });
        }
        Ok(())
    }

    /// Adds a block whose steps follow each other.
    fn add_list(
        &mut self,
        start: Option<Field<'doc>>,
        steps: &Field<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        if let Some(start) = start {
            let finding = Finding::new(
                Code::E510,
                start.key_span,
                "expected no `start` beside a list of steps, whose first one is the start step",
            );
            let hint = "move it to the top of the list, with a `name:`";
            self.complete = Err(context.error(finding.hint(hint)));
        }
        let items = steps.items(context)?;
        if items.is_empty() {
            let finding = Finding::new(
                Code::E510,
                steps.span(),
                "expected a list of steps, but it is empty",
            );
            let reported = context.error(finding);
            return self.add_graph(Err(reported), None, context);
        }
        let block = self.add(BlockForm::List);
        self.check_room(items.len(), items.iter().map(Field::span), context)?;
        let last = items.len() - 1;
        for (position, item) in items.iter().enumerate() {
            let index = self.next_step();
            let mut fields = item.fields(context);
            let name = fields
                .as_mut()
                .map_err(|reported| *reported)
                .and_then(|fields| fields.require(&["name"], context));
            let name = name.and_then(|field| Ok((field.string(context)?, field.span())));
            let (label, span) = name.unwrap_or(("", item.span()));
            self.steps.push(StepDraft {
                label,
                span,
                name: name.and_then(|(name, span)| names::add_step(name, span, index, context)),
                fields,
                block,
                form: BlockForm::List,
                next: (position < last).then(|| StepIndex(index.0 + 1)),
            });
        }
        Ok(())
    }

    /// Adds a block that begins with the next step; returns its index.
    fn add(&mut self, form: BlockForm) -> BlockIndex {
        let index = BlockIndex(narrow(self.blocks.len()));
        let start = self.next_step();
        self.blocks.push(Block { form, start });
        index
    }

    fn next_step(&self) -> StepIndex {
        StepIndex(narrow(self.steps.len()))
    }

    /// Refuses more steps than a definition may have, at the first one that is too many.
    fn check_room(
        &self,
        added: usize,
        spans: impl DoubleEndedIterator<Item = Span>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        let excess = (self.steps.len() + added).saturating_sub(STEPS_MAX);
        match excess.checked_sub(1).and_then(|back| spans.rev().nth(back)) {
            None => Ok(()),
            Some(first) => {
                let message = format!(
                    "expected at most {STEPS_MAX} steps or terminals, but this is one more"
                );
                Err(context.malformed(first, message))
            }
        }
    }
}

fn narrow(position: usize) -> u16 {
    u16::try_from(position).expect("a definition with more steps is refused")
}
