//! Lowers the parser's syntax tree to the form that the engine evaluates.

use super::{Compiled, ExpressionError, Names, Resolved, pattern};
use crate::{Code, quote::quote, suggest::nearest};
use cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, SelectExpr, SourceInfo, operators,
};
use flotilla_engine::expression::{
    CompiledExpression, Comprehension, Constant, Double, Function, Node, Type,
};
use flotilla_engine::limits::{EXPRESSION_DEPTH_MAX, PATTERN_INSTRUCTIONS_MAX};

/// Lowers a syntax tree.
pub(super) fn lower(
    tree: &IdedExpr,
    source: &SourceInfo,
    names: &mut dyn Names,
) -> Result<Compiled, ExpressionError> {
    let mut lowering = Lowering {
        source,
        names,
        locals: Vec::new(),
        depth: 0,
        instructions: 0,
    };
    let root = lowering.node(tree)?;
    Ok(Compiled {
        expression: CompiledExpression { root },
        pattern_instructions: lowering.instructions,
    })
}

/// The error for an expression that nests too deep.
pub(super) fn too_deep(column: usize) -> ExpressionError {
    let message = format!("expected operations nested at most {EXPRESSION_DEPTH_MAX} deep");
    ExpressionError::new(Code::E517, column, message).hint("compute parts of it in an action")
}

struct Lowering<'a> {
    source: &'a SourceInfo,
    names: &'a mut dyn Names,
    /// The names of the elements of the comprehensions around the current node, outermost first.
    locals: Vec<String>,
    depth: usize,
    /// Those of the regular expressions so far.
    instructions: usize,
}

type Lowered = Result<Node, ExpressionError>;

