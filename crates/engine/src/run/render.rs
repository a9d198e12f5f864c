//! Rendering: input mappings, outputs and search attributes from paths (W15, W22).
//!
//! All paths into one payload are resolved in one pass over it. A mapping therefore costs what it reads and writes, not
//! that multiplied by its number of paths (design rule 13).

use super::evaluation::Evaluation;
use super::failure::{self, failed};
use super::outcome::name;
use super::{state, visible};
use crate::definition::{Part, Path, Root, RunFact, Segment, StepIndex, Template};
use crate::ids::ScopeNumber;
use crate::json::{Json, Paths};
use crate::limits::{MAPPING_READ_BYTES_MAX, PAYLOAD_BYTES_MAX, SHARED_BYTES_MIN, SHARED_PART_MIN};
use crate::message::cut;
use crate::store::StoreError;
use crate::tables::{Items, PayloadPart, PayloadRef, StoredPayload, TargetResult, join_parts};
use crate::turn::{LoadedRun, Turn};
use std::ops::Range;

/// From where data is seen.
#[derive(Clone, Copy)]
pub(super) struct DataContext {
    /// The scope.
    pub(super) scope: ScopeNumber,
    /// What `$.result` is, where it means something.
    pub(super) result: Option<PayloadRef>,
    /// The attempt that has ended, where its error or number can be read.
    pub(super) last_attempt: Option<LastAttempt>,
}

/// The last attempt at a step, as `retry.when` and the mapping of a fallback see it.
#[derive(Clone, Copy)]
pub(super) struct LastAttempt {
    /// Its number.
    pub(super) attempt: u32,
    /// Its output, which has the error (W10a); `None` if its outcome is not a failure.
    pub(super) output: Option<PayloadRef>,
}

impl DataContext {
    pub(super) fn of(scope: ScopeNumber) -> Self {
        Self {
            scope,
            result: None,
            last_attempt: None,
        }
    }

    /// The same, with `$.result`.
    pub(super) fn with_result(self, result: Option<PayloadRef>) -> Self {
        Self { result, ..self }
    }

    /// The same, with `$.error`.
    pub(super) fn with_last_attempt(self, last: LastAttempt) -> Self {
        Self {
            last_attempt: Some(last),
            ..self
        }
    }
}

/// Why a mapping was not rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MappingRefused {
    /// Its result is too large: at least this many bytes.
    Made(usize),
    /// Its inputs are too large: at least this many bytes.
    Read(usize),
    /// An expression in it has no value, for this reason.
    Expression(String),
}

impl MappingRefused {
    /// The code of the error.
    pub(super) fn code(&self, what: Mapped) -> &'static str {
        match (self, what) {
            (Self::Expression(_), _) => EXPRESSION_FAILED,
            (Self::Made(_) | Self::Read(_), Mapped::Input) => "input_too_large",
            (Self::Made(_) | Self::Read(_), Mapped::Output) => "output_too_large",
            (Self::Made(_) | Self::Read(_), Mapped::State) => BAD_STATE,
            (Self::Made(_) | Self::Read(_), Mapped::Record) => "record_too_large",
            (Self::Made(_) | Self::Read(_), Mapped::Time) => "bad_time",
            (Self::Made(_) | Self::Read(_), Mapped::Items) => "items_too_large",
            (Self::Made(_) | Self::Read(_), Mapped::SignalType) => BAD_SIGNAL_TYPE,
            (Self::Made(_) | Self::Read(_), Mapped::Approvers) => BAD_APPROVERS,
            (Self::Made(_) | Self::Read(_), Mapped::ConcurrencyKey) => "key_too_large",
            (Self::Made(_) | Self::Read(_), Mapped::Target) => "target_too_large",
            (Self::Made(_) | Self::Read(_), Mapped::Lock) => "lock_too_large",
        }
    }

    /// The end of a step whose value was refused, with the error as its output.
    pub(super) fn ends_step(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        what: Mapped,
    ) -> TargetResult {
        failed(turn, run, self.code(what), cut(&self.message(what)))
    }

    /// The end of a step whose input was refused: a failure of the expression, or of the execution (W15).
    pub(super) fn ends_call(&self, turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> TargetResult {
        let outcome = match self {
            Self::Expression(_) => name::FAILURE,
            Self::Made(_) | Self::Read(_) => name::EXECUTION_FAILURE,
        };
        TargetResult {
            outcome: name::of(outcome),
            ..failed(
                turn,
                run,
                self.code(Mapped::Input),
                self.message(Mapped::Input),
            )
        }
    }

    /// The message of the error.
    pub(super) fn message(&self, what: Mapped) -> String {
        let what = match what {
            Mapped::Input => "a mapped input",
            Mapped::Output => "an output",
            Mapped::State => "values for the state",
            Mapped::Record => "a record",
            Mapped::Time => "a time",
            Mapped::Items => "an array of items",
            Mapped::SignalType => "a signal type",
            Mapped::Approvers => "a list of approvers",
            Mapped::ConcurrencyKey => "a concurrency key",
            Mapped::Target => "a target",
            Mapped::Lock => "a lock",
        };
        match self {
            Self::Made(bytes) => format!(
                "expected {what} of at most {PAYLOAD_BYTES_MAX} bytes, but it has {bytes} or more"
            ),
            Self::Read(bytes) => format!(
                "expected {what} that reads at most {MAPPING_READ_BYTES_MAX} bytes, but its paths read {bytes} or more"
            ),
            Self::Expression(reason) => reason.clone(),
        }
    }
}

