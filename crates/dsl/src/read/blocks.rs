//! The blocks of a document and their steps (W50), collected before anything that refers to a step is read.

use super::{
    Context, Field, Fields, Reported,
    for_each::{self, ForEachDraft},
    names::{self, Handler, NewStep, START},
    parallel::{self, ParallelDraft},
};
use crate::{Code, Finding, Span, tree::Kind};
use flotilla_engine::{
    definition::{Block, BlockForm, BlockIndex, Branch, StepIndex},
    ids::StepName,
    limits::{ACTIVE_STEPS_MAX, NESTED_BLOCKS_MAX, STEPS_MAX},
};
use std::borrow::Cow;
use std::collections::VecDeque;

/// The blocks and the steps of a document, in the definition's order: the workflow's own block first, then those that
/// its steps open, and so on.
pub(super) struct Blocks<'doc> {
    pub(super) blocks: Vec<BlockDraft<'doc>>,
    pub(super) steps: Vec<StepDraft<'doc>>,
    /// Whether all blocks and steps could be collected.
    pub(super) complete: Result<(), Reported>,
    /// The nested blocks whose steps are still to be collected.
    open: VecDeque<OpenBlock<'doc>>,
}

/// A block whose steps are known.
pub(super) struct BlockDraft<'doc> {
    form: BlockForm,
    pub(super) start: StepIndex,
    opener: Option<StepIndex>,
    /// How many blocks are around it.
    depth: usize,
    /// Its `output`.
    output: Option<Field<'doc>>,
}

/// A step whose place is known, and whose fields are still to be read.
pub(super) struct StepDraft<'doc> {
    /// Its name as written, for findings.
    pub(super) label: Cow<'doc, str>,
    /// Where its name is, or the step without a name.
    pub(super) span: Span,
    pub(super) name: Result<StepName, Reported>,
    pub(super) fields: Result<Fields<'doc>, Reported>,
    pub(super) parallel: Option<Result<ParallelDraft<'doc>, Reported>>,
    /// Its `block`.
    pub(super) body: Option<Result<Branch, Reported>>,
    pub(super) for_each: Option<Result<ForEachDraft<'doc>, Reported>>,
    pub(super) block: BlockIndex,
    pub(super) form: BlockForm,
    /// The step after it in a list.
    pub(super) next: Option<StepIndex>,
}

/// A nested block, as it stands in the document.
struct OpenBlock<'doc> {
    index: BlockIndex,
    /// Its value.
    field: Field<'doc>,
    /// Its name, if that could be made known.
    name: Result<Cow<'doc, str>, Reported>,
}

/// A step to collect.
struct FoundStep<'doc> {
    /// Its name, unless there is none.
    name: Result<(Cow<'doc, str>, Span), Reported>,
    /// Where the step is.
    span: Span,
    fields: Result<Fields<'doc>, Reported>,
    /// The step after it in a list.
    next: Option<StepIndex>,
    /// The name of the nested block that it begins.
    begun: Option<Cow<'doc, str>>,
}

/// The steps of a graph.
struct Graph<'doc> {
    start: Result<FoundStep<'doc>, Reported>,
    steps: Option<Field<'doc>>,
}

/// Collects the blocks, from the workflow's own block: `start` and `steps`, or `steps` as a list.
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
        open: VecDeque::new(),
    };
    let own = blocks.add(None, context);
    match steps {
        Some(steps) if is_list(&steps) => {
            blocks.refuse_start(start, context);
            blocks.add_list(own, &steps, context)?;
        }
        steps => {
            let start = required(start, top.span, context).map(|field| FoundStep {
                name: Ok((START.into(), field.key_span)),
                span: field.key_span,
                fields: field.fields(context),
                next: None,
                begun: None,
            });
            blocks.add_graph(own, Graph { start, steps }, context)?;
        }
    }
    blocks.add_handlers(top, context)?;
    while let Some(open) = blocks.open.pop_front() {
        blocks.add_nested(open, context)?;
    }
    blocks.check_active_steps(context);
    Ok(blocks)
}

