//! `flo expr eval`.

use crate::argument_source;
use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_dsl::expression::{Data, ExpressionError};
use serde::Serialize;
use serde_json::Value;

const EXAMPLES: &str = "\
Examples:
  flo expr eval 'input.amount > 1000' --data '{\"input\": {\"amount\": 1200}}'
  flo expr eval 'input.lines.filter(l, l.n > 1).map(l, l.sku)' --data @data.json
  flo expr eval 'duration(\"1h30m\") + duration(\"15m\")'

Exit codes: 0 the expression has a value; 3 it has no value, or is invalid; 2 the data is not a JSON object.";

/// Evaluate a CEL expression without a server
///
/// Prints its value as JSON. Each key of the data is a name in the expression: `input`, `state` and
/// so on, as in a workflow. `flo.now` is the time of `flo.timestamp`, in milliseconds. The cost counts
/// operations and 64 bytes read, compared or made; a node allows 100,000 per evaluation.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Eval {
    /// The expression, in CEL
    #[arg(value_name = "EXPRESSION", allow_hyphen_values = true)]
    expression: String,
    /// Values of the names, a JSON object; @FILE reads a file, - reads stdin
    #[arg(long, value_name = "JSON", default_value = "{}")]
    data: String,
}

#[derive(Debug, Serialize)]
struct EvaluatedView {
    value: Value,
    cost: u32,
}

impl Eval {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let text = argument_source::read(&self.data)?;
        let data = data_of(&text, argument_source::name(&self.data))?;
        let evaluated = data
            .evaluate(&self.expression)
            .map_err(|error| invalid(&self.expression, &error))?;
        let json = evaluated.value.and_then(|value| value.to_json());
        let json = json.map_err(|failure| {
            let message = format!("the expression has no value: {failure}");
            Failure::new(Code::ExpressionFailed, message)
        })?;
        let view = EvaluatedView {
            value: shown(json.as_str())?,
            cost: evaluated.cost,
        };
        session.output.value(&view, |_| json.as_str().to_owned())
    }
}

/// The value for output; not every JSON text of the data can be read by this program.
fn shown(json: &str) -> Result<Value, Failure> {
    serde_json::from_str(json).map_err(|error| {
        let message = format!("the value cannot be shown: {error}");
        Failure::new(Code::ExpressionFailed, message)
    })
}

fn data_of(text: &[u8], name: &str) -> Result<Data, Failure> {
    let data = str::from_utf8(text).map_err(|error| error.to_string());
    let data = data.and_then(|data| Data::parse(data).map_err(|error| error.to_string()));
    data.map_err(|error| {
        let message = format!("expected {name} to be a JSON object, but: {error}");
        Failure::new(Code::JsonInvalid, message)
            .with_hint("each key is a name in the expression: '{\"input\": {\"amount\": 1200}}'")
    })
}

/// Shows the expression and where it is invalid.
fn invalid(text: &str, error: &ExpressionError) -> Failure {
    let ExpressionError {
        code,
        message,
        column,
        ..
    } = error;
    let message = format!("invalid expression at column {column}: {message} ({code})");
    let failure = Failure::new(Code::ExpressionInvalid, message);
    match &error.hint {
        Some(hint) => failure.with_hint(hint.clone()),
        None if *code == flotilla_dsl::Code::E513 => failure.with_hint(format!(
            "the expression is {text}; the keys of `--data` are the names in the expression, for example --data '{{\"input\": {{\"amount\": 5}}}}'"
        )),
        None => failure.with_hint(format!("the expression is {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_invalid_expression_is_shown_with_its_place() {
        let data = data_of(br#"{"input": 1}"#, "data").expect("an object");
        let error = data.evaluate("input + stat").expect_err("an unknown name");
        expect![[r#"
            error: invalid expression at column 9: there is no name "stat" (E513)
            hint: the expression is input + stat; the keys of `--data` are the names in the expression, for example --data '{"input": {"amount": 5}}'
        "#]]
        .assert_eq(&invalid("input + stat", &error).render(crate::output::Format::Text));
    }

    #[test]
    fn data_that_is_no_object_is_refused() {
        let failure = data_of(b"[1]", "the argument").expect_err("an array");
        assert_eq!(failure.code(), Code::JsonInvalid.as_str());
    }
}
