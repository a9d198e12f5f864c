//! `flo ns quota set`.

use super::preset::Preset;
use super::scope::ScopeArgs;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::QuotaView;
use clap::Args;
use std::collections::BTreeMap;

const EXAMPLES: &str = "\
Examples:
  flo -n acme.shop ns quota set open_runs=100 starts_per_minute=600
  flo -n acme.shop ns quota set open_runs=none
  flo ns quota set --tree acme open_runs=500 namespaces=20
  flo ns quota set --defaults --preset falcone
  flo -n acme.shop ns quota set --replace";

/// Change limits of a namespace; those that are not named stay as they are
///
/// A limit below what is used is accepted: nothing is deleted, and new work is refused until there is room. Without a
/// limit, only the engine's own bounds remain. If the quota changes meanwhile, the command fails and changes nothing.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[group(required = true, multiple = true, id = "change", args = ["limits", "preset", "replace"])]
pub(crate) struct Set {
    /// Limits as DIMENSION=NUMBER, or DIMENSION=none to remove one; `flo ns quota show` lists the dimensions
    #[arg(value_name = "DIMENSION=LIMIT", value_parser = parse)]
    limits: Vec<(String, Option<u64>)>,

    #[command(flatten)]
    scope: ScopeArgs,

    /// Set of limits to begin with; the limits named apart from it take precedence
    #[arg(long, value_enum)]
    preset: Option<Preset>,

    /// Remove all limits that are not named
    #[arg(long)]
    replace: bool,
}

impl Set {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let scope = self.scope.scope();
        let before = scope.quota(session).await?;
        let mut limits = match self.replace {
            true => BTreeMap::new(),
            false => before.limits,
        };
        let preset = self.preset.iter().flat_map(|preset| preset.limits());
        limits.extend(preset.map(|(dimension, limit)| ((*dimension).to_owned(), *limit)));
        for (dimension, limit) in self.limits {
            match limit {
                Some(limit) => limits.insert(dimension, limit),
                None => limits.remove(&dimension),
            };
        }
        let quota = scope.set(session, limits, before.version).await?;
        session
            .output
            .value(&QuotaView::new(quota, None), QuotaView::text)
    }
}

/// Parses `DIMENSION=NUMBER` or `DIMENSION=none`.
fn parse(text: &str) -> Result<(String, Option<u64>), String> {
    let wrong = || format!("expected DIMENSION=NUMBER or DIMENSION=none, but it is `{text}`");
    let (dimension, limit) = text.split_once('=').ok_or_else(wrong)?;
    let limit = match limit {
        "none" => None,
        number => Some(number.parse().map_err(|_| wrong())?),
    };
    Ok((dimension.to_owned(), limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_whole_number_or_none() {
        let limit = |text| parse(text).ok();
        let named = |limit| Some(("open_runs".to_owned(), limit));
        assert_eq!(limit("open_runs=10"), named(Some(10)));
        assert_eq!(limit("open_runs=none"), named(None));
        for text in ["open_runs", "open_runs=", "open_runs=-1", "open_runs=1.5"] {
            assert_eq!(limit(text), None, "{text}");
        }
    }
}