/// What a mapping makes.
#[derive(Clone, Copy)]
pub(super) enum Mapped {
    /// The input of a step.
    Input,
    /// The output of a block or run.
    Output,
    /// What is written to the state.
    State,
    /// The key or payload of a record.
    Record,
    /// The time that a step waits for.
    Time,
    /// The items over which a step iterates.
    Items,
    /// The type of the signal that a step waits for.
    SignalType,
    /// Who may decide about an approval.
    Approvers,
    /// The value of a concurrency key.
    ConcurrencyKey,
    /// The target of a run.
    Target,
    /// A lock of a run.
    Lock,
}

/// The code of a state that exceeds a bound.
pub(super) const BAD_STATE: &str = "bad_state";
/// The code of a value that is not the type of a signal.
pub(super) const BAD_SIGNAL_TYPE: &str = "bad_signal_type";
/// The code of a value that is not a list of approvers.
pub(super) const BAD_APPROVERS: &str = "bad_approvers";
/// The code of values of branches that cannot be merged.
pub(super) const MERGE_FAILED: &str = "merge_failed";
/// The code of an expression without a value.
pub(super) const EXPRESSION_FAILED: &str = "expression_failed";

/// Fills a template, and stores the result with the run. A template that is one whole payload shares the stored one, and
/// large values of the run's input are not stored again.
pub(super) fn stored(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    context: DataContext,
    template: &Template,
) -> Result<Result<PayloadRef, MappingRefused>, StoreError> {
    if let [Part::Path(path)] = &template.parts[..]
        && path.segments.is_empty()
        && let Some(whole) = whole(turn, run, context, path.root)?
    {
        return Ok(Ok(whole));
    }
    let rendered = render(turn, run, context, template)?;
    Ok(rendered.map(|parts| run.store_payload(turn, parts.into_payload())))
}

/// The output of a run or block; a mapping that cannot be rendered gives an error instead (W4).
pub(super) fn output(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    context: DataContext,
    template: &Template,
) -> Result<PayloadRef, StoreError> {
    Ok(match stored(turn, run, context, template)? {
        Ok(output) => output,
        Err(refused) => {
            let (code, message) = (
                refused.code(Mapped::Output),
                refused.message(Mapped::Output),
            );
            run.store_payload(turn, Json::error(code, &message))
        }
    })
}

/// What a step that was left ended with, if anything, as it is seen from `scope`.
pub(super) fn output_of(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    step: StepIndex,
) -> Result<Option<PayloadRef>, StoreError> {
    let result = visible::result_of(turn, run, scope, step)?;
    Ok(result.and_then(|result| result.output))
}

/// The stored payload that a root is, if it is one.
fn whole(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    context: DataContext,
    root: Root,
) -> Result<Option<PayloadRef>, StoreError> {
    match root {
        Root::Input => Ok(Some(run.record.input)),
        Root::Meta => Ok(run.record.metadata),
        Root::StepOutput(step) => output_of(turn, run, context.scope, step),
        Root::Result => Ok(context.result),
        Root::EndCause => Ok(run.record.fixed_end.as_ref().and_then(|end| end.cause)),
        Root::StepOutcome(_)
        | Root::RunId
        | Root::Timestamp
        | Root::Run(_)
        | Root::State
        | Root::Item(_)
        | Root::ItemIndex(_)
        | Root::Error => Ok(None),
    }
}