fn is_list(field: &Field<'_>) -> bool {
    matches!(field.node.kind, Kind::Sequence(_))
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
    /// The definition's blocks; their mappings are read now that all names are known.
    pub(super) fn read(
        drafts: Vec<BlockDraft<'doc>>,
        context: &mut Context<'doc>,
    ) -> Result<Vec<Block>, Reported> {
        let read = |(position, draft): (u16, BlockDraft<'doc>)| {
            let output = draft.output.as_ref();
            let output = output.map(|field| {
                let read = |context: &mut Context<'doc>| super::template::read(field, context);
                context.within(BlockIndex(position), read)
            });
            Ok(Block {
                form: draft.form,
                start: draft.start,
                opener: draft.opener,
                output: output.transpose()?,
            })
        };
        let drafts = (0..).zip(drafts);
        let blocks: Vec<Result<Block, Reported>> = drafts.map(read).collect();
        blocks.into_iter().collect()
    }

    /// For each step the first steps of its branches.
    pub(super) fn first_steps(&self) -> Vec<Vec<StepIndex>> {
        let mut first_steps = vec![Vec::new(); self.steps.len()];
        for block in &self.blocks {
            if let Some(opener) = block.opener {
                first_steps[opener.position()].push(block.start);
            }
        }
        first_steps
    }

    /// Makes room for a block whose steps come later.
    fn add(&mut self, opener: Option<StepIndex>, context: &mut Context<'doc>) -> BlockIndex {
        context.names.add_block(opener);
        let index = BlockIndex(narrow(self.blocks.len()));
        let around = opener.map(|opener| self.steps[opener.position()].block);
        self.blocks.push(BlockDraft {
            form: BlockForm::Graph,
            start: StepIndex::START,
            opener,
            depth: around.map_or(0, |around| self.blocks[around.position()].depth + 1),
            output: None,
        });
        index
    }

    /// Makes room for a nested block that the step collected last opens under a name.
    pub(super) fn open(
        &mut self,
        field: Field<'doc>,
        name: Cow<'doc, str>,
        context: &mut Context<'doc>,
    ) -> Result<Branch, Reported> {
        let valid = names::add_branch(name.clone(), field.key_span, context);
        let name = valid.as_ref().map(|_| name).map_err(|reported| *reported);
        let block = self.open_named(field, name, context);
        Ok(Branch {
            name: valid?,
            block: block?,
        })
    }

    fn open_named(
        &mut self,
        field: Field<'doc>,
        name: Result<Cow<'doc, str>, Reported>,
        context: &mut Context<'doc>,
    ) -> Result<BlockIndex, Reported> {
        if self.blocks.len() > STEPS_MAX {
            // Each block has a step.
            return Err(too_many_steps(field.key_span, context));
        }
        let opener = StepIndex(narrow(self.steps.len() - 1));
        let index = self.add(Some(opener), context);
        if self.blocks[index.position()].depth > NESTED_BLOCKS_MAX {
            let message =
                format!("expected at most {NESTED_BLOCKS_MAX} nested blocks, but this is one more");
            let finding = Finding::new(Code::E520, field.key_span, message);
            return Err(context.error(finding));
        }
        self.open.push_back(OpenBlock { index, field, name });
        Ok(index)
    }

    /// Adds the steps of a nested block: a list, a graph, or a single step.
    fn add_nested(
        &mut self,
        open: OpenBlock<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        let OpenBlock { index, field, name } = open;
        if is_list(&field) {
            return self.add_list(index, &field, context);
        }
        if !matches!(field.node.kind, Kind::Mapping(_)) {
            return self.add_unknown(index, &field, context);
        }
        let mut fields = field.fields(context)?;
        if !fields.has(START) && !fields.has("steps") {
            let step = first_step(&field, name, Ok(fields), context);
            return self.add_single(index, step, context);
        }
        let (start, steps) = (fields.take(START, context), fields.take("steps", context));
        self.blocks[index.position()].output = fields.take("output", context);
        let known = fields.finish(context);
        self.complete = self.complete.and(known);
        match (start, steps) {
            (start, Some(steps)) if is_list(&steps) => {
                self.refuse_start(start, context);
                self.add_list(index, &steps, context)
            }
            (Some(start), steps) => {
                let fields = start.fields(context);
                let start = Ok(first_step(&field, name, fields, context));
                self.add_graph(index, Graph { start, steps }, context)
            }
            (None, steps) => {
                let message = format!(
                    "expected {} to have a start step, but it is missing",
                    field.place
                );
                let finding = Finding::new(Code::E510, field.key_span, message);
                let hint = "add `start:`, or make `steps:` a list";
                let start = Err(context.error(finding.hint(hint)));
                self.add_graph(index, Graph { start, steps }, context)
            }
        }
    }

    /// Adds a block of which nothing is known, so that its index stays valid.
    fn add_unknown(
        &mut self,
        block: BlockIndex,
        field: &Field<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        let hint = "a block is a step, a list of steps, or a mapping with `start` and `steps`";
        let finding = field.mismatch_finding(Code::E510, "a block");
        let reported = context.error(finding.hint(hint));
        self.add_graph(block, Graph::unknown(reported), context)
    }

    /// Adds the only step of a block.
    fn add_single(
        &mut self,
        block: BlockIndex,
        step: FoundStep<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        self.begin(block, BlockForm::Single);
        self.check_room([step.span].into_iter(), context)?;
        self.add_step(block, step, context);
        Ok(())
    }

    /// Adds the steps of a block in which only transitions lead on.
    fn add_graph(
        &mut self,
        block: BlockIndex,
        graph: Graph<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        self.begin(block, BlockForm::Graph);
        let others = graph
            .steps
            .map_or(Ok(Vec::new()), |field| field.entries(context));
        let others = others.unwrap_or_else(|reported| {
            self.complete = Err(reported);
            Vec::new()
        });
        let start = graph.start.unwrap_or_else(|reported| FoundStep {
            name: Err(reported),
            span: Span::START,
            fields: Err(reported),
            next: None,
            begun: None,
        });
        let spans = others.iter().map(|step| step.key_span);
        self.check_room([start.span].into_iter().chain(spans), context)?;
        self.add_step(block, start, context);
        for step in others {
            let step = FoundStep {
                name: Ok((step.key.into(), step.key_span)),
                span: step.key_span,
                fields: step.fields(context),
                next: None,
                begun: None,
            };
            self.add_step(block, step, context);
        }
        Ok(())
    }

    /// Refuses a start step beside a list (E510).
    fn refuse_start(&mut self, start: Option<Field<'doc>>, context: &mut Context<'doc>) {
        if let Some(start) = start {
            let finding = Finding::new(
                Code::E510,
                start.key_span,
                "expected no `start` beside a list of steps, whose first one is the start step",
            );
            let hint = "move it to the top of the list, with a `name:`";
            self.complete = Err(context.error(finding.hint(hint)));
        }
    }

    /// Adds the steps of a block that follow each other.
    fn add_list(
        &mut self,
        block: BlockIndex,
        steps: &Field<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        let items = steps.items(context)?;
        if items.is_empty() {
            let finding = Finding::new(
                Code::E510,
                steps.span(),
                "expected a list of steps, but it is empty",
            );
            let reported = context.error(finding);
            return self.add_graph(block, Graph::unknown(reported), context);
        }
        self.begin(block, BlockForm::List);
        self.check_room(items.iter().map(Field::span), context)?;
        let last = items.len() - 1;
        for (position, item) in items.iter().enumerate() {
            let mut fields = item.fields(context);
            let name = fields.as_mut().map_err(|reported| *reported);
            let name = name.and_then(|fields| fields.require(&["name"], context));
            let step = FoundStep {
                name: name.and_then(|field| Ok((field.string(context)?.into(), field.span()))),
                span: item.span(),
                fields,
                next: (position < last).then(|| StepIndex(self.next_step().0 + 1)),
                begun: None,
            };
            self.add_step(block, step, context);
        }
        Ok(())
    }

    /// Adds the handlers of the workflow, as block steps to which nothing leads.
    fn add_handlers(
        &mut self,
        top: &mut Fields<'doc>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        for (key, handler) in [("onError", Handler::Error), ("onCancel", Handler::Cancel)] {
            let Some(field) = top.take(key, context) else {
                continue;
            };
            self.check_room([field.key_span].into_iter(), context)?;
            let index = self.next_step();
            let new = NewStep {
                name: key.into(),
                span: field.key_span,
                index,
                block: BlockIndex::ROOT,
                begun: None,
            };
            let name = names::add_step(new, context);
            context.names.add_handler(index, handler);
            self.steps.push(StepDraft {
                label: key.into(),
                span: field.key_span,
                name,
                fields: Ok(Fields::new(key.to_owned(), field.key_span, &[])),
                parallel: None,
                body: None,
                for_each: None,
                block: BlockIndex::ROOT,
                form: BlockForm::Single,
                next: None,
            });
            let body = self.open(field, format!("{key}-block").into(), context);
            self.steps[index.position()].body = Some(body);
        }
        Ok(())
    }

    /// The next step is the first one of the block.
    fn begin(&mut self, block: BlockIndex, form: BlockForm) {
        let start = self.next_step();
        let draft = &mut self.blocks[block.position()];
        draft.form = form;
        draft.start = start;
    }

    fn add_step(&mut self, block: BlockIndex, step: FoundStep<'doc>, context: &mut Context<'doc>) {
        let index = self.next_step();
        let (label, span, name) = match step.name {
            Ok((label, span)) => {
                let new = NewStep {
                    name: label.clone(),
                    span,
                    index,
                    block,
                    begun: step.begun,
                };
                (label, span, names::add_step(new, context))
            }
            Err(reported) => {
                names::add_unnamed(block, context);
                ("".into(), step.span, Err(reported))
            }
        };
        let mut fields = step.fields;
        let mut opening = |key| {
            let fields = fields.as_mut().ok();
            fields.and_then(|fields| fields.take(key, context))
        };
        let (parallel, body) = (opening("parallel"), opening("block"));
        let for_each = opening("forEach");
        let body = body.map(|field| (field, format!("{label}-block").into()));
        self.steps.push(StepDraft {
            label,
            span,
            name,
            fields,
            parallel: None,
            body: None,
            for_each: None,
            block,
            form: self.blocks[block.position()].form,
            next: step.next,
        });
        if let Some(field) = parallel {
            let draft = parallel::collect(&field, self, context);
            self.steps[index.position()].parallel = Some(draft);
        }
        if let Some((field, name)) = body {
            let body = self.open(field, name, context);
            self.steps[index.position()].body = Some(body);
        }
        if let Some(field) = for_each {
            let draft = for_each::collect(&field, index, self, context);
            self.steps[index.position()].for_each = Some(draft);
        }
    }

    fn next_step(&self) -> StepIndex {
        StepIndex(narrow(self.steps.len()))
    }

    /// Refuses more steps than a definition may have, at the first one that is too many.
    fn check_room(
        &self,
        mut spans: impl Iterator<Item = Span>,
        context: &mut Context<'doc>,
    ) -> Result<(), Reported> {
        match spans.nth(STEPS_MAX - self.steps.len()) {
            None => Ok(()),
            Some(first) => Err(too_many_steps(first, context)),
        }
    }

    /// Refuses a definition of which more steps could be active at the same time than a run may have (E520).
    fn check_active_steps(&mut self, context: &mut Context<'doc>) {
        let mut of_blocks = vec![0_usize; self.blocks.len()];
        // A block comes after the one whose step opens it.
        for step in self.steps.iter().rev() {
            let below = opened(step).map(|branch| of_blocks[branch.block.position()]);
            let below = instances(step).saturating_mul(below.sum::<usize>());
            let active = below.saturating_add(1);
            let most = &mut of_blocks[step.block.position()];
            *most = (*most).max(active);
            if active > ACTIVE_STEPS_MAX && self.complete.is_ok() {
                let message = format!(
                    "expected at most {ACTIVE_STEPS_MAX} active steps at the same time, but this step and its \
                     blocks can have {active}"
                );
                let finding = Finding::new(Code::E520, step.span, message);
                self.complete = Err(context.error(finding));
            }
        }
    }
}

