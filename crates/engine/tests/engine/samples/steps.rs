//! Steps of every kind.

use super::*;
use flotilla_engine::definition::{
    BlockIndex, Call, Compensation, EndIndex, OutputRules, PlanIndex, RunStep, RunTarget, Setting,
    StateWrites, StepExtensions, StepIndex, TimerStep, Transition,
};

pub(super) fn steps() -> Vec<Step> {
    let run = |target| {
        StepKind::Run(Box::new(RunStep {
            call: Call {
                target,
                input: Some(template()),
                retry: Setting::Own(step_retry()),
                timeouts: Setting::Own(timeouts()),
            },
            poll: Some(PollPolicy {
                initial_delay_ms: 10,
                max_attempts: 5,
                backoff: backoff(BackoffKind::Linear),
            }),
            output: Some(OutputRules {
                extract: Some(template()),
                schema: Some("{}".to_owned()),
            }),
            fallback: Some(Call {
                target: RunTarget::Action(action()),
                input: Some(template()),
                retry: Setting::Disabled,
                timeouts: Setting::Disabled,
            }),
            is_abandoned: true,
            tracking: Tracking::Async { timeout_ms: None },
            compensation: Some(compensation()),
            fallback_compensation: None,
        }))
    };
    let child = RunTarget::Workflow {
        name: workflow(),
        version: Some(version()),
    };
    vec![
        step(
            "start",
            run(RunTarget::Action(action())),
            Target::Step(StepIndex(1)),
        ),
        step(
            "plan",
            run(RunTarget::Plan(PlanIndex(0))),
            Target::Step(StepIndex(2)),
        ),
        step("child", run(child), Target::Step(StepIndex(3))),
        step(
            "wait",
            kinds::wait(),
            Target::BuiltIn(BuiltInTerminal::Completed),
        ),
        step("fan", parallel(), Target::End(EndIndex(0))),
        step("prepare", kinds::block(), Target::Step(StepIndex(0))),
        step("each", kinds::for_each(), Target::Step(StepIndex(0))),
        step("note", StepKind::Set, Target::Step(StepIndex(0))),
        step("gate", kinds::approval(), Target::Step(StepIndex(0))),
        step("tell", kinds::emit(), Target::Step(StepIndex(0))),
        step(
            "rest",
            StepKind::Timer(TimerStep::Until(template())),
            Target::Step(StepIndex(0)),
        ),
        step("which", switch(), Target::Custom(TerminalIndex(0))),
    ]
}

fn step(text: &str, kind: StepKind, target: Target) -> Step {
    let outcome = outcome();
    Step {
        name: name(text),
        block: BlockIndex(1),
        next: Some(StepIndex(1)),
        may_repeat: true,
        skip_if: Some(expression()),
        set: Some(StateWrites {
            keys: vec![name("total")],
            object: template(),
        }),
        on_cancel: Some(Box::new(call())),
        kind,
        transitions: vec![Transition { outcome, target }],
        extensions: StepExtensions::default(),
    }
}

/// A step's target and input, without policies.
pub(crate) fn run(target: RunTarget, input: Template) -> StepKind {
    StepKind::Run(Box::new(RunStep {
        call: Call {
            target,
            input: Some(input),
            retry: Setting::Disabled,
            timeouts: Setting::Disabled,
        },
        poll: None,
        output: None,
        fallback: None,
        is_abandoned: false,
        tracking: Tracking::Sync,
        compensation: None,
        fallback_compensation: None,
    }))
}

fn call() -> Call {
    Call {
        target: RunTarget::Action(action()),
        input: None,
        retry: Setting::Own(listed_retry()),
        timeouts: Setting::Disabled,
    }
}

fn compensation() -> Compensation {
    Compensation {
        call: call(),
        of_attempted: true,
    }
}
