//! The kinds of step of a definition in a few lines.

use super::condition::condition;
use super::definition::{Names, poll, position, retry_policy};
use super::join::{join, merge};
use super::line::Line;
use super::plan;
use flotilla_engine::definition::{
    ApprovalStep, Arm, BlockStep, Call, Compensation, EmitStep, ForEachStep, OnFailure,
    OutputRules, ParallelStep, PlanIndex, RunStep, RunTarget, Setting, SignalTypeValue, StepKind,
    StepRetry, SwitchStep, Timeouts, TimerStep, Tolerance, Tracking, WaitStep,
};
use flotilla_engine::ids::{
    ActionName, OutcomeName, SignalType, StreamName, WorkflowName, WorkflowVersion,
};

impl Names {
    /// What a step does, from the words after its name.
    pub(super) fn kind(&self, name: &str, line: &mut Line) -> StepKind {
        let condition = |text: &str| condition(text, |path| self.path(path));
        match line.word().as_str() {
            "run" => StepKind::Run(Box::new(self.run_step(line))),
            "wait" => StepKind::Wait(WaitStep {
                signal_type: self.signal_type(&line.word()),
                timeout_ms: line.number("timeout"),
                on_timeout: line.option("on-timeout").map(|text| self.target(&text)),
            }),
            "parallel" => StepKind::Parallel(ParallelStep {
                branches: self.branches(name),
                join: join(line.option("join").as_deref()),
                on_failure: on_failure(line),
                merge: merge(line.option("merge")),
                timeout_ms: line.number("timeout"),
                compensates: line.flag("undoes"),
            }),
            "block" => StepKind::Block(self.block_step(name, line)),
            "foreach" => StepKind::ForEach(self.for_each_step(name, line)),
            "set" => StepKind::Set,
            "timer" => StepKind::Timer(match line.number("ms") {
                Some(ms) => TimerStep::Duration { ms },
                None => {
                    let until = line.option("until").expect("ms=N or until=VALUE");
                    TimerStep::Until(self.template(&until))
                }
            }),
            "approval" => StepKind::Approval(ApprovalStep {
                approvers: self.template(&line.option("by").unwrap_or_else(|| "[]".to_owned())),
                quorum: line.number("quorum").unwrap_or(1),
                timeout_ms: line.number("timeout"),
            }),
            "emit" => StepKind::Emit(EmitStep {
                stream: StreamName::new(line.word()).expect("a stream name"),
                key: line.option("key").map(|text| self.template(&text)),
                payload: self.template(&line.option("payload").expect("a payload")),
            }),
            "switch" => {
                let default = line.option("default").map(|text| self.target(&text));
                let arms = std::iter::from_fn(|| line.next());
                let arms = arms.map(|arm| {
                    let (when, target) = arm.split_once('?').expect("condition?target");
                    let (when, target) = (condition(when), self.target(target));
                    Arm { when, target }
                });
                StepKind::Switch(SwitchStep {
                    arms: arms.collect(),
                    default,
                })
            }
            other => panic!("expected the kind of a step, but found {other}"),
        }
    }

    /// A type, or a path to one.
    fn signal_type(&self, text: &str) -> SignalTypeValue {
        match text.starts_with('$') {
            true => SignalTypeValue::Computed(self.template(text)),
            false => SignalTypeValue::Fixed(SignalType::new(text).expect("a signal type")),
        }
    }

    /// `foreach items=VALUE concurrency=2 cancel tolerate=10% collect=none merge=…`
    fn for_each_step(&self, name: &str, line: &mut Line) -> ForEachStep {
        let [body] = self.branches(name).try_into().expect("one block");
        let tolerate = line.option("tolerate");
        ForEachStep {
            timeout_ms: line.number("timeout"),
            items: self.template(&line.option("items").expect("items=VALUE")),
            body,
            concurrency: line.number("concurrency").unwrap_or(10),
            on_failure: on_failure(line),
            tolerate: match tolerate
                .as_deref()
                .map(|text| (text, text.strip_suffix('%')))
            {
                None => Tolerance::default(),
                Some((_, Some(percent))) => {
                    Tolerance::Percent(percent.parse().expect("a percentage"))
                }
                Some((count, None)) => Tolerance::Count(count.parse().expect("a number")),
            },
            collects_outputs: line.option("collect").is_none(),
            merge: merge(line.option("merge")),
            compensates: line.flag("undoes"),
        }
    }

    fn block_step(&self, name: &str, line: &mut Line) -> BlockStep {
        let [body] = self.branches(name).try_into().expect("one block");
        let timeout_ms = line.number("timeout");
        let compensates = line.flag("undoes");
        let policy = line.next().map(|word| {
            let policy = word.strip_prefix("retry(");
            let policy = policy.and_then(|policy| policy.strip_suffix(')'));
            policy.expect("retry(POLICY)").to_owned()
        });
        let retry = policy.map(|policy| self.step_retry(&policy));
        BlockStep {
            body,
            retry,
            timeout_ms,
            compensates,
        }
    }

