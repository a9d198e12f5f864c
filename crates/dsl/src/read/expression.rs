//! Expressions: `when`, `skipIf`, and `cel` in mappings (W64).

use super::names::Names;
use super::{
    Context, Field, Reported,
    context::{Visible, sees_cancel, sees_error},
    names::Handler,
    path,
};
use crate::expression::{self, Resolved, UnknownName};
use crate::{Code, Finding, Span, quote::quote, suggest};
use flotilla_engine::definition::{BlockIndex, Expression, Root, RunFact, Variable};
use flotilla_engine::expression::{Constant, Node};
use flotilla_engine::limits::{
    EXPRESSIONS_BYTES_MAX, EXPRESSIONS_MAX, PATTERN_INSTRUCTIONS_MAX, PATTERNS_INSTRUCTIONS_MAX,
};

/// Reads an expression (E513, E517, E518).
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Expression, Reported> {
    let text = field.string(context)?;
    compile(text, field.span(), context)
}

/// Compiles the text of an expression, which stands at `span`.
pub(super) fn compile(
    text: &str,
    span: Span,
    context: &mut Context<'_>,
) -> Result<Expression, Reported> {
    if let Err(message) = context.expressions.add(text) {
        return Err(context.error(Finding::new(Code::E517, span, message)));
    }
    let mut names = RunNames {
        names: &context.names,
        items: context.items(),
        block: context.block(),
        variables: Vec::new(),
        visible: context.visible,
        handler: context.names.handler_around(context.block()),
        may_suggest: context.may_suggest(),
        has_searched: false,
    };
    let compiled = expression::compile(text, &mut names);
    let (variables, has_searched) = (names.variables, names.has_searched);
    if has_searched {
        context.note_suggestion();
    }
    match compiled {
        Ok(compiled) => {
            if let Err(message) = context
                .expressions
                .add_patterns(compiled.pattern_instructions)
            {
                return Err(context.error(Finding::new(Code::E518, span, message)));
            }
            Ok(Expression {
                text: text.to_owned(),
                variables,
                compiled: compiled.expression,
            })
        }
        Err(error) => {
            if error.code == Code::E518 {
                context.expressions.instructions += PATTERN_INSTRUCTIONS_MAX;
            }
            let message = format!(
                "invalid expression at column {} of {}: {}",
                error.column,
                quote(text),
                error.message
            );
            let mut finding = Finding::new(error.code, span, message);
            finding.hint = error.hint;
            Err(context.error(finding))
        }
    }
}

/// What the expressions of a document amount to.
#[derive(Debug, Default)]
pub(super) struct Total {
    count: usize,
    bytes: usize,
    instructions: usize,
}

impl Total {
    /// Counts the text of an expression; the error says which bound it exceeds.
    fn add(&mut self, text: &str) -> Result<(), String> {
        self.count += 1;
        self.bytes += text.len();
        if self.count > EXPRESSIONS_MAX {
            return Err(format!(
                "expected at most {EXPRESSIONS_MAX} expressions, but this is one more"
            ));
        }
        if self.instructions > PATTERNS_INSTRUCTIONS_MAX {
            return Err("the regular expressions before this one are too large".to_owned());
        }
        if self.bytes > EXPRESSIONS_BYTES_MAX {
            return Err(format!(
                "expected at most {EXPRESSIONS_BYTES_MAX} bytes of expressions, but this one exceeds them"
            ));
        }
        Ok(())
    }

    /// Counts the instructions of the regular expressions of an expression.
    fn add_patterns(&mut self, instructions: usize) -> Result<(), String> {
        self.instructions += instructions;
        if self.instructions > PATTERNS_INSTRUCTIONS_MAX {
            return Err(format!(
                "expected regular expressions of at most {PATTERNS_INSTRUCTIONS_MAX} instructions together, but this \
                 one exceeds them"
            ));
        }
        Ok(())
    }
}

