//! Definitions in a few lines: what `dsl` makes of a whole document, for tests of the engine alone.
//!
//! ```text
//! define order 1.0.0 idempotency=required target=$.input.vm state={"n":0} output={"total":"$.steps.charge.output.total"}
//!   terminal Rejected failed
//!   terminal Void failed no-handler
//!   default retry 3 constant 100 on=failure,busy except=fraud when=$.error.code!=lost
//!   default timeouts attempt=100 total=500 queue=50 heartbeat=20
//!   schedule every 60000 max=2 input={"n":1} paused catchup=5000
//!   lock ^vm-.*/resize$
//!   concurrency "$.input.vm" limit=2 name=fleet on-limit=reject
//!   attribute customer string $.input.customer
//!   look: run @look extract={"n":"$.result.n"} check={"type":"object"} -> success=start
//!   start: run @charge input={"n":"$.input.n"} retry(3 constant 100) -> success=ask failure=Rejected
//!   ask: wait approval timeout=1000 on-timeout=Rejected -> success=flo.Completed
//!   which: switch $.input.n>5?ask $.input.n>1?fan default=Rejected -> failure=flo.Failed
//!   note: set set=total=$.input.n;seen=true -> success=fan
//!   rest: timer ms=1000 -> success=tell
//!   tell: emit orders key=$.input.n payload={"n":"$.input.n"} -> success=flo.Completed
//!   fan: parallel join=any cancel merge=total=sum;ids=append skip=$.input.n<1 -> success=flo.Completed
//!   prepare: block retry(3 constant 100) -> success=fan
//!   branch prepare-block of prepare list
//!   each: foreach items=$.input.items concurrency=2 cancel tolerate=10% collect=none -> success=fan
//!   branch each-item of each single
//!     ship: run @ship input="$.item.each"
//!   branch mail of fan single
//!     mail: run @mail
//!   branch stock of fan list output={"at":"$.steps.pick.output"}
//!     reserve: run @reserve
//!     pick: run @pick -> lost=flo.End.lost
//! ```
//!
//! `on-error=STEP` and `on-cancel=STEP` in the first line name block steps that are handlers. `list` in the first line makes the workflow's own block a list. The steps below a `branch` line belong to its block.

use super::condition::condition;
use super::kinds::timeouts;
use super::line::{Line, split};
use super::pattern::lock;
use super::{plan, trigger};
use flotilla_engine::definition::{
    AttributeKind, Backoff, BackoffKind, Block, BlockForm, BlockIndex, Branch, BuiltInTerminal,
    ConcurrencyLimit, CustomTerminal, Definition, DefinitionExtensions, EndIndex, Idempotency,
    LockSource, OnLimit, Part, Path, PollPolicy, RetryDelays, RetryPolicy, Root, RunFact, RunRetry,
    Schedule, SearchAttribute, Segment, StateWrites, Step, StepDefaults, StepExtensions, StepIndex,
    Target, Template, TerminalIndex, TerminalStatus, Timing, Transition, note_repeats,
};
use flotilla_engine::ids::{
    AttributeName, ConcurrencyName, Namespace, OutcomeName, StateKey, StepName, TerminalName,
    WorkflowName, WorkflowVersion,
};

use std::ops::Range;

/// The definition in `text`, whose first line holds the workflow's own settings.
pub(crate) fn define(text: &str) -> Definition {
    let mut lines = text.lines().map(str::trim);
    let mut head = Line::parse(lines.next().expect("a definition has a first line"));
    assert_eq!(head.word(), "define");
    let body: Vec<&str> = lines.collect();
    let is_list = head.flag("list");
    let form = if is_list {
        BlockForm::List
    } else {
        BlockForm::Graph
    };
    let names = Names::of(&body, form);
    let definition = Definition {
        name: WorkflowName::new(head.word()).expect("a workflow name"),
        version: WorkflowVersion::new(head.word()).expect("a version"),
        description: None,
        metadata: None,
        namespace: head
            .option("belongs-to")
            .map(|name| Namespace::new(name).expect("a namespace")),
        idempotency: idempotency(head.option("idempotency").as_deref()),
        retention_ms: head.number("retention"),
        timeout_ms: head.number("timeout"),
        max_steps: head.number("max-steps"),
        loop_warn_after: head.number("warn-after").unwrap_or(100),
        retry_run: head.option("retry-run").map(|text| run_retry(&text)),
        concurrency: names.concurrency(&body),
        target: head.option("target").map(|text| names.template(&text)),
        locks: names.locks(&body),
        input_schema: head.option("schema"),
        input_defaults: head.option("defaults"),
        state: head.option("state").map(|text| names.template(&text)),
        output: names.output_rules(&mut head, "output"),
        defaults: StepDefaults {
            retry: default(&body, "retry").map(|policy| names.step_retry(policy)),
            timeouts: default(&body, "timeouts").map(timeouts),
        },
        on_error: head.option("on-error").map(|name| names.step_index(&name)),
        on_cancel: head.option("on-cancel").map(|name| names.step_index(&name)),
        terminals: names.terminals(&body),
        search_attributes: names.attributes(&body),
        schedule: keyword(&body, "schedule").next().map(schedule),
        triggers: keyword(&body, "trigger").map(trigger::defined).collect(),
        plans: plan::plans(&body),
        ends: names.ends.clone(),
        blocks: names.blocks(),
        steps: names.steps(&body),
        extensions: DefinitionExtensions::default(),
    };
    head.end();
    definition
}