    fn run_step(&self, line: &mut Line) -> RunStep {
        let mut step = RunStep {
            call: Call {
                target: self.run_target(&line.word()),
                input: line.option("input").map(|text| self.template(&text)),
                retry: Setting::Default,
                timeouts: Setting::Default,
            },
            poll: None,
            output: self.output_rules(line, "extract"),
            fallback: None,
            is_abandoned: line.flag("abandon"),
            tracking: Tracking::Sync,
            compensation: None,
            fallback_compensation: None,
        };
        while let Some(word) = line.next() {
            match word.trim_end_matches(')').split_once('(') {
                Some(("retry", "false")) => step.call.retry = Setting::Disabled,
                Some(("retry", policy)) => {
                    step.call.retry = Setting::Own(self.step_retry(policy));
                }
                Some(("poll", policy)) => step.poll = Some(poll(policy)),
                Some(("timeouts", text)) => step.call.timeouts = Setting::Own(timeouts(text)),
                Some(("undo", call)) => step.compensation = Some(self.compensation(call)),
                Some(("undo-fallback", call)) => {
                    step.fallback_compensation = Some(self.compensation(call));
                }
                Some(("async", text)) => step.tracking = plan::tracking(text),
                Some(("fallback", call)) => step.fallback = Some(self.fallback(call)),
                _ => panic!(
                    "expected retry(…), poll(…), timeouts(…), async(…) or fallback(…), but found {word}"
                ),
            }
        }
        step
    }

    /// A policy, then perhaps `on=timeout,busy except=CODE,CODE when=$.error.code==… keep-state`
    pub(super) fn step_retry(&self, text: &str) -> StepRetry {
        let mut line = Line::parse(text);
        let list = |text: Option<String>| {
            text.map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>())
        };
        let on = list(line.option("on"));
        let outcome = |name: String| OutcomeName::new(name).expect("an outcome");
        let when = line.option("when");
        let except = list(line.option("except"));
        let keep_state = line.flag("keep-state");
        let policy = retry_policy(&mut line);
        line.end();
        StepRetry {
            policy,
            on: on.map(|on| on.into_iter().map(outcome).collect()),
            non_retryable_errors: except.unwrap_or_default(),
            when: when.map(|when| condition(&when, |path| self.path(path))),
            keep_state,
        }
    }

    /// `@refund input={"why":"$.error.code"} total=500 3 constant 100`
    pub(super) fn fallback(&self, text: &str) -> Call {
        let mut line = Line::parse(text);
        let target = self.run_target(&line.word());
        let input = line.option("input").map(|text| self.template(&text));
        let timeouts = match line.number("total") {
            Some(total_ms) => Setting::Own(Timeouts {
                total_ms: Some(total_ms),
                ..Timeouts::default()
            }),
            None => Setting::Disabled,
        };
        let retry = match line.has_words() {
            true => Setting::Own(StepRetry {
                policy: retry_policy(&mut line),
                on: None,
                non_retryable_errors: Vec::new(),
                when: None,
                keep_state: false,
            }),
            false => Setting::Disabled,
        };
        line.end();
        Call {
            target,
            input,
            retry,
            timeouts,
        }
    }

    /// Like [`Self::fallback`], with `attempted` for attempts that did not succeed.
    fn compensation(&self, text: &str) -> Compensation {
        let attempted = text.strip_prefix("attempted ");
        Compensation {
            call: self.fallback(attempted.unwrap_or(text)),
            of_attempted: attempted.is_some(),
        }
    }

    /// How the output of a step or a run is extracted, and the schema that it has to satisfy.
    pub(super) fn output_rules(&self, line: &mut Line, extract: &str) -> Option<OutputRules> {
        let extract = line.option(extract).map(|text| self.template(&text));
        let schema = line.option("check");
        let is_any = extract.is_some() || schema.is_some();
        is_any.then_some(OutputRules { extract, schema })
    }

    fn run_target(&self, text: &str) -> RunTarget {
        let text = text.strip_prefix('@').expect("a target begins with @");
        if let Some(plan) = text.strip_prefix("plan/") {
            let index = position(&self.plans, plan).expect("a plan of this definition");
            return RunTarget::Plan(PlanIndex(index));
        }
        let Some(workflow) = text.strip_prefix("workflow/") else {
            return RunTarget::Action(ActionName::new(text).expect("an action name"));
        };
        let (name, version) = match workflow.split_once(':') {
            Some((name, version)) => (name, Some(version)),
            None => (workflow, None),
        };
        RunTarget::Workflow {
            name: WorkflowName::new(name).expect("a workflow name"),
            version: version.map(|version| WorkflowVersion::new(version).expect("a version")),
        }
    }
}

/// `attempt=100 total=500 queue=50 heartbeat=20`
pub(super) fn timeouts(text: &str) -> Timeouts {
    let mut line = Line::parse(text);
    let timeouts = Timeouts {
        attempt_ms: line.number("attempt"),
        total_ms: line.number("total"),
        queue_ms: line.number("queue"),
        heartbeat_ms: line.number("heartbeat"),
    };
    line.end();
    timeouts
}

fn on_failure(line: &mut Line) -> OnFailure {
    match line.flag("cancel") {
        true => OnFailure::Cancel,
        false => OnFailure::Settle,
    }
}