/// The text of a filled template, in which large values of the run's input are only named.
#[derive(Default)]
struct Rendered {
    parts: Vec<PayloadPart>,
    /// The text after the parts.
    text: String,
    /// The size of the whole text, in bytes.
    bytes: usize,
}

impl Rendered {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.bytes += text.len();
    }

    fn push_of_input(&mut self, value: &Value<'_>) {
        let text = std::mem::take(&mut self.text);
        self.bytes += value.text.len();
        let position = |at| u32::try_from(at).expect("a payload is bounded");
        let of_input = PayloadPart::Input {
            from: position(value.range.start),
            to: position(value.range.end),
        };
        self.parts.extend([PayloadPart::Text(text), of_input]);
    }

    fn into_payload(mut self) -> StoredPayload {
        if self.parts.is_empty() {
            return StoredPayload::Text(Json::from_checked(self.text));
        }
        self.parts.push(PayloadPart::Text(self.text));
        StoredPayload::Parts(self.parts)
    }
}

/// The text of a filled template.
pub(super) fn text(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    context: DataContext,
    template: &Template,
) -> Result<Result<Json, MappingRefused>, StoreError> {
    let rendered = match render(turn, run, context, template)? {
        Ok(rendered) => rendered,
        Err(refused) => return Ok(Err(refused)),
    };
    Ok(Ok(match rendered.into_payload() {
        StoredPayload::Text(text) => text,
        StoredPayload::Parts(parts) => join_parts(&parts, &turn.payload(run.record.input)?),
    }))
}

/// Fills a template; an unresolved path gives `null`.
fn render(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    context: DataContext,
    template: &Template,
) -> Result<Result<Rendered, MappingRefused>, StoreError> {
    let resolved = match resolve(turn, run, context, template.paths())? {
        Ok(resolved) => resolved,
        Err(TooMuchRead { bytes }) => return Ok(Err(MappingRefused::Read(bytes))),
    };
    let mut values = resolved.values();
    let mut evaluation = Evaluation::with(context);
    let mut rendered = Rendered::default();
    for part in &template.parts {
        match part {
            Part::Literal(literal) => rendered.push(literal),
            Part::Path(path) => {
                let value = values
                    .next()
                    .expect("each path of the template was resolved");
                match value {
                    Some(value) if path.root == Root::Input && value.is_large() => {
                        rendered.push_of_input(&value);
                    }
                    Some(value) => rendered.push(value.text),
                    None => rendered.push("null"),
                }
            }
            Part::Expression(expression) => match evaluation.json(turn, run, expression)? {
                Ok(value) => rendered.push(value.as_str()),
                Err(reason) => return Ok(Err(MappingRefused::Expression(reason))),
            },
        }
        if rendered.bytes > PAYLOAD_BYTES_MAX {
            return Ok(Err(MappingRefused::Made(rendered.bytes)));
        }
    }
    Ok(Ok(rendered))
}

/// The payloads that paths lead into are too large together.
pub(super) struct TooMuchRead {
    /// Their size, at least. In bytes.
    pub(super) bytes: usize,
}

/// What paths lead to: slices of the payloads that they lead into.
pub(super) struct ResolvedPaths {
    texts: Vec<Json>,
    /// For each path the position of its text, and where in it the value stands.
    places: Vec<Option<(usize, Range<usize>)>>,
}

/// What a path leads to.
pub(super) struct Value<'t> {
    /// The JSON text.
    pub(super) text: &'t str,
    /// Where it stands in the text of its root, in bytes.
    range: Range<usize>,
    /// The size of the text of its root, in bytes.
    root_bytes: usize,
}

impl Value<'_> {
    /// Whether it is worth reading its root again instead of storing the value again.
    fn is_large(&self) -> bool {
        self.text.len() >= SHARED_BYTES_MIN.max(self.root_bytes / SHARED_PART_MIN)
    }
}

impl ResolvedPaths {
    /// What each path leads to; `None` where it leads nowhere.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<Value<'_>>> {
        self.places.iter().map(|place| {
            let (text, range) = place.clone()?;
            let root = self.texts[text].as_str();
            Some(Value {
                text: &root[range.clone()],
                range,
                root_bytes: root.len(),
            })
        })
    }
}