fn idempotency(text: Option<&str>) -> Idempotency {
    match text {
        None | Some("none") => Idempotency::None,
        Some("optional") => Idempotency::Optional,
        Some("required") => Idempotency::Required,
        Some(other) => panic!("expected an idempotency mode, but found {other}"),
    }
}

/// What targets and paths are resolved against.
pub(super) struct Names {
    pub(super) steps: Vec<String>,
    blocks: Vec<BlockLines>,
    pub(super) ends: Vec<OutcomeName>,
    pub(super) terminals: Vec<String>,
    pub(super) plans: Vec<String>,
}

impl Names {
    fn of(body: &[&str], form: BlockForm) -> Self {
        Self {
            steps: body.iter().filter_map(|line| step_name(line)).collect(),
            blocks: BlockLines::all(body, form),
            ends: ends(body),
            terminals: keyword(body, "terminal")
                .map(|mut line| line.word())
                .collect(),
            plans: keyword(body, "plan").map(|mut line| line.word()).collect(),
        }
    }

    fn terminals(&self, body: &[&str]) -> Vec<CustomTerminal> {
        let terminal = |mut line: Line| CustomTerminal {
            name: TerminalName::new(line.word()).expect("a terminal name"),
            status: status(&line.word()),
            output: line.option("output").map(|text| self.template(&text)),
            runs_handler: !line.flag("no-handler"),
            compensates: line.number("compensates"),
        };
        keyword(body, "terminal").map(terminal).collect()
    }

    fn concurrency(&self, body: &[&str]) -> Vec<ConcurrencyLimit> {
        let limit = |mut line: Line| ConcurrencyLimit {
            key: self.template(&line.word()),
            limit: line.number("limit").unwrap_or(1),
            name: line
                .option("name")
                .map(|name| ConcurrencyName::new(name).expect("a name")),
            on_limit: match line.option("on-limit").as_deref() {
                None | Some("queue") => OnLimit::Queue,
                Some("reject") => OnLimit::Reject,
                Some("existing") => OnLimit::Existing,
                Some("cancel_oldest") => OnLimit::CancelOldest,
                Some(other) => panic!("expected what happens at a limit, but found {other}"),
            },
        };
        keyword(body, "concurrency").map(limit).collect()
    }

    /// A lock is a pattern, or a path that leads to one.
    fn locks(&self, body: &[&str]) -> Vec<LockSource> {
        let source = |mut line: Line| match line.word() {
            path if path.starts_with("$.") => LockSource::Computed(self.template(&path)),
            pattern => LockSource::Literal(lock(&pattern)),
        };
        keyword(body, "lock").map(source).collect()
    }

    fn attributes(&self, body: &[&str]) -> Vec<SearchAttribute> {
        let attribute = |mut line: Line| SearchAttribute {
            name: AttributeName::new(line.word()).expect("an attribute name"),
            kind: match line.word().as_str() {
                "string" => AttributeKind::String,
                "number" => AttributeKind::Number,
                "timestamp" => AttributeKind::Timestamp,
                other => panic!("expected a type, but found {other}"),
            },
            from: self.path(&line.word()),
        };
        keyword(body, "attribute").map(attribute).collect()
    }

