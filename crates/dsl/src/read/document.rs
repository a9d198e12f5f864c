//! Reads the top level of a definition.

use super::{
    Context, Field, Fields, Reported, attributes,
    blocks::{self, Blocks},
    concurrency, defaults, exclusion, graph,
    metadata::{self, Metadata},
    names::{self, Handler},
    output, plan, schedule, state, step, terminals, trigger,
};
use crate::tree::Node;
use crate::{Code, Finding};
use flotilla_engine::{
    definition::{
        Block, ConcurrencyLimit, Definition, DefinitionExtensions, LockSource, Step, StepKind,
        Template, Trigger, note_repeats,
    },
    limits,
};

/// Reads the whole document.
pub(super) fn read<'doc>(
    root: &'doc Node,
    context: &mut Context<'doc>,
) -> Result<Definition, Reported> {
    let mut fields = Fields::root(root, context)?;
    let metadata = metadata::read(&mut fields, context);
    let sections = Sections::take(&mut fields, context);
    let blocks = blocks::collect(&mut fields, context);
    let keys_known = fields.finish(context);

    let terminals = entries(sections.terminals, context);
    let plans = entries(sections.plans, context);
    let terminal_fields = Most::steps().of(terminals.as_deref(), context)?;
    let plan_fields = Most::plans().of(plans.as_deref(), context)?;
    // Collects all names before it reads anything that may refer to them.
    let terminal_names = names::collect_terminals(terminal_fields, context);
    let plan_names = names::collect_plans(plan_fields, context);

    let plans_read = all(plan_fields, plan_names, |field, name| {
        plan::read(field, name, context)
    });
    let handler_timeout_ms = handler_timeout_ms(metadata.as_ref().ok());
    let blocks_read = blocks_and_steps(blocks?, terminal_fields, handler_timeout_ms, context);
    let terminals_read = all(terminal_fields, terminal_names, |field, name| {
        terminals::read(field, name, context)
    });
    let state = optional(sections.state, context, state::read);
    let output = optional(sections.output, context, output::of_run);
    let conflicts = Conflicts::read(sections.conflicts, context);
    let defaults = optional(sections.defaults, context, defaults::read);
    let attributes = optional(sections.attributes, context, attributes::read);
    let known = metadata.as_ref().ok();
    let input = known.map(|metadata| &metadata.input);
    let schedule = optional(sections.schedule, context, |field, context| {
        schedule::read(field, input, context)
    });
    let triggers = trigger::read_all(sections.trigger, sections.triggers, known, context);
    lint_whole(known, triggers.as_deref().unwrap_or_default(), context);
    context.references.sort_by_key(|reference| reference.span);

    keys_known.and(terminals.map(drop)).and(plans.map(drop))?;
    let metadata = metadata?;
    let (blocks, steps) = blocks_read?;
    Ok(Definition {
        name: metadata.name,
        version: metadata.version,
        description: metadata.description,
        metadata: metadata.metadata,
        namespace: metadata.namespace,
        idempotency: metadata.idempotency,
        retention_ms: metadata.retention_ms,
        timeout_ms: metadata.timeout_ms,
        max_steps: metadata.max_steps,
        loop_warn_after: metadata.loop_warn_after,
        retry_run: metadata.retry_run,
        concurrency: conflicts.concurrency?.unwrap_or_default(),
        target: conflicts.target?,
        locks: conflicts.locks?.unwrap_or_default(),
        input_schema: metadata.input.schema,
        input_defaults: metadata.input.defaults,
        state: state?,
        output: output?,
        defaults: defaults?.unwrap_or_default(),
        on_error: context.names.handler(Handler::Error),
        on_cancel: context.names.handler(Handler::Cancel),
        terminals: terminals_read?,
        search_attributes: attributes?.unwrap_or_default(),
        schedule: schedule?,
        triggers: triggers?,
        plans: plans_read?,
        ends: context.names.take_ends(),
        blocks,
        steps,
        extensions: DefinitionExtensions::default(),
    })
}

/// How long handlers take at most, in milliseconds; the default for a document whose metadata is invalid.
fn handler_timeout_ms(metadata: Option<&Metadata>) -> u64 {
    metadata.map_or(limits::HANDLER_MS_DEFAULT, |metadata| {
        metadata.handler_timeout_ms
    })
}

/// Warns of what can only be seen once the whole definition is read.
fn lint_whole(metadata: Option<&Metadata>, triggers: &[Trigger], context: &mut Context<'_>) {
    let namespace = metadata.and_then(|metadata| metadata.namespace.as_ref());
    trigger::warn_emits(triggers, namespace, context);
    lint_waits(metadata, context);
}

/// E521 for waits and timeouts that are longer than the run may take.
fn lint_waits(metadata: Option<&Metadata>, context: &mut Context<'_>) {
    let of_run = metadata.and_then(|metadata| metadata.timeout_ms);
    let of_handlers = metadata.map(|metadata| metadata.handler_timeout_ms);
    for wait in std::mem::take(&mut context.waits) {
        let (limit_ms, what) = match wait.is_in_handler {
            true => (of_handlers, "`handlerTimeout`"),
            false => (of_run, "the workflow timeout"),
        };
        if let Some(limit_ms) = limit_ms.filter(|limit_ms| wait.ms > *limit_ms) {
            let message = format!(
                "expected at most the {limit_ms} ms of {what}, but this can take {} ms",
                wait.ms
            );
            let finding = Finding::new(Code::E521, wait.span, message);
            context.warn(finding.hint(format!("shorten it, or raise {what}")));
        }
    }
}

