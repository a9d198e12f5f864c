//! Computes the firings of schedules (W40), which the leader's driver needs before it proposes one,
//! so that the log carries the result and not the computation (design rule 1).
//!
//! A firing that is late was missed, and is not made up unless the schedule has a
//! `catchup_window_ms`. But the last one before now still fires within [`FIRING_LATENESS_MS_MAX`]:
//! a change of leaders takes seconds, and must not cost a daily schedule its day.

use crate::cron::{Cron, CronInvalid};
use flotilla_engine::NextFiring;
use flotilla_engine::definition::{Schedule, Timing};
use flotilla_engine::limits::{CATCHUP_FIRINGS_MAX, FIRING_LATENESS_MS_MAX};
use flotilla_engine::view::DueSchedule;
use flotilla_engine::{Body, FireSchedule, SetNextFiring};

/// The firings of a schedule: of its cron expression, or of its interval.
#[derive(Clone, Debug)]
pub struct Firings {
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Cron(Box<Cron>),
    Interval { origin_ms: u64, every_ms: u64 },
}

impl Firings {
    /// The firings of `schedule`, whose definition was created at `created_at_ms`: an interval
    /// starts there, and its first firing is one interval later.
    ///
    /// # Errors
    /// [`CronInvalid`] if the expression or its zone is unknown, which can happen if this node's
    /// time zone database is older than that of the node that accepted it.
    pub fn new(schedule: &Schedule, created_at_ms: u64) -> Result<Self, CronInvalid> {
        let rule = match &schedule.timing {
            Timing::Cron {
                expression,
                timezone,
            } => Rule::Cron(Box::new(Cron::new(expression, timezone)?)),
            Timing::Interval { every_ms } => Rule::Interval {
                origin_ms: created_at_ms,
                every_ms: (*every_ms).max(1),
            },
        };
        Ok(Self { rule })
    }

    /// The first firing after `after_ms`, both in milliseconds; `None` past the end of the calendar.
    #[must_use]
    pub fn after(&self, after_ms: u64) -> Option<u64> {
        match &self.rule {
            Rule::Cron(cron) => cron.next_firing(after_ms),
            Rule::Interval {
                origin_ms,
                every_ms,
            } => {
                let steps = after_ms.saturating_sub(*origin_ms) / every_ms + 1;
                steps.checked_mul(*every_ms)?.checked_add(*origin_ms)
            }
        }
    }

    /// The first firing at `from_ms` or later.
    fn from(&self, from_ms: u64) -> Option<u64> {
        self.after(from_ms.saturating_sub(1))
    }

    /// The last firing from `from_ms` up to and including `until_ms`.
    fn last(&self, from_ms: u64, until_ms: u64) -> Option<u64> {
        if let Rule::Interval {
            origin_ms,
            every_ms,
        } = self.rule
        {
            let steps = until_ms.checked_sub(origin_ms)? / every_ms;
            let last = origin_ms + steps * every_ms;
            return (steps > 0 && last >= from_ms).then_some(last);
        }
        let mut last = None;
        let mut next = self.from(from_ms);
        while let Some(firing) = next.filter(|firing| *firing <= until_ms) {
            last = Some(firing);
            next = self.after(firing);
        }
        last
    }

    /// A time such that at most [`CATCHUP_FIRINGS_MAX`] firings lie between it and `now_ms`, and
    /// not many fewer; `from_ms` itself if there are no more.
    fn within_bound(&self, mut from_ms: u64, now_ms: u64) -> u64 {
        loop {
            let mut next = self.from(from_ms);
            let mut count = 0;
            while let Some(firing) = next.filter(|firing| *firing <= now_ms) {
                count += 1;
                if count > CATCHUP_FIRINGS_MAX {
                    break;
                }
                next = self.after(firing);
            }
            if count <= CATCHUP_FIRINGS_MAX {
                return from_ms;
            }
            from_ms += (now_ms - from_ms) / 2 + 1;
        }
    }
}

/// The command for a due schedule at `now_ms`: its firing, or the planning of its next one.
///
/// # Errors
/// [`CronInvalid`] as for [`Firings::new`].
pub fn command(due: &DueSchedule, now_ms: u64) -> Result<Option<Body>, CronInvalid> {
    let (workflow, definition) = (due.workflow.clone(), due.definition);
    let Some(expected_ms) = due.next.due_ms() else {
        return Ok(None);
    };
    let firings = Firings::new(&due.schedule, due.created_at_ms)?;
    let next = next_firing(&firings, due, expected_ms, now_ms);
    let is_planned = matches!(due.next, NextFiring::At { .. });
    Ok(Some(if is_planned && next == Some(expected_ms) {
        Body::FireSchedule(FireSchedule {
            workflow,
            definition,
            expected_ms,
            next_ms: firings.after(expected_ms),
        })
    } else {
        Body::SetNextFiring(SetNextFiring {
            workflow,
            definition,
            expected_ms,
            next_ms: next,
        })
    }))
}

/// The first firing from `expected_ms` on that is not missed.
fn next_firing(firings: &Firings, due: &DueSchedule, expected_ms: u64, now_ms: u64) -> Option<u64> {
    let reaching_back = |window_ms: u64| expected_ms.max(now_ms.saturating_sub(window_ms));
    let made_up_from_ms = match due.schedule.catchup_window_ms {
        0 => expected_ms.max(now_ms),
        window_ms => firings.within_bound(reaching_back(window_ms), now_ms),
    };
    let next = firings.from(made_up_from_ms);
    if next.is_some_and(|next| next <= now_ms) {
        return next;
    }
    let late_from_ms = reaching_back(FIRING_LATENESS_MS_MAX);
    firings.last(late_from_ms, now_ms).or(next)
}
