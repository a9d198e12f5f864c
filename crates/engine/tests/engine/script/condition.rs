//! Conditions in scripts: `PATH`, or `PATH OP VALUE` without spaces, such as `$.input.n>5`. What CEL means is tested where it
//! is compiled, in `dsl`.

use flotilla_engine::definition::{Expression, Path, Segment, Variable};
use flotilla_engine::expression::{CompiledExpression, Constant, Function, Node};

/// The condition that `text` stands for; `path` reads the path in it.
pub(crate) fn condition(text: &str, path: impl Fn(&str) -> Path) -> Expression {
    let operators = [
        ("==", Function::Equal),
        ("!=", Function::NotEqual),
        (">", Function::Greater),
        ("<", Function::Less),
    ];
    let split = operators.into_iter().find_map(|(operator, function)| {
        let (path, value) = text.split_once(operator)?;
        Some((path, function, value))
    });
    let (left, root) = match split {
        None => (path(text), None),
        Some((left, function, value)) => (path(left), Some((function, constant(value)))),
    };
    let variables = vec![Variable::Root(left.root)];
    let value = left.segments.iter().fold(Node::Variable(0), below);
    let root = match root {
        None => value,
        Some((function, constant)) => Node::Call {
            function,
            operands: vec![value, Node::Constant(constant)],
        },
    };
    Expression {
        text: text.to_owned(),
        variables,
        compiled: CompiledExpression { root },
    }
}

fn below(operand: Node, segment: &Segment) -> Node {
    match segment {
        Segment::Field(field) => Node::Select {
            operand: Box::new(operand),
            field: field.as_str().into(),
        },
        Segment::Index(index) => Node::Call {
            function: Function::Index,
            operands: vec![operand, Node::Constant(Constant::Int(i64::from(*index)))],
        },
    }
}

fn constant(text: &str) -> Constant {
    text.parse()
        .map_or_else(|_| Constant::String(text.into()), Constant::Int)
}