/// The paths that begin at one root.
struct PathsOfRoot<'p> {
    root: Root,
    /// Which of all paths they are.
    positions: Vec<usize>,
    segments: Vec<&'p [Segment]>,
}

/// Resolves paths, each payload that they lead into read once.
pub(super) fn resolve<'p>(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    context: DataContext,
    paths: impl IntoIterator<Item = &'p Path>,
) -> Result<Result<ResolvedPaths, TooMuchRead>, StoreError> {
    let mut by_root: Vec<PathsOfRoot<'p>> = Vec::new();
    let mut places = Vec::new();
    for path in paths {
        let position = places.len();
        places.push(None);
        match by_root.iter_mut().find(|of| of.root == path.root) {
            Some(of) => {
                of.positions.push(position);
                of.segments.push(&path.segments);
            }
            None => by_root.push(PathsOfRoot {
                root: path.root,
                positions: vec![position],
                segments: vec![&path.segments],
            }),
        }
    }
    let mut texts = Vec::with_capacity(by_root.len());
    let mut bytes = 0;
    for of in by_root {
        let Some(text) = text_of(turn, run, context, of.root)? else {
            continue;
        };
        bytes += text.as_str().len();
        if bytes > MAPPING_READ_BYTES_MAX {
            return Ok(Err(TooMuchRead { bytes }));
        }
        let found = Paths::new(of.segments).find(text.as_str());
        for (position, range) in of.positions.into_iter().zip(found) {
            places[position] = range.map(|range| (texts.len(), range));
        }
        texts.push(text);
    }
    Ok(Ok(ResolvedPaths { texts, places }))
}

/// The JSON text of a root; `None` if it does not exist yet.
pub(super) fn text_of(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    context: DataContext,
    root: Root,
) -> Result<Option<Json>, StoreError> {
    Ok(match root {
        Root::Input => Some(turn.payload(run.record.input)?),
        Root::State => Some(state::text(turn, run, context.scope)?),
        Root::Meta => match run.record.metadata {
            Some(metadata) => Some(turn.payload(metadata)?),
            None => Some(Json::from_checked("{}")),
        },
        Root::StepOutput(_) | Root::Result | Root::EndCause => {
            match whole(turn, run, context, root)? {
                Some(output) => Some(turn.payload(output)?),
                None => None,
            }
        }
        Root::Error => match context.last_attempt.and_then(|last| last.output) {
            Some(output) => failure::error_of(&turn.payload(output)?),
            None => None,
        },
        Root::StepOutcome(step) => {
            let result = visible::result_of(turn, run, context.scope, step)?;
            result.map(|result| Json::string(result.outcome.as_str()))
        }
        Root::Item(step) => match visible::iteration(turn, run, context.scope, step)? {
            Some(key) => turn.get::<Items>(&key)?.map(|item| item.value.clone()),
            None => None,
        },
        Root::ItemIndex(step) => {
            let iteration = visible::iteration(turn, run, context.scope, step)?;
            iteration.map(|(_, _, index)| Json::from_checked(index.to_string()))
        }
        Root::RunId => Some(Json::string(run.record.id.as_str())),
        Root::Timestamp => Some(Json::from_checked(turn.now_ms().to_string())),
        Root::Run(fact) => run_fact(turn, run, fact)?,
    })
}

/// What `$.flo` says about the run; `None` is null.
fn run_fact(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    fact: RunFact,
) -> Result<Option<Json>, StoreError> {
    let (record, pinned) = (&run.record, &run.definition);
    let number = |number: u64| Json::from_checked(number.to_string());
    Ok(Some(match fact {
        RunFact::Workflow => Json::string(pinned.definition.name.as_str()),
        RunFact::Version => Json::string(pinned.definition.version.as_str()),
        RunFact::Revision => number(pinned.revision.into()),
        RunFact::StartedAt => number(record.started_at_ms),
        RunFact::TriggeredBy => Json::string(record.triggered_by.name()),
        RunFact::RunAttempt => number(record.chain.map_or(1, |chain| chain.attempt).into()),
        RunFact::ParentRunId if let Some(parent) = &run.parent_id => Json::string(parent.as_str()),
        RunFact::ParentRunId => {
            let parent = match record.parent {
                Some(link) => turn.run_record(link.run)?,
                None => None,
            };
            return Ok(parent.map(|parent| Json::string(parent.id.as_str())));
        }
    }))
}
