//! Refusing new work that exceeds a quota (X38, X39).

use super::dimension::{DimensionKind, QuotaDimension};
use super::rows::{QuotaRows, usages};
use super::scope::QuotaScope;
use crate::ids::Namespace;
use crate::quota_rejection::{QuotaExceeded, QuotaRejection};
use crate::sliding_window::Window;
use crate::store::StoreError;
use crate::tables::{QuotaRecord, QuotaWindowRecord, QuotaWindows, Quotas};
use crate::turn::{Turn, TurnResult};
use smallvec::SmallVec;
use std::sync::Arc;

/// How much of a dimension new work needs: how many more, or the size of the item.
pub(crate) type Need = (QuotaDimension, u64);

/// What a command needs of the quotas of commands.
pub(super) const ONE_COMMAND: Need = (QuotaDimension::CommandsPerMinute, 1);

/// The limits of a scope.
struct Limited {
    scope: QuotaScope,
    quota: Arc<QuotaRecord>,
}

/// Checks that the quotas around the namespace suffice. Spends nothing.
///
/// # Errors
/// [`QuotaRejection::Exceeded`] names the first that does not: rates before the rest, the namespace before its tree.
pub(crate) fn check(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    needs: &[Need],
) -> TurnResult<()> {
    match refusal(turn, namespace, needs)? {
        None => Ok(()),
        Some(exceeded) => Err(QuotaRejection::Exceeded(Box::new(exceeded)).into()),
    }
}

/// As [`check`], for work that is put off or left out if a quota does not suffice; returns that quota.
pub(crate) fn refusal(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    needs: &[Need],
) -> Result<Option<QuotaExceeded>, StoreError> {
    let command = turn.asks_for_command().then_some(ONE_COMMAND);
    let needs = command.into_iter().chain(needs.iter().copied());
    exceeded(turn, namespace, &needs.collect::<SmallVec<[Need; 4]>>())
}

/// The first quota around the namespace that does not suffice.
pub(super) fn exceeded(
    rows: &mut impl QuotaRows,
    namespace: &Namespace,
    needs: &[Need],
) -> Result<Option<QuotaExceeded>, StoreError> {
    let limited = limited(rows, namespace)?;
    let is_rate = |need: &Need| need.0.kind() == DimensionKind::Rate;
    for looks_at_rates in [true, false] {
        for limited in &limited {
            for need in needs.iter().filter(|need| is_rate(need) == looks_at_rates) {
                if let Some(exceeded) = limited.exceeded(rows, *need)? {
                    return Ok(Some(exceeded));
                }
            }
        }
    }
    Ok(None)
}

/// Spends what the accepted work needs of the rates that are limited.
pub(crate) fn spend(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    (dimension, amount): Need,
) -> Result<(), StoreError> {
    for Limited { scope, quota } in limited(turn, namespace)? {
        let Some(limit) = quota.limits.get(&dimension) else {
            continue;
        };
        let now_ms = turn.now_ms();
        let key = (scope, dimension);
        let add = |window: &mut QuotaWindowRecord| {
            Window::of_minute(*limit).add(&mut window.slices, amount, now_ms);
        };
        if turn.edit::<QuotaWindows, _>(&key, add)?.is_none() {
            let mut window = QuotaWindowRecord::default();
            add(&mut window);
            turn.put::<QuotaWindows>(&key, window);
        }
    }
    Ok(())
}

/// The quotas around the namespace. A cluster without any costs nothing.
fn limited(rows: &mut impl QuotaRows, namespace: &Namespace) -> Result<Vec<Limited>, StoreError> {
    let mut limited = Vec::new();
    if rows.quotas_count()? == 0 {
        return Ok(limited);
    }
    for scope in QuotaScope::around(namespace) {
        if let Some(quota) = rows.row::<Quotas>(&scope)? {
            limited.push(Limited { scope, quota });
        }
    }
    Ok(limited)
}

impl Limited {
    /// What the need exceeds, if its dimension is limited.
    fn exceeded(
        &self,
        rows: &mut impl QuotaRows,
        need: Need,
    ) -> Result<Option<QuotaExceeded>, StoreError> {
        let (dimension, amount) = need;
        let Some(limit) = self.quota.limits.get(&dimension).copied() else {
            return Ok(None);
        };
        let exceeded = |used| QuotaExceeded {
            dimension,
            scope: self.scope.clone(),
            limit,
            used,
            retry_after_ms: None,
        };
        match dimension.kind() {
            DimensionKind::Rate => {
                let slices = rows.row::<QuotaWindows>(&(self.scope.clone(), dimension))?;
                let slices = slices.as_ref().map_or(&[][..], |window| &window.slices);
                let (window, now_ms) = (Window::of_minute(limit), rows.now_ms());
                let room = window.has_room_at_ms(slices, amount, now_ms);
                let is_possible = amount <= limit;
                Ok(room.map(|room_at_ms| QuotaExceeded {
                    retry_after_ms: is_possible.then(|| room_at_ms.saturating_sub(now_ms)),
                    ..exceeded(window.held(slices, now_ms))
                }))
            }
            DimensionKind::Count => {
                let used = self.used(rows, dimension)?;
                let is_exceeded = amount > 0 && used.saturating_add(amount) > limit;
                Ok(is_exceeded.then(|| exceeded(used)))
            }
            DimensionKind::Item => Ok((amount > limit).then(|| exceeded(amount))),
        }
    }

    /// What the scope uses of a counted dimension, with what the turn has noted.
    fn used(
        &self,
        rows: &mut impl QuotaRows,
        dimension: QuotaDimension,
    ) -> Result<u64, StoreError> {
        assert_ne!(
            self.scope,
            QuotaScope::Defaults,
            "the defaults limit nothing themselves"
        );
        let stored = usages(rows, &self.scope)?;
        let stored = stored.iter().map(|usage| usage.of(dimension)).sum::<u64>();
        let changes = rows.changes().iter();
        let noted = changes.filter(|change| change.dimension == dimension);
        let noted = noted.filter(|change| self.contains(&change.namespace));
        let noted = noted.map(|change| change.by).sum::<i64>();
        Ok(stored.saturating_add_signed(noted))
    }

    fn contains(&self, namespace: &Namespace) -> bool {
        match &self.scope {
            QuotaScope::Defaults => false,
            QuotaScope::Namespace(own) => own == namespace,
            QuotaScope::Tree(tree) => *tree == namespace.tree(),
        }
    }
}