impl Lowering<'_> {
    fn node(&mut self, tree: &IdedExpr) -> Lowered {
        if self.depth == EXPRESSION_DEPTH_MAX {
            return Err(too_deep(self.column(tree)));
        }
        self.depth += 1;
        let node = self.node_here(tree);
        self.depth -= 1;
        node
    }

    fn node_here(&mut self, tree: &IdedExpr) -> Lowered {
        match &tree.expr {
            Expr::Literal(literal) => self.literal(tree, literal).map(Node::Constant),
            Expr::Ident(_) => self.name(tree),
            Expr::Select(select) => self.select(tree, select),
            Expr::List(list) => {
                let elements = list.elements.iter().map(|element| self.node(element));
                Ok(Node::List(elements.collect::<Result<_, _>>()?))
            }
            Expr::Map(map) => self.map(tree, map),
            Expr::Call(call) => self.call(tree, call),
            Expr::Struct(of) => {
                let message = format!(
                    "messages such as {} are not supported",
                    quote(&of.type_name)
                );
                Err(self
                    .error(tree, message)
                    .hint("make a map: `{\"key\": value}`"))
            }
            // The environment has no macros, so the parser makes no comprehensions.
            Expr::Comprehension(_) | Expr::Unspecified => {
                Err(self.error(tree, "expected a CEL expression"))
            }
        }
    }

    fn literal(
        &self,
        tree: &IdedExpr,
        literal: &LiteralValue,
    ) -> Result<Constant, ExpressionError> {
        Ok(match literal {
            LiteralValue::Null => Constant::Null,
            LiteralValue::Boolean(value) => Constant::Bool(*value.inner()),
            LiteralValue::Int(value) => Constant::Int(*value.inner()),
            LiteralValue::UInt(value) => Constant::Uint(*value.inner()),
            LiteralValue::Double(value) => match Double::new(*value.inner()) {
                Some(double) => Constant::Double(double.to_bits()),
                None => return Err(self.error(tree, "the number is out of the range of double")),
            },
            LiteralValue::String(text) => Constant::String(text.inner().into()),
            LiteralValue::Bytes(bytes) => Constant::Bytes(bytes.inner().to_vec()),
        })
    }

    fn map(&mut self, tree: &IdedExpr, map: &MapExpr) -> Lowered {
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    entries.push((self.node(&entry.key)?, self.node(&entry.value)?));
                }
                EntryExpr::StructField(_) => {
                    return Err(self.error(tree, "expected the entries of a map"));
                }
            }
        }
        Ok(Node::Map(entries))
    }

    fn select(&mut self, tree: &IdedExpr, select: &SelectExpr) -> Lowered {
        if qualified_name(tree).is_some() {
            return self.name(tree);
        }
        Ok(Node::Select {
            operand: Box::new(self.node(&select.operand)?),
            field: select.field.as_str().into(),
        })
    }

    /// A name, or fields of one.
    fn name(&mut self, tree: &IdedExpr) -> Lowered {
        let segments = qualified_name(tree).unwrap_or_default();
        let (first, is_outermost) = match segments.first().and_then(|first| first.strip_prefix('.'))
        {
            Some(first) => (first, true),
            None => (segments.first().copied().unwrap_or_default(), false),
        };
        let local = self.locals.iter().rposition(|local| local == first);
        let resolved = match local.filter(|_| !is_outermost) {
            Some(depth) => Resolved {
                node: Node::Local(u16::try_from(depth).expect("the depth is bounded")),
                segments: 1,
            },
            None => self.resolve(tree, &[&[first], &segments[1..]].concat())?,
        };
        let fields = segments.iter().skip(resolved.segments);
        if self.depth + fields.len() > EXPRESSION_DEPTH_MAX {
            return Err(too_deep(self.column(tree)));
        }
        Ok(fields.fold(resolved.node, |operand, field| Node::Select {
            operand: Box::new(operand),
            field: (*field).into(),
        }))
    }

    fn resolve(&mut self, tree: &IdedExpr, segments: &[&str]) -> Result<Resolved, ExpressionError> {
        let unknown = match self.names.resolve(segments) {
            Ok(Some(resolved)) => return Ok(resolved),
            Ok(None) => {
                if let Some(resolved) = type_name(segments) {
                    return Ok(resolved);
                }
                let known = self.names.first_segments();
                let suggestion = nearest(segments[0], known.iter().map(String::as_str));
                super::UnknownName {
                    code: Code::E513,
                    message: format!("there is no name {}", quote(segments[0])),
                    suggestion: suggestion.map(str::to_owned),
                }
            }
            Err(unknown) => unknown,
        };
        let column = self.column(innermost(tree));
        let error = ExpressionError::new(unknown.code, column, unknown.message);
        Err(match unknown.suggestion {
            Some(suggestion) => error.hint(format!("did you mean `{suggestion}`?")),
            None => error,
        })
    }

    fn call(&mut self, tree: &IdedExpr, call: &CallExpr) -> Lowered {
        if literal_index(call).is_some() && qualified_name(tree).is_some() {
            return self.name(tree);
        }
        match (call.func_name.as_str(), &call.target, &call.args[..]) {
            (operators::LOGICAL_AND, None, [one, other]) => {
                Ok(Node::And(Box::new((self.node(one)?, self.node(other)?))))
            }
            (operators::LOGICAL_OR, None, [one, other]) => {
                Ok(Node::Or(Box::new((self.node(one)?, self.node(other)?))))
            }
            (operators::CONDITIONAL, None, [condition, then, otherwise]) => {
                Ok(Node::Conditional(Box::new((
                    self.node(condition)?,
                    self.node(then)?,
                    self.node(otherwise)?,
                ))))
            }
            (operators::HAS, None, [operand]) => self.has(operand),
            ("matches", None, [text, pattern]) => self.matches(text, pattern),
            ("matches", Some(text), [pattern]) => self.matches(text, pattern),
            (name, Some(range), [element, rest @ ..]) if is_macro(name, rest.len()) => {
                self.comprehension(name, range, element, rest)
            }
            (name, target, arguments) => {
                let is_method = target.is_some();
                let function = function(name, is_method)
                    .ok_or_else(|| self.unknown_function(tree, name, is_method))?;
                let operands: Vec<&IdedExpr> =
                    target.as_deref().into_iter().chain(arguments).collect();
                if !function.takes(operands.len()) {
                    let message = format!("{name} does not take {} arguments", arguments.len());
                    let column = self.column_of_name(tree, name);
                    return Err(ExpressionError::new(Code::E517, column, message));
                }
                let operands = operands.into_iter().map(|operand| self.node(operand));
                Ok(Node::Call {
                    function,
                    operands: operands.collect::<Result<_, _>>()?,
                })
            }
        }
    }

    /// `has(operand.field)`
    fn has(&mut self, tested: &IdedExpr) -> Lowered {
        if !matches!(tested.expr, Expr::Select(_)) {
            let error = self.error(tested, "expected `has` to test a field");
            return Err(error.hint("such as `has(input.field)`"));
        }
        Ok(match self.node(tested)? {
            Node::Select { operand, field } => Node::Has { operand, field },
            // The whole name stands for something that exists, such as `steps.NAME.output`.
            _ => Node::Constant(Constant::Bool(true)),
        })
    }

    fn matches(&mut self, text: &IdedExpr, pattern: &IdedExpr) -> Lowered {
        let Expr::Literal(LiteralValue::String(literal)) = &pattern.expr else {
            let column = self.column(pattern);
            let message = "expected the pattern of `matches` to be a literal string";
            return Err(ExpressionError::new(Code::E518, column, message));
        };
        let column = self.column(pattern);
        let pattern = pattern::compile(literal.inner())
            .map_err(|why| ExpressionError::new(Code::E518, column, why))?;
        self.instructions += pattern.instructions.len();
        if self.instructions > PATTERN_INSTRUCTIONS_MAX {
            let message = format!(
                "expected regular expressions of at most {PATTERN_INSTRUCTIONS_MAX} instructions in an expression"
            );
            return Err(ExpressionError::new(Code::E518, column, message));
        }
        Ok(Node::Matches {
            text: Box::new(self.node(text)?),
            pattern,
        })
    }

    fn comprehension(
        &mut self,
        name: &str,
        range: &IdedExpr,
        element: &IdedExpr,
        rest: &[IdedExpr],
    ) -> Lowered {
        let local = match &element.expr {
            Expr::Ident(local) if !local.starts_with('.') => local,
            _ => {
                let message = format!("expected the first argument of {name} to be a name");
                return Err(self.error(element, message));
            }
        };
        let range = self.node(range)?;
        self.locals.push(local.clone());
        let rest: Result<Vec<Node>, _> = rest.iter().map(|node| self.node(node)).collect();
        self.locals.pop();
        let mut rest = rest?;
        let last = rest.pop().expect("a macro has a condition or a transform");
        let comprehension = match name {
            operators::ALL => Comprehension::All {
                range,
                predicate: last,
            },
            operators::EXISTS => Comprehension::Exists {
                range,
                predicate: last,
            },
            operators::FILTER => Comprehension::Filter {
                range,
                predicate: last,
            },
            operators::MAP => Comprehension::Map {
                range,
                predicate: rest.pop(),
                transform: last,
            },
            _ => Comprehension::ExistsOne {
                range,
                predicate: last,
            },
        };
        Ok(Node::Comprehension(Box::new(comprehension)))
    }

    fn unknown_function(&self, tree: &IdedExpr, name: &str, is_method: bool) -> ExpressionError {
        let column = self.column_of_name(tree, name);
        let error = |message| ExpressionError::new(Code::E517, column, message);
        let is_known_macro = MACROS.contains(&name) || ["matches", operators::HAS].contains(&name);
        if is_known_macro {
            let style = if is_method {
                ""
            } else {
                ", or is called as `x.…`"
            };
            return error(format!("{name} does not take these arguments{style}"));
        }
        let known = Function::ALL.iter().map(|function| function.name());
        let known = known.chain(MACROS).chain(["matches", operators::HAS]);
        let error = error(format!("there is no function {}", quote(name)));
        match nearest(name, known) {
            Some(similar) if similar == name && is_method => {
                error.hint(format!("it is called as `{name}(…)`"))
            }
            Some(similar) if similar == name => {
                error.hint(format!("it is called as `x.{name}(…)`"))
            }
            Some(similar) => error.hint(format!("did you mean `{similar}`?")),
            None if ["len", "length", "count"].contains(&name) => {
                error.hint("the length of a text, list or map is `size(x)`")
            }
            None => error,
        }
    }

    fn error(&self, tree: &IdedExpr, message: impl Into<String>) -> ExpressionError {
        ExpressionError::new(Code::E517, self.column(tree), message)
    }

    /// Where a node is in the text, in characters from 1.
    fn column(&self, tree: &IdedExpr) -> usize {
        self.before(tree).chars().count() + 1
    }

    /// Where the name of a called function is; the parser knows the place of the parenthesis.
    fn column_of_name(&self, tree: &IdedExpr, name: &str) -> usize {
        let before = self.before(tree).trim_end();
        let before = before.strip_suffix(name).unwrap_or(before);
        before.chars().count() + 1
    }

    /// The text before a node.
    fn before(&self, tree: &IdedExpr) -> &str {
        let (start, _) = self.source.offset_for(tree.id).unwrap_or_default();
        self.source.source.get(..start as usize).unwrap_or_default()
    }
}

