//! A quota, and what is used of it.

use crate::output::{Row, table};
use flotilla_client::v1;
use serde::Serialize;

/// The limits of a namespace or tree, and what it uses.
#[derive(Debug, Serialize)]
pub(crate) struct QuotaView {
    scope: String,
    version: u64,
    dimensions: Vec<DimensionView>,
}

/// One dimension. Without a limit, only the engine's own bounds limit it.
#[derive(Debug, Serialize)]
struct DimensionView {
    dimension: String,
    limit: Option<u64>,
    used: Option<u64>,
}

impl QuotaView {
    /// The quota with what is used, if that is known; otherwise its limits by name.
    pub(crate) fn new(quota: v1::Quota, usage: Option<v1::Usage>) -> Self {
        let dimensions = match usage {
            Some(usage) => usage.dimensions.into_iter().map(Into::into).collect(),
            None => {
                let limits = quota.limits.into_iter();
                limits
                    .map(|(dimension, limit)| DimensionView {
                        dimension,
                        limit: Some(limit),
                        used: None,
                    })
                    .collect()
            }
        };
        Self {
            scope: quota.scope,
            version: quota.version,
            dimensions,
        }
    }

    /// The quota for people.
    pub(crate) fn text(&self) -> String {
        if self.dimensions.is_empty() {
            return format!("{} has no limits", self.scope);
        }
        table(&self.dimensions)
    }
}

impl From<v1::DimensionUsage> for DimensionView {
    fn from(usage: v1::DimensionUsage) -> Self {
        Self {
            dimension: usage.dimension,
            limit: usage.limit,
            used: usage.used,
        }
    }
}

impl Row for DimensionView {
    const HEADINGS: &'static [&'static str] = &["DIMENSION", "USED", "LIMIT"];

    fn cells(&self) -> Vec<String> {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
        vec![
            self.dimension.clone(),
            number(self.used),
            number(self.limit),
        ]
    }
}