    fn steps(&self, body: &[&str]) -> Vec<Step> {
        let lines = body.iter().filter(|line| step_name(line).is_some());
        let mut steps: Vec<Step> = lines.map(|line| self.step(line)).collect();
        for (block, lines) in (0..).zip(&self.blocks) {
            for position in lines.steps.clone() {
                let is_followed = lines.form == BlockForm::List && position + 1 < lines.steps.end;
                let step = &mut steps[usize::from(position)];
                step.block = BlockIndex(block);
                step.next = is_followed.then_some(StepIndex(position + 1));
            }
        }
        note_repeats(&mut steps);
        steps
    }

    fn blocks(&self) -> Vec<Block> {
        let block = |lines: &BlockLines| Block {
            form: lines.form,
            start: StepIndex(lines.steps.start),
            opener: lines.opener.as_ref().map(|opener| self.step_index(opener)),
            output: lines.output.as_ref().map(|text| self.template(text)),
        };
        self.blocks.iter().map(block).collect()
    }

    /// The branches of a step: the blocks that it opens.
    pub(super) fn branches(&self, opener: &str) -> Vec<Branch> {
        let blocks = (0..).zip(&self.blocks);
        let own = blocks.filter(|(_, lines)| lines.opener.as_deref() == Some(opener));
        let branch = |(block, lines): (u16, &BlockLines)| Branch {
            name: StepName::new(lines.name.as_str()).expect("a branch name"),
            block: BlockIndex(block),
        };
        own.map(branch).collect()
    }

    pub(super) fn step_index(&self, name: &str) -> StepIndex {
        StepIndex(position(&self.steps, name).expect("a step of this definition"))
    }

    fn step(&self, text: &str) -> Step {
        let (name, rest) = text.split_once(": ").expect("a step has a name");
        let (what, transitions) = rest.split_once("->").unwrap_or((rest, ""));
        let mut line = Line::parse(what);
        let condition = |text: &str| condition(text, |path| self.path(path));
        let skip_if = line.option("skip").map(|text| condition(&text));
        let set = line.option("set").map(|text| self.writes(&text));
        let on_cancel = line.group("on-cancel");
        let on_cancel = on_cancel.map(|text| Box::new(self.fallback(&text)));
        let kind = self.kind(name, &mut line);
        line.end();
        Step {
            name: StepName::new(name).expect("a step name"),
            block: BlockIndex::ROOT,
            next: None,
            may_repeat: false,
            skip_if,
            set,
            on_cancel,
            kind,
            transitions: split(transitions)
                .iter()
                .map(|text| self.transition(text))
                .collect(),
            extensions: StepExtensions::default(),
        }
    }

    /// `KEY=VALUE;KEY=VALUE`, each value a JSON text or a template.
    pub(super) fn writes(&self, text: &str) -> StateWrites {
        let mut parts = Vec::new();
        let mut keys = Vec::new();
        for write in text.split(';') {
            let (key, value) = write.split_once('=').expect("KEY=VALUE");
            let opening = if keys.is_empty() { "{" } else { "," };
            parts.push(Part::Literal(format!("{opening}\"{key}\":")));
            parts.extend(self.template(value).parts);
            keys.push(StateKey::new(key).expect("a key"));
        }
        parts.push(Part::Literal("}".to_owned()));
        let object = Template { parts };
        StateWrites { keys, object }
    }

    fn transition(&self, text: &str) -> Transition {
        let (outcome, target) = text.split_once('=').expect("outcome=target");
        Transition {
            outcome: OutcomeName::new(outcome).expect("an outcome"),
            target: self.target(target),
        }
    }

    pub(super) fn target(&self, text: &str) -> Target {
        let built_in = BuiltInTerminal::ALL
            .into_iter()
            .find(|one| one.name() == text);
        let step = position(&self.steps, text).map(|index| Target::Step(StepIndex(index)));
        let custom = || position(&self.terminals, text);
        if let Some(end) = text.strip_prefix(END) {
            let mut ends = self.ends.iter();
            let index = ends.position(|known| known.as_str() == end);
            let index = index.and_then(|index| u16::try_from(index).ok());
            return Target::End(EndIndex(index.expect("an end of this definition")));
        }
        built_in
            .map(Target::BuiltIn)
            .or(step)
            .or_else(|| custom().map(|index| Target::Custom(TerminalIndex(index))))
            .unwrap_or_else(|| panic!("expected a step or terminal, but found {text}"))
    }

