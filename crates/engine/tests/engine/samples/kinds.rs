//! Kinds of step, and an expression.

use super::name;
use flotilla_engine::definition::{
    ApprovalStep, Arm, BlockIndex, BlockStep, Branch, EmitStep, EndIndex, Expression, ForEachStep,
    Join, Merge, MergeRule, OnFailure, ParallelStep, Part, Root, SignalTypeValue, StepIndex,
    StepKind, SwitchStep, Target, Template, TerminalIndex, Tolerance, Variable, WaitStep,
};
use flotilla_engine::expression::{
    Assertion, CharClass, CompiledExpression, Comprehension, Constant, Function, Instruction, Node,
    Pattern, Type,
};

pub(super) fn switch() -> StepKind {
    StepKind::Switch(SwitchStep {
        arms: vec![Arm {
            when: expression(),
            target: Target::Step(StepIndex(3)),
        }],
        default: Some(Target::End(EndIndex(0))),
    })
}

pub(super) fn block() -> StepKind {
    StepKind::Block(BlockStep {
        body: Branch {
            name: name("prepare-block"),
            block: BlockIndex(1),
        },
        retry: Some(super::step_retry()),
        timeout_ms: Some(1_000),
        compensates: true,
    })
}

pub(super) fn for_each() -> StepKind {
    StepKind::ForEach(ForEachStep {
        items: super::template(),
        body: Branch {
            name: name("each-item"),
            block: BlockIndex(1),
        },
        concurrency: 10,
        on_failure: OnFailure::Settle,
        tolerate: Tolerance::Percent(10),
        collects_outputs: true,
        merge: Vec::new(),
        timeout_ms: Some(1_000),
        compensates: false,
    })
}

pub(super) fn parallel() -> StepKind {
    StepKind::Parallel(ParallelStep {
        branches: vec![Branch {
            name: name("stock"),
            block: BlockIndex(1),
        }],
        join: Join::Count(1),
        on_failure: OnFailure::Cancel,
        merge: vec![MergeRule {
            key: name("total"),
            merge: Merge::Sum,
        }],
        timeout_ms: Some(1_000),
        compensates: true,
    })
}

pub(super) fn wait() -> StepKind {
    StepKind::Wait(WaitStep {
        signal_type: SignalTypeValue::Fixed(super::signal_type()),
        timeout_ms: Some(1_000),
        on_timeout: Some(Target::Custom(TerminalIndex(0))),
    })
}

pub(super) fn approval() -> StepKind {
    StepKind::Approval(ApprovalStep {
        approvers: Template {
            parts: vec![Part::Literal("[\"role:ops\"]".to_owned())],
        },
        quorum: 2,
        timeout_ms: Some(1_000),
    })
}

pub(super) fn emit() -> StepKind {
    let literal = |text: &str| Template {
        parts: vec![Part::Literal(text.to_owned())],
    };
    StepKind::Emit(EmitStep {
        stream: name("orders"),
        key: Some(literal("\"ada\"")),
        payload: literal("7"),
    })
}

/// An expression with every kind of node.
pub(super) fn expression() -> Expression {
    let constant = |constant| Box::new(Node::Constant(constant));
    let element = || Node::Local(0);
    let range = || Node::List(vec![Node::Variable(1)]);
    let comprehensions = [
        Comprehension::All {
            range: range(),
            predicate: element(),
        },
        Comprehension::Exists {
            range: range(),
            predicate: element(),
        },
        Comprehension::ExistsOne {
            range: range(),
            predicate: element(),
        },
        Comprehension::Filter {
            range: range(),
            predicate: element(),
        },
        Comprehension::Map {
            range: range(),
            predicate: Some(element()),
            transform: element(),
        },
    ];
    let comprehensions = comprehensions.map(|of| Node::Comprehension(Box::new(of)));
    let selected = Node::Select {
        operand: Box::new(Node::Variable(0)),
        field: "amount".into(),
    };
    let has = Node::Has {
        operand: Box::new(Node::Variable(0)),
        field: "amount".into(),
    };
    let matches = Node::Matches {
        text: constant(Constant::String("a".into())),
        pattern: pattern(),
    };
    let constants = [
        Constant::Null,
        Constant::Bool(true),
        Constant::Int(-1),
        Constant::Uint(1),
        Constant::Double(1),
        Constant::Bytes(vec![1]),
        Constant::Type(Type::Duration),
    ];
    let constants = Node::List(constants.map(Node::Constant).to_vec());
    let compared = Node::Call {
        function: Function::Greater,
        operands: vec![selected, constants],
    };
    let map = Node::Map(vec![(has, matches)]);
    let both = Node::And(Box::new((Node::List(comprehensions.to_vec()), map)));
    let either = Node::Or(Box::new((compared, both)));
    let root = Node::Conditional(Box::new((either, Node::Variable(1), Node::Variable(0))));
    Expression {
        text: "input.amount > 1".to_owned(),
        variables: vec![Variable::Root(Root::Input), Variable::Now],
        compiled: CompiledExpression { root },
    }
}

pub(super) fn pattern() -> Pattern {
    Pattern {
        instructions: vec![
            Instruction::Split(1, 4),
            Instruction::Assert(Assertion::WordBoundary),
            Instruction::Char(0),
            Instruction::Jump(0),
            Instruction::Match,
        ],
        classes: vec![CharClass(vec![('a', 'z')])],
    }
}