/// The macros over elements, except `exists_one`, which has two spellings.
const MACROS: [&str; 6] = [
    operators::ALL,
    operators::EXISTS,
    operators::EXISTS_ONE,
    "existsOne",
    operators::FILTER,
    operators::MAP,
];

/// Whether a method is a macro: `arguments` counts those after the name of the element.
fn is_macro(name: &str, arguments: usize) -> bool {
    let takes = if name == operators::MAP { 1..=2 } else { 1..=1 };
    MACROS.contains(&name) && takes.contains(&arguments)
}

/// The segments of a name such as `input.order.total`; `None` for other expressions.
fn qualified_name(tree: &IdedExpr) -> Option<Vec<&str>> {
    let mut segments = Vec::new();
    let mut tree = tree;
    loop {
        match &tree.expr {
            Expr::Ident(name) => {
                segments.push(name.as_str());
                segments.reverse();
                return Some(segments);
            }
            Expr::Select(select) => {
                segments.push(select.field.as_str());
                tree = &select.operand;
            }
            Expr::Call(call) => {
                let (operand, field) = literal_index(call)?;
                segments.push(field);
                tree = operand;
            }
            _ => return None,
        }
    }
}

/// The parts of `operand["field"]`, which means the same as `operand.field`.
fn literal_index(call: &CallExpr) -> Option<(&IdedExpr, &str)> {
    match (call.func_name.as_str(), &call.args[..]) {
        (operators::INDEX, [operand, index]) => match &index.expr {
            Expr::Literal(LiteralValue::String(field)) => Some((operand, field.inner())),
            _ => None,
        },
        _ => None,
    }
}