/// The blocks that a step opens.
fn opened<'step>(step: &'step StepDraft<'_>) -> impl Iterator<Item = &'step Branch> {
    let parallel = step.parallel.as_ref().and_then(|draft| draft.as_ref().ok());
    let branches = parallel.into_iter().flat_map(|draft| &draft.branches);
    let body = step.body.as_ref().and_then(|body| body.as_ref().ok());
    let of_items = step.for_each.as_ref().and_then(|draft| draft.as_ref().ok());
    let of_items = of_items.map(|draft| &draft.body);
    branches.chain(body).chain(of_items)
}

/// How many instances of the blocks that a step opens run at the same time.
fn instances(step: &StepDraft<'_>) -> usize {
    match &step.for_each {
        Some(Ok(draft)) => draft.concurrency.map_or(1, usize::from),
        Some(Err(_)) | None => 1,
    }
}

/// The step that begins a nested block, with the block's name unless it has its own.
fn first_step<'doc>(
    block: &Field<'doc>,
    name: Result<Cow<'doc, str>, Reported>,
    mut fields: Result<Fields<'doc>, Reported>,
    context: &mut Context<'doc>,
) -> FoundStep<'doc> {
    let own = fields.as_mut().ok();
    let own = own.and_then(|fields| fields.take("name", context));
    let begun = name.as_ref().ok().cloned();
    let name = match own {
        Some(own) => own.string(context).map(|text| (text.into(), own.span())),
        None => name.map(|name| (name, block.key_span)),
    };
    FoundStep {
        name,
        span: block.key_span,
        fields,
        next: None,
        begun,
    }
}

impl Graph<'_> {
    /// A block of which nothing could be read.
    fn unknown(reported: Reported) -> Self {
        Self {
            start: Err(reported),
            steps: None,
        }
    }
}

fn too_many_steps(span: Span, context: &mut Context<'_>) -> Reported {
    let message = format!("expected at most {STEPS_MAX} steps or terminals, but this is one more");
    context.malformed(span, message)
}

fn narrow(position: usize) -> u16 {
    u16::try_from(position).expect("a definition with more steps is refused")
}