/// Reads the steps of all blocks, and checks the graphs that they form.
fn blocks_and_steps<'doc>(
    blocks: Blocks<'doc>,
    terminals: &[Field<'doc>],
    handler_timeout_ms: u64,
    context: &mut Context<'doc>,
) -> Result<(Vec<Block>, Vec<Step>), Reported> {
    let first_steps = blocks.first_steps();
    let handlers = context.names.handlers();
    let mut outlines = Vec::with_capacity(blocks.steps.len());
    let steps: Vec<Result<Step, Reported>> = blocks
        .steps
        .into_iter()
        .zip(first_steps)
        .map(|(draft, opens)| {
            let block = draft.block;
            let read = |context: &mut Context<'doc>| step::read(draft, context);
            let (step, mut outline) = context.within(block, read);
            outline.opens = opens;
            outline.is_handler = handlers
                .iter()
                .any(|step| step.position() == outlines.len());
            outlines.push(outline);
            step
        })
        .collect();
    graph::check(&outlines, terminals, context);
    let read = Blocks::read(blocks.blocks, context);
    blocks.complete?;
    let mut steps: Vec<Step> = steps.into_iter().collect::<Result<_, _>>()?;
    note_repeats(&mut steps);
    for handler in handlers {
        if let StepKind::Block(handler) = &mut steps[handler.position()].kind {
            handler.timeout_ms = Some(handler_timeout_ms);
        }
    }
    Ok((read?, steps))
}

/// The sections of the top level beside the metadata and the steps.
struct Sections<'doc> {
    output: Option<Field<'doc>>,
    defaults: Option<Field<'doc>>,
    state: Option<Field<'doc>>,
    conflicts: ConflictSections<'doc>,
    terminals: Option<Field<'doc>>,
    attributes: Option<Field<'doc>>,
    schedule: Option<Field<'doc>>,
    trigger: Option<Field<'doc>>,
    triggers: Option<Field<'doc>>,
    plans: Option<Field<'doc>>,
}

impl<'doc> Sections<'doc> {
    fn take(fields: &mut Fields<'doc>, context: &mut Context<'doc>) -> Self {
        Self {
            output: fields.take("output", context),
            defaults: fields.take("defaults", context),
            state: fields.take("state", context),
            conflicts: ConflictSections {
                concurrency: fields.take("concurrency", context),
                target: fields.take("target", context),
                locks: fields.take("locks", context),
            },
            terminals: fields.take("terminals", context),
            attributes: fields.take("searchAttributes", context),
            schedule: fields.take("schedule", context),
            trigger: fields.take("trigger", context),
            triggers: fields.take("triggers", context),
            plans: fields.take("plans", context),
        }
    }
}

/// The sections that say which runs may be open at the same time.
struct ConflictSections<'doc> {
    concurrency: Option<Field<'doc>>,
    target: Option<Field<'doc>>,
    locks: Option<Field<'doc>>,
}

/// What these sections say.
struct Conflicts {
    concurrency: Result<Option<Vec<ConcurrencyLimit>>, Reported>,
    target: Result<Option<Template>, Reported>,
    locks: Result<Option<Vec<LockSource>>, Reported>,
}

impl Conflicts {
    fn read<'doc>(sections: ConflictSections<'doc>, context: &mut Context<'doc>) -> Self {
        Self {
            concurrency: optional(sections.concurrency, context, concurrency::read),
            target: optional(sections.target, context, exclusion::target),
            locks: optional(sections.locks, context, exclusion::locks),
        }
    }
}

/// The entries of an optional block.
fn entries<'doc>(
    field: Option<Field<'doc>>,
    context: &mut Context<'doc>,
) -> Result<Vec<Field<'doc>>, Reported> {
    field.map_or(Ok(Vec::new()), |field| field.entries(context))
}

/// The limit of a block.
struct Most {
    /// The number of its entries.
    entries_max: usize,
    /// The limit in the finding.
    what: String,
}

impl Most {
    fn steps() -> Self {
        Self {
            // The start step is one of the steps.
            entries_max: limits::STEPS_MAX - 1,
            what: format!("{} steps or terminals", limits::STEPS_MAX),
        }
    }

    fn plans() -> Self {
        Self {
            entries_max: limits::PLANS_MAX,
            what: format!("{} plans", limits::PLANS_MAX),
        }
    }

    /// The entries of a block, unless there are more than it may have. A malformed block counts as empty.
    fn of<'fields, 'doc>(
        &self,
        fields: Result<&'fields [Field<'doc>], &Reported>,
        context: &mut Context<'doc>,
    ) -> Result<&'fields [Field<'doc>], Reported> {
        let fields = fields.unwrap_or_default();
        match fields.get(self.entries_max) {
            None => Ok(fields),
            Some(first) => {
                let message = format!("expected at most {}, but this is one more", self.what);
                Err(context.malformed(first.key_span, message))
            }
        }
    }
}

/// Reads every named field, and continues after those that fail.
fn all<'doc, N, T>(
    fields: &[Field<'doc>],
    names: Vec<Result<N, Reported>>,
    mut read: impl FnMut(&Field<'doc>, Result<N, Reported>) -> Result<T, Reported>,
) -> Result<Vec<T>, Reported> {
    let results: Vec<Result<T, Reported>> = fields
        .iter()
        .zip(names)
        .map(|(field, name)| read(field, name))
        .collect();
    results.into_iter().collect()
}

fn optional<'doc, T>(
    field: Option<Field<'doc>>,
    context: &mut Context<'doc>,
    read: impl FnOnce(&Field<'doc>, &mut Context<'doc>) -> Result<T, Reported>,
) -> Result<Option<T>, Reported> {
    field.map(|field| read(&field, context)).transpose()
}