    /// Every string in the JSON text that begins with `$.` becomes a hole (W15), and each one that begins with `=` an
    /// expression.
    pub(super) fn template(&self, text: &str) -> Template {
        if let Some((before, tail)) = text.split_once("\"=") {
            let (expression, after) = tail.split_once('"').expect("a string ends");
            let expression = condition(expression, |path| self.path(path));
            let mut parts = self.template(before).parts;
            parts.push(Part::Expression(expression));
            parts.extend(self.template(after).parts);
            return Template { parts };
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, tail)) = rest.split_once("\"$.") {
            let (path, tail) = tail.split_once('"').expect("a string ends");
            parts.push(Part::Literal(literal.to_owned()));
            parts.push(Part::Path(self.path(&format!("$.{path}"))));
            rest = tail;
        }
        if rest.starts_with("$.") {
            parts.push(Part::Path(self.path(rest)));
        } else {
            parts.push(Part::Literal(rest.to_owned()));
        }
        parts.retain(|part| *part != Part::Literal(String::new()));
        Template { parts }
    }

    pub(super) fn path(&self, text: &str) -> Path {
        let mut parts = text.split('.').skip(1);
        let mut next = || parts.next().expect("a path continues");
        let root = match next() {
            "input" => Root::Input,
            "state" => Root::State,
            "meta" => Root::Meta,
            "result" => Root::Result,
            "error" => Root::Error,
            "cause" => Root::EndCause,
            "item" => Root::Item(self.step_index(next())),
            "index" => Root::ItemIndex(self.step_index(next())),
            "flo" => match next() {
                "run_id" => Root::RunId,
                "timestamp" => Root::Timestamp,
                name => {
                    let mut facts = RunFact::ALL.into_iter();
                    let fact = facts.find(|fact| fact.name() == name);
                    Root::Run(fact.expect("what is known of a run"))
                }
            },
            "steps" => {
                let name = next();
                let index = position(&self.steps, name).expect("a step of this definition");
                match next() {
                    "outcome" => Root::StepOutcome(StepIndex(index)),
                    _ => Root::StepOutput(StepIndex(index)),
                }
            }
            other => {
                assert!(
                    other.starts_with("input["),
                    "expected a root, but found {other}"
                );
                return Path {
                    root: Root::Input,
                    segments: segments(other).skip(1).collect(),
                };
            }
        };
        Path {
            root,
            segments: parts.flat_map(segments).collect(),
        }
    }
}

/// The prefix of a named end of a block.
const END: &str = "flo.End.";

