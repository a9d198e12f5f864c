//! The `schedule` block (W40, E504, E506).

use super::{Bounds, Context, Field, Fields, Reported, field::or_default, inputs::Input};
use crate::{
    Code, Finding, Span,
    cron::{Cron, CronInvalid},
    schema::{InputSchema, SchemaViolation},
    tree::{Node, compact},
};
use flotilla_engine::definition::{Schedule, Timing};
use flotilla_engine::limits::PAYLOAD_BYTES_MAX;

const TIMEZONE_DEFAULT: &str = "UTC";
const CONCURRENT_MAX_DEFAULT: u32 = 1;
const INPUT_DEFAULT: &str = "{}";

/// Reads the block. The input of its runs must satisfy the workflow's schema, as for every start
/// (W4); both are in one text, so this is checked here, and no firing can violate it.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    input_of_runs: Option<&Input>,
    context: &mut Context<'doc>,
) -> Result<Schedule, Reported> {
    let mut fields = field.fields(context)?;
    let timing = timing(&mut fields, context);
    let concurrent = fields.take("max_concurrent", context);
    let input = fields.take("input", context);
    let paused = fields.take("paused", context);
    let catchup = fields.take("catchup_window_ms", context);
    let known = fields.finish(context);
    let max_concurrent = or_default(concurrent, CONCURRENT_MAX_DEFAULT, |field| {
        field.whole(Bounds::count(1, Code::E100), context)
    });
    let input = match input {
        Some(input) => input_text(&input, input_of_runs, context),
        None => {
            let text = INPUT_DEFAULT.to_owned();
            RunInput { text, node: None }.satisfying(field, input_of_runs, context)
        }
    };
    let paused = or_default(paused, false, |field| field.boolean(context));
    let catchup_window_ms = or_default(catchup, 0, |field| {
        field.whole(Bounds::duration(0, Code::E100), context)
    });
    known?;
    Ok(Schedule {
        timing: timing?,
        max_concurrent: max_concurrent?,
        input: input?,
        paused: paused?,
        catchup_window_ms: catchup_window_ms?,
    })
}

fn input_text<'doc>(
    field: &Field<'doc>,
    input_of_runs: Option<&Input>,
    context: &mut Context<'doc>,
) -> Result<String, Reported> {
    let node = field.json(None, context)?;
    let input = RunInput {
        text: compact(&node),
        node: Some(&node),
    };
    input.satisfying(field, input_of_runs, context)
}

/// The input of scheduled runs.
struct RunInput<'a> {
    text: String,
    /// Where the document has it; `None` for the default.
    node: Option<&'a Node>,
}

impl RunInput<'_> {
    /// The text, if it satisfies the schema; otherwise the finding is at the part that does not.
    fn satisfying<'doc>(
        self,
        field: &Field<'doc>,
        input_of_runs: Option<&Input>,
        context: &mut Context<'doc>,
    ) -> Result<String, Reported> {
        let of_runs = input_of_runs.unwrap_or(&NO_INPUT);
        let schema = of_runs.schema.as_deref();
        let Some(SchemaViolation { path, message }) = violation(&self.text, schema) else {
            return self.bounded(field, of_runs, context);
        };
        let part: Option<Span> = self
            .node
            .and_then(|node| node.at_pointer(&path))
            .map(|part| part.span);
        let message = format!(
            "expected the input of scheduled runs to satisfy the workflow's `input` schema, but {message}"
        );
        Err(context.malformed(part.unwrap_or(field.span()), message))
    }

    /// The text, if it is not too large together with the defaults.
    fn bounded<'doc>(
        self,
        field: &Field<'doc>,
        of_runs: &Input,
        context: &mut Context<'doc>,
    ) -> Result<String, Reported> {
        let bytes = self.text.len() + of_runs.defaults.as_ref().map_or(0, String::len);
        if bytes <= PAYLOAD_BYTES_MAX {
            return Ok(self.text);
        }
        let message = format!(
            "expected the input of scheduled runs to have at most {PAYLOAD_BYTES_MAX} bytes, but it has {bytes}"
        );
        Err(context.malformed(field.span(), message))
    }
}

/// Stands for the input that could not be read.
const NO_INPUT: Input = Input {
    schema: None,
    defaults: None,
    is_declared: false,
};

fn violation(input: &str, schema: Option<&str>) -> Option<SchemaViolation> {
    // A schema that does not compile has a separate finding.
    let schema = InputSchema::compile(schema?).ok()?;
    let input = serde_json::from_str(input).ok()?;
    schema.check(&input).err()
}

fn timing<'doc>(
    fields: &mut Fields<'doc>,
    context: &mut Context<'doc>,
) -> Result<Timing, Reported> {
    let cron = fields.take("cron", context);
    let interval = fields.take("interval", context);
    let timezone = fields.take("timezone", context);
    match (cron, interval) {
        (Some(cron), None) => cron_timing(&cron, timezone, context),
        (None, Some(interval)) => {
            if let Some(timezone) = timezone {
                let hint = "leave it out: a time zone is for `cron`";
                timezone.warn_without_effect("beside `interval`", hint, context);
            }
            let every_ms = interval.whole(Bounds::duration(1, Code::E504), context)?;
            Ok(Timing::Interval { every_ms })
        }
        (cron, _) => {
            let found = if cron.is_some() { "both" } else { "neither" };
            let message = format!(
                "expected {} to have either `cron` or `interval`, but it has {found}",
                fields.place()
            );
            Err(context.error(Finding::new(Code::E504, fields.span, message)))
        }
    }
}

fn cron_timing<'doc>(
    cron: &Field<'doc>,
    timezone: Option<Field<'doc>>,
    context: &mut Context<'doc>,
) -> Result<Timing, Reported> {
    let expression = cron.string(context);
    let zone_span = timezone.as_ref().map_or(cron.span(), Field::span);
    let zone = or_default(timezone, TIMEZONE_DEFAULT, |field| field.string(context));
    let (expression, zone) = (expression?, zone?);
    if let Err(error) = Cron::new(expression, zone) {
        let (span, hint) = match error {
            CronInvalid::Timezone(_) => (zone_span, "use an IANA name such as `Europe/Berlin`"),
            CronInvalid::Never => (
                cron.span(),
                "none of these months has such a day: 30 February, for example, does not exist",
            ),
            CronInvalid::Fields(_) | CronInvalid::Syntax(_) => (
                cron.span(),
                "five fields of numbers: minute hour day-of-month month day-of-week; \
                 names such as MON and macros such as @daily are not supported",
            ),
            CronInvalid::Number { .. } | CronInvalid::Other(_) => (
                cron.span(),
                "five fields: minute hour day-of-month month day-of-week",
            ),
        };
        let finding = Finding::new(Code::E506, span, format!("invalid cron: {error}"));
        return Err(context.error(finding.hint(hint)));
    }
    Ok(Timing::Cron {
        expression: expression.to_owned(),
        timezone: zone.to_owned(),
    })
}