/// The first segment of a qualified name.
fn innermost(tree: &IdedExpr) -> &IdedExpr {
    match &tree.expr {
        Expr::Select(select) => innermost(&select.operand),
        Expr::Call(call) => literal_index(call).map_or(tree, |(operand, _)| innermost(operand)),
        _ => tree,
    }
}

fn type_name(segments: &[&str]) -> Option<Resolved> {
    Type::ALL.into_iter().find_map(|of| {
        let name: Vec<&str> = of.name().split('.').collect();
        segments.starts_with(&name).then_some(Resolved {
            node: Node::Constant(Constant::Type(of)),
            segments: name.len(),
        })
    })
}

/// The operator or function with the parser's name.
fn function(name: &str, is_method: bool) -> Option<Function> {
    let operator = match name {
        operators::LOGICAL_NOT => Function::Not,
        operators::NEGATE => Function::Negate,
        operators::ADD => Function::Add,
        operators::SUBSTRACT => Function::Subtract,
        operators::MULTIPLY => Function::Multiply,
        operators::DIVIDE => Function::Divide,
        operators::MODULO => Function::Remainder,
        operators::EQUALS => Function::Equal,
        operators::NOT_EQUALS => Function::NotEqual,
        operators::LESS => Function::Less,
        operators::LESS_EQUALS => Function::LessOrEqual,
        operators::GREATER => Function::Greater,
        operators::GREATER_EQUALS => Function::GreaterOrEqual,
        operators::IN => Function::In,
        operators::INDEX => Function::Index,
        _ => {
            let called = Function::ALL.iter().copied();
            return called
                .filter(|function| is_called(*function, is_method))
                .find(|function| function.name() == name);
        }
    };
    Some(operator)
}

/// Whether a function is called by its name: as a method, or with all operands as arguments.
fn is_called(function: Function, is_method: bool) -> bool {
    match function {
        Function::Not
        | Function::Negate
        | Function::Add
        | Function::Subtract
        | Function::Multiply
        | Function::Divide
        | Function::Remainder
        | Function::Equal
        | Function::NotEqual
        | Function::Less
        | Function::LessOrEqual
        | Function::Greater
        | Function::GreaterOrEqual
        | Function::In
        | Function::Index => false,
        Function::Size => true,
        Function::Bool
        | Function::Bytes
        | Function::Double
        | Function::Duration
        | Function::Dyn
        | Function::Int
        | Function::String
        | Function::Timestamp
        | Function::Type
        | Function::Uint => !is_method,
        Function::Contains
        | Function::StartsWith
        | Function::EndsWith
        | Function::GetDate
        | Function::GetDayOfMonth
        | Function::GetDayOfWeek
        | Function::GetDayOfYear
        | Function::GetFullYear
        | Function::GetHours
        | Function::GetMilliseconds
        | Function::GetMinutes
        | Function::GetMonth
        | Function::GetSeconds => is_method,
    }
}
