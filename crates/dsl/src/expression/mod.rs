//! Expressions: CEL text to the form that the engine evaluates (W64).
//!
//! A maintained parser reads the text; [`lower`] turns its syntax tree into a [`CompiledExpression`], resolves names and refuses
//! what the engine does not evaluate. A stored definition contains the result, so a later version of the parser
//! changes no run.

mod data;
mod lower;
mod message;
mod pattern;
#[cfg(test)]
mod tests;

pub use data::{Data, Evaluated};

use crate::Code;
use cel::Env;
use flotilla_engine::definition::Lock;
use flotilla_engine::expression::{CompiledExpression, Node};
use flotilla_engine::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX, LOCK_PATTERN_BYTES_MAX};

/// Resolves the names of an expression.
pub trait Names {
    /// What a qualified name such as `input.order.total` begins with: the operation, and how many of `segments` it
    /// stands for; `None` if the first segment is unknown. Fields after those are selected.
    ///
    /// # Errors
    /// If the name begins well but cannot exist.
    fn resolve(&mut self, segments: &[&str]) -> Result<Option<Resolved>, UnknownName>;

    /// The known names nearest to an unknown first segment are searched among these.
    fn first_segments(&self) -> Vec<String>;
}

/// What the beginning of a qualified name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The operation.
    pub node: Node,
    /// The number of segments that it stands for; at least 1.
    pub segments: usize,
}

/// A name that cannot exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// E513 for an unknown name, E511 for a step that cannot be seen.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// The name that was probably meant.
    pub suggestion: Option<String>,
}

/// An expression that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// What the engine evaluates.
    pub expression: CompiledExpression,
    /// The number of instructions of the regular expressions in it.
    pub pattern_instructions: usize,
}

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// E513 for an unknown name, E511 for a step that cannot be seen, E518 for a regular expression, E517 otherwise.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
    /// Where it is in the text, in characters from 1.
    pub column: usize,
}

impl ExpressionError {
    fn new(code: Code, column: usize, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            column,
        }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

/// Compiles the pattern of a lock (W85). It has the syntax of the patterns of `matches`.
///
/// # Errors
/// If it is too long, or not a regular expression that is supported; the text says why.
pub fn compile_lock(text: &str) -> Result<Lock, String> {
    if text.len() > LOCK_PATTERN_BYTES_MAX {
        return Err(format!(
            "expected a lock of at most {LOCK_PATTERN_BYTES_MAX} bytes, but it has {}",
            text.len()
        ));
    }
    Ok(Lock {
        pattern: text.to_owned(),
        program: pattern::compile(text)?,
    })
}

/// The parser recurses about once per operator of the text. In bytes; only what is used is ever allocated.
const PARSER_STACK_BYTES: usize = 64 << 20;

/// Does work in which expressions are compiled, on a stack that is large enough for their parser.
///
/// # Panics
/// If the work does, or if the operating system refuses a thread.
pub fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("expressions".to_owned())
            .stack_size(PARSER_STACK_BYTES)
            .spawn_scoped(scope, work)
            .expect("expected a thread for the parser");
        match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Compiles the text of an expression, within [`with_stack`].
///
/// # Errors
/// If the text is too long, is not CEL, uses an unknown name, or does something that the engine does not evaluate.
pub fn compile(text: &str, names: &mut dyn Names) -> Result<Compiled, ExpressionError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let message = format!(
            "expected at most {EXPRESSION_BYTES_MAX} bytes, but the expression has {}",
            text.len()
        );
        return Err(ExpressionError::new(Code::E517, 1, message));
    }
    let depth = u16::try_from(EXPRESSION_DEPTH_MAX).expect("the limit is small");
    let parser = Env::default()
        .with_optional_support(false)
        .parser()
        .enable_ident_escape_syntax(true)
        .max_recursion_depth(depth);
    let (tree, source) = parser
        .parse_with_source_info(text)
        .map_err(|errors| message::of_parser(text, &errors))?;
    lower::lower(&tree, &source, names)
}
