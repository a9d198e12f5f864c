//! Executes a query page by page.

use super::bounds;
use super::condition::RunQuery;
use super::plan;
use super::stream::Stream;
use crate::ids::{Namespace, RunNumber};
use crate::limits::{PAGE_BYTES_LOOKED_AT_MAX, RUN_QUERY_ROWS_MAX};
use crate::store::{Reader, StoreError};
use crate::tables::{Runs, read};
use crate::view::page::{MeteredReader, PageBudget};
use crate::view::run::{RunRow, row};
use crate::view::run_definitions::KnownDefinitions;
use crate::view::{Page, PageRange};

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
    let metered = MeteredReader::new(reader);
    let mut scan = Scan {
        reader: &metered,
        streams: plan::streams(reader, namespace, &query.conditions)?,
        row_count: 0,
        definitions: KnownDefinitions::default(),
    };
    let mut items = Vec::new();
    let mut budget = PageBudget::new(range.limit);
    // Below this number nothing was looked at.
    let mut below = match range.after {
        None => newest.0 + 1,
        Some(token) => newest.0.saturating_add(1).min(below(token)),
    };
    while below > oldest.0
        && !budget.is_full()
        && scan.row_count < RUN_QUERY_ROWS_MAX
        && metered.bytes() < PAGE_BYTES_LOOKED_AT_MAX
    {
        let bytes_before = metered.bytes();
        match scan.leap(RunNumber(below - 1))? {
            Leap::End => below = 0,
            Leap::To(number) => below = number.0 + 1,
            Leap::Agreed(number) => {
                let item = match number >= oldest {
                    true => scan.judge(number, namespace, query)?,
                    false => None,
                };
                if item.is_some() && !budget.take(metered.bytes() - bytes_before) {
                    below = number.0 + 1;
                    break;
                }
                items.extend(item);
                below = number.0;
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
    definitions: KnownDefinitions,
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
        let definition = self.definitions.of(self.reader, &run)?;
        let is_wanted = query.holds(&run, &definition.definition);
        Ok(is_wanted.then(|| row(&run, definition)))
    }
}
