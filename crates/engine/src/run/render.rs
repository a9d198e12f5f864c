//! Rendering: input mappings, outputs and search attributes from paths (W15, W22).
//!
//! All paths into one payload are resolved in one pass over it. A mapping therefore costs what it reads and writes, not
//! that multiplied by its number of paths (design rule 13).

use crate::definition::{Part, Path, Root, Segment, StepIndex, Template};
use crate::json::{Json, Paths};
use crate::limits::{MAPPING_READ_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::store::StoreError;
use crate::tables::{PayloadRef, StepResults};
use crate::turn::{LoadedRun, Turn};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Why a mapping was not rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MappingRefused {
    /// Its result is too large: at least this many bytes.
    Made(usize),
    /// Its inputs are too large: at least this many bytes.
    Read(usize),
}

impl fmt::Display for MappingRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(bytes) => write!(
                f,
                "of at most {PAYLOAD_BYTES_MAX} bytes, but it has {bytes} or more"
            ),
            Self::Read(bytes) => write!(
                f,
                "that reads at most {MAPPING_READ_BYTES_MAX} bytes, but its paths read {bytes} or more"
            ),
        }
    }
}

/// Fills a template, and stores the result with the run. A template that is one whole payload shares the stored one.
pub(super) fn stored(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    template: &Template,
) -> Result<Result<PayloadRef, MappingRefused>, StoreError> {
    if let [Part::Path(path)] = &template.parts[..]
        && path.segments.is_empty()
        && let Some(whole) = whole(turn, run, path.root)?
    {
        return Ok(Ok(whole));
    }
    let rendered = render(turn, run, template)?;
    Ok(rendered.map(|payload| run.store_payload(turn, payload)))
}

/// What a step that was left ended with, if anything.
pub(super) fn output_of(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    step: StepIndex,
) -> Result<Option<PayloadRef>, StoreError> {
    let result = turn.get::<StepResults>(&(run.number, step))?;
    Ok(result.and_then(|result| result.output))
}

/// The stored payload that a root is, if it is one.
fn whole(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    root: Root,
) -> Result<Option<PayloadRef>, StoreError> {
    match root {
        Root::Input => Ok(Some(run.record.input)),
        Root::StepOutput(step) => output_of(turn, run, step),
        Root::StepOutcome(_) | Root::RunId | Root::Timestamp => Ok(None),
    }
}

/// Fills a template; an unresolved path gives `null`.
fn render(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    template: &Template,
) -> Result<Result<Json, MappingRefused>, StoreError> {
    let resolved = match resolve(turn, run, template.paths())? {
        Ok(resolved) => resolved,
        Err(refused) => return Ok(Err(refused)),
    };
    let mut values = resolved.values();
    let mut text = String::new();
    for part in &template.parts {
        match part {
            Part::Literal(literal) => text.push_str(literal),
            Part::Path(_) => {
                let value = values
                    .next()
                    .expect("each path of the template was resolved");
                text.push_str(value.unwrap_or("null"));
            }
        }
        if text.len() > PAYLOAD_BYTES_MAX {
            return Ok(Err(MappingRefused::Made(text.len())));
        }
    }
    Ok(Ok(Json::from_checked(text)))
}

/// What paths lead to: slices of the payloads that they lead into.
pub(super) struct ResolvedPaths {
    texts: Vec<Arc<Json>>,
    /// For each path the position of its text, and where in it the value stands.
    places: Vec<Option<(usize, Range<usize>)>>,
}

impl ResolvedPaths {
    /// The JSON text that each path leads to; `None` where it leads nowhere.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<&str>> {
        self.places.iter().map(|place| {
            let (text, range) = place.as_ref()?;
            Some(&self.texts[*text].as_str()[range.clone()])
        })
    }
}

/// The paths that begin at one root.
struct PathsOfRoot<'p> {
    root: Root,
    /// Which of all paths they are.
    positions: Vec<usize>,
    segments: Vec<&'p [Segment]>,
}

/// Resolves paths, each payload that they lead into read once.
pub(super) fn resolve<'p>(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    paths: impl IntoIterator<Item = &'p Path>,
) -> Result<Result<ResolvedPaths, MappingRefused>, StoreError> {
    let mut by_root: Vec<PathsOfRoot<'p>> = Vec::new();
    let mut places = Vec::new();
    for path in paths {
        let position = places.len();
        places.push(None);
        match by_root.iter_mut().find(|of| of.root == path.root) {
            Some(of) => {
                of.positions.push(position);
                of.segments.push(&path.segments);
            }
            None => by_root.push(PathsOfRoot {
                root: path.root,
                positions: vec![position],
                segments: vec![&path.segments],
            }),
        }
    }
    let mut texts = Vec::with_capacity(by_root.len());
    let mut bytes = 0;
    for of in by_root {
        let Some(text) = text_of(turn, run, of.root)? else {
            continue;
        };
        bytes += text.as_str().len();
        if bytes > MAPPING_READ_BYTES_MAX {
            return Ok(Err(MappingRefused::Read(bytes)));
        }
        let found = Paths::new(of.segments).find(text.as_str());
        for (position, range) in of.positions.into_iter().zip(found) {
            places[position] = range.map(|range| (texts.len(), range));
        }
        texts.push(text);
    }
    Ok(Ok(ResolvedPaths { texts, places }))
}

/// The JSON text of a root; `None` if it does not exist yet.
fn text_of(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    root: Root,
) -> Result<Option<Arc<Json>>, StoreError> {
    Ok(match root {
        Root::Input => Some(turn.payload(run.record.input)?),
        Root::StepOutput(_) => match whole(turn, run, root)? {
            Some(output) => Some(turn.payload(output)?),
            None => None,
        },
        Root::StepOutcome(step) => {
            let result = turn.get::<StepResults>(&(run.number, step))?;
            result.map(|result| Arc::new(Json::string(result.outcome.as_str())))
        }
        Root::RunId => Some(Arc::new(Json::string(run.record.id.as_str()))),
        Root::Timestamp => Some(Arc::new(Json::from_checked(turn.now_ms().to_string()))),
    })
}
