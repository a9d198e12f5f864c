//! Executes a query page by page.

use super::bounds;
use super::condition::RunQuery;
use super::plan;
use super::stream::Stream;
use crate::ids::{Namespace, RunNumber};
use crate::limits::RUN_QUERY_ROWS_MAX;
use crate::store::{Reader, StoreError};
use crate::tables::{DefinitionNumber, DefinitionRecord, Runs, read};
use crate::view::run::{RunRow, definition_of, row};
use crate::view::{Page, PageRange};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Runs of a namespace that the query looks for, newest first: those of the page range. A page may be short, even empty, and still name a next one: it has then looked at as
/// many rows as one page may.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn runs(
    reader: &dyn Reader,
    namespace: &Namespace,
    query: &RunQuery,
    range: PageRange<'_>,
) -> Result<Page<RunRow>, StoreError> {
    let (oldest, newest) = bounds::numbers(reader, &query.conditions)?;
    let mut scan = Scan {
        reader,
        streams: plan::streams(reader, namespace, &query.conditions)?,
        row_count: 0,
        definitions: BTreeMap::new(),
    };
    let mut items = Vec::new();
    // Below this number nothing was looked at.
    let mut below = match range.after {
        None => newest.0 + 1,
        Some(token) => newest.0.saturating_add(1).min(below(token)),
    };
    while below > oldest.0 && items.len() < range.limit && scan.row_count < RUN_QUERY_ROWS_MAX {
        match scan.leap(RunNumber(below - 1))? {
            Leap::End => below = 0,
            Leap::To(number) => below = number.0 + 1,
            Leap::Agreed(number) => {
                below = number.0;
                if number >= oldest {
                    items.extend(scan.judge(number, namespace, query)?);
                }
            }
        }
    }
    // Asking once more tells a full last page from one that is followed by another.
    if below > oldest.0 && matches!(scan.leap(RunNumber(below - 1))?, Leap::End) {
        below = 0;
    }
    let next = (below > oldest.0).then(|| below.to_be_bytes().to_vec());
    Ok(Page { items, next })
}

/// The number below which a page token continues. An invalid token yields an empty page, because callers can send any
/// text.
fn below(token: &[u8]) -> u64 {
    token.try_into().map_or(0, u64::from_be_bytes)
}

struct Scan<'a> {
    reader: &'a dyn Reader,
    streams: Vec<Stream>,
    row_count: usize,
    definitions: BTreeMap<DefinitionNumber, DefinitionRecord>,
}

/// Where the streams are.
enum Leap {
    /// All have this number, and none between.
    Agreed(RunNumber),
    /// Some have none above this number.
    To(RunNumber),
    /// Some have none at all.
    End,
}

impl Scan<'_> {
    /// Asks each stream once for what it has at most at `bound`.
    fn leap(&mut self, bound: RunNumber) -> Result<Leap, StoreError> {
        let mut smallest = bound;
        let mut largest = None;
        for stream in &mut self.streams {
            let next = stream.at_or_below(self.reader, smallest, &mut self.row_count)?;
            let Some(number) = next else {
                return Ok(Leap::End);
            };
            largest = largest.max(next);
            smallest = number;
        }
        Ok(if largest == Some(smallest) {
            Leap::Agreed(smallest)
        } else {
            Leap::To(smallest)
        })
    }

    /// The row of the run, if the query looks for it.
    fn judge(
        &mut self,
        number: RunNumber,
        namespace: &Namespace,
        query: &RunQuery,
    ) -> Result<Option<RunRow>, StoreError> {
        self.row_count += 1;
        let run = read::<Runs>(self.reader, &number)?;
        let Some(run) = run.filter(|run| run.namespace == *namespace) else {
            return Ok(None);
        };
        let definition = match self.definitions.entry(run.definition) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(definition_of(self.reader, &run)?),
        };
        let is_wanted = query.holds(&run, &definition.definition);
        Ok(is_wanted.then(|| row(&run, definition)))
    }
}