/// What the names in an expression stand for, and the variables that it uses.
struct RunNames<'n, 'doc> {
    names: &'n Names<'doc>,
    /// The names of items and indexes.
    items: Vec<(String, Root)>,
    /// The block in whose scope the expression is evaluated.
    block: BlockIndex,
    variables: Vec<Variable>,
    visible: Visible,
    /// The handler that the block belongs to.
    handler: Option<Handler>,
    /// Whether similar names of steps may be searched: a document is allowed a number of searches.
    may_suggest: bool,
    has_searched: bool,
}

/// The names below `flo`.
const OF_RUN: [(&str, Variable); 10] = [
    ("run_id", Variable::Root(Root::RunId)),
    ("timestamp", Variable::Root(Root::Timestamp)),
    ("now", Variable::Now),
    of_fact(RunFact::Workflow),
    of_fact(RunFact::Version),
    of_fact(RunFact::Revision),
    of_fact(RunFact::StartedAt),
    of_fact(RunFact::ParentRunId),
    of_fact(RunFact::TriggeredBy),
    of_fact(RunFact::RunAttempt),
];

const fn of_fact(fact: RunFact) -> (&'static str, Variable) {
    (fact.name(), Variable::Root(Root::Run(fact)))
}

impl expression::Names for RunNames<'_, '_> {
    fn resolve(&mut self, segments: &[&str]) -> Result<Option<Resolved>, UnknownName> {
        let (node, segments) = match segments {
            ["record", ..] if self.visible == Visible::Record => {
                (self.variable(Variable::Record), 1)
            }
            ["input", ..] if self.visible != Visible::Record => {
                (self.variable(Variable::Root(Root::Input)), 1)
            }
            [first, ..] if self.visible.why_refused(first).is_some() => return Ok(None),
            ["meta", ..] => (self.variable(Variable::Root(Root::Meta)), 1),
            ["state", ..] => (self.variable(Variable::Root(Root::State)), 1),
            ["result", ..] if matches!(self.visible, Visible::Result | Visible::Output) => {
                (self.variable(Variable::Root(Root::Result)), 1)
            }
            ["output", ..] if self.visible == Visible::Output => {
                (self.variable(Variable::Root(Root::Result)), 1)
            }
            ["error", ..] if let Some(root) = sees_error(self.visible, self.handler) => {
                (self.variable(Variable::Root(root)), 1)
            }
            ["cancel", ..] if let Some(root) = sees_cancel(self.visible, self.handler) => {
                (self.variable(Variable::Root(root)), 1)
            }
            ["attempt", ..] if self.visible == Visible::Attempt => {
                (self.variable(Variable::Attempt), 1)
            }
            ["steps", rest @ ..] => self.step(rest)?,
            ["flo", rest @ ..] => self.of_run(rest)?,
            [first, ..] => {
                let mut items = self.items.iter().filter(|(name, _)| name == first);
                let Some((_, root)) = items.next() else {
                    return Ok(None);
                };
                let root = *root;
                (self.variable(Variable::Root(root)), 1)
            }
            [] => return Ok(None),
        };
        Ok(Some(Resolved { node, segments }))
    }

    fn first_segments(&self) -> Vec<String> {
        let names: &[&str] = match self.visible {
            Visible::Run => &path::ROOTS,
            Visible::Result => &["input", "state", "steps", "meta", "flo", "result"],
            Visible::Error => &["input", "state", "steps", "meta", "flo", "error"],
            Visible::Attempt => &["input", "state", "steps", "meta", "flo", "error", "attempt"],
            Visible::Output => &["input", "state", "steps", "meta", "flo", "result", "output"],
            Visible::Start => &["input", "meta", "flo"],
            Visible::Nothing => &["input"],
            Visible::Record => &["record"],
        };
        let items: &[(String, Root)] = match self.visible {
            Visible::Run
            | Visible::Result
            | Visible::Error
            | Visible::Attempt
            | Visible::Output => &self.items,
            Visible::Start | Visible::Nothing | Visible::Record => &[],
        };
        let items = items.iter().map(|(name, _)| name.clone());
        let sees_run = !matches!(
            self.visible,
            Visible::Start | Visible::Nothing | Visible::Record
        );
        let of_handler = match self.handler.filter(|_| sees_run) {
            Some(Handler::Error) => Some("error".to_owned()),
            Some(Handler::Cancel) => Some("cancel".to_owned()),
            None => None,
        };
        names
            .iter()
            .map(|name| (*name).to_owned())
            .chain(items)
            .chain(of_handler)
            .collect()
    }
}

