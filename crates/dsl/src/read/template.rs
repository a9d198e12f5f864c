//! Mappings: JSON with paths in it (W15).

use super::{Context, Field, Reported, path};
use crate::{
    Code, Span,
    tree::{Kind, Output, quoted, write},
};
use flotilla_engine::definition::{Part, Path, Template};
use flotilla_engine::limits::MAPPING_PATHS_MAX;

/// Reads a mapping: a YAML mapping or list, the JSON text of one, or a single path.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    if let Kind::String(text) = &field.node.kind
        && path::is_path(text)
    {
        let path = path::read(text, field.span(), context)?;
        return Ok(Template {
            parts: vec![Part::Path(path)],
        });
    }
    let node = field.json(context)?;
    if !matches!(node.kind, Kind::Mapping(_) | Kind::Sequence(_)) {
        let finding = field.mismatch_finding(Code::E100, "a mapping, its JSON text or a path");
        return Err(context.error(finding.hint("a path begins with `$.`")));
    }
    let mut builder = Builder {
        context,
        parts: Vec::new(),
        literal: String::new(),
        result: Ok(()),
    };
    write(&node, &mut builder);
    let template = builder.finish()?;
    let paths_count = template.paths().count();
    if paths_count > MAPPING_PATHS_MAX {
        let message = format!(
            "expected at most {MAPPING_PATHS_MAX} paths in {}, but it has {paths_count}",
            field.place
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(template)
}

/// Collects literal text between paths.
struct Builder<'context, 'doc> {
    context: &'context mut Context<'doc>,
    parts: Vec<Part>,
    literal: String,
    result: Result<(), Reported>,
}

impl Builder<'_, '_> {
    fn path(&mut self, path: Path) {
        self.end_literal();
        self.parts.push(Part::Path(path));
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.parts
                .push(Part::Literal(std::mem::take(&mut self.literal)));
        }
    }

    fn finish(mut self) -> Result<Template, Reported> {
        self.end_literal();
        self.result.map(|()| Template { parts: self.parts })
    }
}

impl Output for Builder<'_, '_> {
    fn text(&mut self, json: &str) {
        self.literal.push_str(json);
    }

    fn string(&mut self, text: &str, span: Span) {
        if !path::is_path(text) {
            self.literal.push_str(&quoted(text));
            return;
        }
        match path::read(text, span, self.context) {
            Ok(path) => self.path(path),
            Err(reported) => self.result = Err(reported),
        }
    }
}