/// The named ends of blocks, in the order in which they are first named.
fn ends(body: &[&str]) -> Vec<OutcomeName> {
    let mut ends = Vec::new();
    for word in body.iter().flat_map(|line| line.split([' ', '='])) {
        if let Some(end) = word.strip_prefix(END) {
            let end = OutcomeName::new(end).expect("an outcome");
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
    }
    ends
}

/// The lines of a block.
struct BlockLines {
    name: String,
    opener: Option<String>,
    form: BlockForm,
    output: Option<String>,
    /// The positions of its steps.
    steps: Range<u16>,
}

impl BlockLines {
    fn all(body: &[&str], form: BlockForm) -> Vec<Self> {
        let mut blocks = vec![Self {
            name: String::new(),
            opener: None,
            form,
            output: None,
            steps: 0..0,
        }];
        for text in body {
            let current = blocks.last_mut().expect("the workflow's own block");
            if let Some(line) = text.strip_prefix("branch ") {
                let start = current.steps.end;
                blocks.push(Self::branch(Line::parse(line), start));
            } else if step_name(text).is_some() {
                current.steps.end += 1;
            }
        }
        blocks
    }

    /// `stock of fan list output=$.steps.pick.output`
    fn branch(mut line: Line, start: u16) -> Self {
        let name = line.word();
        assert_eq!(line.word(), "of");
        let block = Self {
            name,
            opener: Some(line.word()),
            form: match line.word().as_str() {
                "graph" => BlockForm::Graph,
                "list" => BlockForm::List,
                "single" => BlockForm::Single,
                other => panic!("expected the form of a block, but found {other}"),
            },
            output: line.option("output"),
            steps: start..start,
        };
        line.end();
        block
    }
}

/// `items[0]` is a field and an index.
fn segments(part: &str) -> impl Iterator<Item = Segment> {
    let mut pieces = part.split('[');
    let field = pieces.next().map(|name| Segment::Field(name.to_owned()));
    let indexes = pieces.map(|piece| {
        let digits = piece.trim_end_matches(']');
        Segment::Index(digits.parse().expect("an index"))
    });
    field.into_iter().chain(indexes)
}

/// `every 1000 max=2 input={"n":1} paused catchup=5000` or `cron "0 * * * *"`
fn schedule(mut line: Line) -> Schedule {
    let schedule = Schedule {
        paused: line.flag("paused"),
        timing: match line.word().as_str() {
            "every" => Timing::Interval {
                every_ms: line.next_number(),
            },
            "cron" => Timing::Cron {
                expression: line.word(),
                timezone: "UTC".to_owned(),
            },
            other => panic!("expected `every` or `cron`, but found {other}"),
        },
        max_concurrent: line.number("max").unwrap_or(1),
        input: line.option("input").unwrap_or_else(|| "{}".to_owned()),
        catchup_window_ms: line.number("catchup").unwrap_or(0),
    };
    line.end();
    schedule
}

/// `3 exponential 100 max=1000 within=5000`, or `3 listed=10,500`
pub(super) fn retry(text: &str) -> RetryPolicy {
    let mut line = Line::parse(text);
    let policy = retry_policy(&mut line);
    line.end();
    policy
}

pub(super) fn retry_policy(line: &mut Line) -> RetryPolicy {
    let max_attempts = line.next_number();
    let delays = match line.option("listed") {
        Some(delays) => {
            let delays = delays
                .split(',')
                .map(|ms| ms.parse().expect("milliseconds"));
            RetryDelays::Listed(delays.collect())
        }
        None => RetryDelays::Backoff(backoff(line)),
    };
    RetryPolicy {
        max_attempts,
        delays,
        within_ms: line.number("within"),
    }
}

/// `10 constant 100 initial=50 max=1000`
pub(super) fn poll(text: &str) -> PollPolicy {
    let mut line = Line::parse(text);
    let policy = PollPolicy {
        max_attempts: line.next_number(),
        backoff: backoff(&mut line),
        initial_delay_ms: line.number("initial").unwrap_or(0),
    };
    line.end();
    policy
}

fn backoff(line: &mut Line) -> Backoff {
    Backoff {
        kind: match line.word().as_str() {
            "constant" => BackoffKind::Constant,
            "linear" => BackoffKind::Linear,
            "exponential" => BackoffKind::Exponential,
            "jitter" => BackoffKind::ExponentialJitter,
            other => panic!("expected a back-off, but found {other}"),
        },
        initial_delay_ms: line.next_number(),
        max_delay_ms: line.number("max").unwrap_or(30_000),
        coefficient_percent: line.number("coefficient").unwrap_or(200),
    }
}

fn status(text: &str) -> TerminalStatus {
    let found = TerminalStatus::ALL
        .into_iter()
        .find(|status| status.name() == text);
    found.unwrap_or_else(|| panic!("expected a status, but found {text}"))
}

fn step_name(line: &str) -> Option<String> {
    let (name, _) = line.split_once(": ")?;
    StepName::new(name).is_ok().then(|| name.to_owned())
}

/// The text of a default, if there is one.
fn default<'a>(body: &[&'a str], setting: &str) -> Option<&'a str> {
    let of_line = |line: &&'a str| line.strip_prefix("default ")?.strip_prefix(setting);
    body.iter().find_map(of_line)
}

/// The lines that begin with a keyword, without it.
pub(super) fn keyword<'a>(body: &'a [&str], keyword: &'a str) -> impl Iterator<Item = Line> + 'a {
    let rest = move |line: &&'a str| line.strip_prefix(keyword)?.strip_prefix(' ');
    body.iter().filter_map(rest).map(Line::parse)
}

pub(super) fn position(names: &[String], name: &str) -> Option<u16> {
    let position = names.iter().position(|known| known == name)?;
    Some(u16::try_from(position).expect("few names"))
}

/// `ATTEMPTS,DELAY,MAX`, and `,failures` for ends that no step has asked for.
fn run_retry(text: &str) -> RunRetry {
    let parts: Vec<&str> = text.split(',').collect();
    let number = |at: usize| parts.get(at).map(|part| part.parse().expect("a number"));
    RunRetry {
        max_attempts: parts[0].parse().expect("a number"),
        initial_delay_ms: number(1).unwrap_or(0),
        max_delay_ms: number(2),
        on_failure: parts.get(3) == Some(&"failures"),
    }
}