impl RunNames<'_, '_> {
    fn variable(&mut self, variable: Variable) -> Node {
        let known = self.variables.iter().position(|known| *known == variable);
        let position = known.unwrap_or_else(|| {
            self.variables.push(variable);
            self.variables.len() - 1
        });
        // The text of an expression is too short for more.
        Node::Variable(u16::try_from(position).expect("variables are bounded"))
    }

    /// What follows `steps`, and how many segments it stands for.
    fn step(&mut self, rest: &[&str]) -> Result<(Node, usize), UnknownName> {
        let Some(name) = rest.first() else {
            return Err(UnknownName {
                code: Code::E513,
                message: "expected the name of a step after `steps`".to_owned(),
                suggestion: None,
            });
        };
        let Some(step) = self.names.step(name) else {
            let dashed = format!("{name}-");
            let mut candidates = self.names.steps();
            let dashed = candidates.find(|candidate| candidate.starts_with(&dashed));
            let suggestion = match dashed {
                // CEL reads the dash as a subtraction.
                Some(dashed) => Some(format!("steps[\"{dashed}\"]")),
                None if self.may_suggest => {
                    self.has_searched = true;
                    suggest::nearest(name, self.names.steps()).map(str::to_owned)
                }
                None => None,
            };
            return Err(UnknownName {
                code: Code::E513,
                message: format!("there is no step {}", quote(name)),
                suggestion,
            });
        };
        if let Some(hiding) = self.names.hiding(step, self.block) {
            return Err(UnknownName {
                code: Code::E511,
                message: path::hidden(name, self.names.name(hiding)),
                suggestion: None,
            });
        }
        let outcome = Variable::Root(Root::StepOutcome(step));
        let output = Variable::Root(Root::StepOutput(step));
        match rest.get(1) {
            None => {
                let entries = [("outcome", outcome), ("output", output)];
                Ok((self.map(&entries), 2))
            }
            Some(&"outcome") => Ok((self.variable(outcome), 3)),
            Some(&"output") => Ok((self.variable(output), 3)),
            Some(other) => Err(UnknownName {
                code: Code::E513,
                message: format!("a step has `outcome` and `output`, but no {}", quote(other)),
                suggestion: None,
            }),
        }
    }

    /// What follows `flo`, and how many segments it stands for.
    fn of_run(&mut self, rest: &[&str]) -> Result<(Node, usize), UnknownName> {
        let Some(name) = rest.first() else {
            return Ok((self.map(&OF_RUN), 1));
        };
        match OF_RUN.iter().find(|(known, _)| known == name) {
            Some((_, variable)) => Ok((self.variable(*variable), 2)),
            None => {
                let known = OF_RUN.iter().map(|(known, _)| *known);
                Err(UnknownName {
                    code: Code::E513,
                    message: format!("there is no {} in `flo`", quote(name)),
                    suggestion: suggest::nearest(name, known).map(str::to_owned),
                })
            }
        }
    }

    fn map(&mut self, entries: &[(&str, Variable)]) -> Node {
        let entry = |(name, variable): &(&str, Variable)| {
            let key = Node::Constant(Constant::String((*name).into()));
            (key, self.variable(*variable))
        };
        Node::Map(entries.iter().map(entry).collect())
    }
}
