//! What an attack did to a cluster and to its honest clients.

use super::Needs;
use super::bench::{BenchReport, Period};
use super::load::{LoadKind, Served};
use super::memory_group::MemoryLimit;
use std::fmt::{self, Write};
use std::time::Duration;

/// How much longer the calls of quiet clients may take than before.
const P99_RATIO_MAX: u64 = 2;

/// What an attack did.
#[derive(Clone, Debug)]
pub struct AttackResult {
    /// The attack's name.
    pub name: &'static str,
    /// What was done.
    pub what: String,
    /// The most memory that each node used during the attack, in bytes.
    pub peaks: Vec<u64>,
    /// The memory that each node was given, in bytes.
    pub memory_bytes: u64,
    /// How that was limited.
    pub memory_limit: MemoryLimit,
    /// How many processes the system killed because the memory of their control group was used up.
    pub oom_kills: u64,
    /// How often the leader changed.
    pub leader_changes: u64,
    /// The honest clients before the attack.
    pub calm: Served,
    /// The honest clients during the attack.
    pub attacked: Served,
    /// What `flo bench` measured, if it ran.
    pub bench: Option<BenchRates>,
    /// How long the honest clients took to be nearly as fast as before; `None` if too long.
    pub recovery: Option<Duration>,
    /// The nodes that ended by themselves.
    pub ended: Vec<u64>,
    /// What must not have happened.
    violations: Vec<String>,
}

/// What `flo bench` measured before and during an attack.
#[derive(Clone, Copy, Debug)]
pub struct BenchRates {
    /// The runs that completed per second before the attack; 0 if it printed no report.
    pub calm_per_s: u64,
    /// The same during the attack; `None` if it did not run until the end of the attack.
    pub attacked_per_s: Option<u64>,
    /// The runs that failed despite retries, before, during and right after the attack.
    pub errors: u64,
}

impl BenchRates {
    /// What it measured in the two periods.
    pub(super) fn of(report: Option<&BenchReport>, [calm, attacked]: [Period; 2]) -> Self {
        let rate = |period| report?.runs_per_s(period);
        Self {
            calm_per_s: rate(calm).unwrap_or(0),
            attacked_per_s: rate(attacked),
            errors: report.map_or(0, |report| report.errors),
        }
    }

    fn judge(self, needs: &Needs) -> Vec<String> {
        if needs.throughput_min == 0 {
            return Vec::new();
        }
        let mut violations = Vec::new();
        if self.calm_per_s == 0 || self.attacked_per_s.is_none() {
            violations.push(
                "expected `flo bench` to report its throughput for both periods, but it did not"
                    .to_owned(),
            );
        } else if self.throughput() < needs.throughput_min {
            violations.push(format!(
                "expected `flo bench` to complete at least {} % of its {} runs per second, but it completed {} %",
                needs.throughput_min,
                self.calm_per_s,
                self.throughput()
            ));
        }
        if self.errors > 0 {
            violations.push(format!(
                "expected no run of `flo bench` to fail, but {} did",
                self.errors
            ));
        }
        violations
    }

    /// The throughput during the attack, in percent of that before it.
    fn throughput(self) -> u64 {
        self.attacked_per_s.unwrap_or(0) * 100 / self.calm_per_s.max(1)
    }
}

/// What was measured.
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) what: String,
    pub(super) peaks: Vec<u64>,
    pub(super) memory_limit: MemoryLimit,
    pub(super) oom_kills: u64,
    pub(super) leader_changes: u64,
    pub(super) calm: Served,
    pub(super) attacked: Served,
    pub(super) bench: Option<BenchRates>,
    /// Why the attack was too weak to show anything.
    pub(super) shortfall: Option<String>,
    pub(super) recovery: Option<Duration>,
    pub(super) ended: Vec<u64>,
}

impl AttackResult {
    /// Judges what was measured.
    pub(super) fn of(measured: Measured, needs: &Needs) -> Self {
        let mut result = Self {
            name: measured.name,
            what: measured.what,
            peaks: measured.peaks,
            memory_bytes: needs.memory_bytes,
            memory_limit: measured.memory_limit,
            oom_kills: measured.oom_kills,
            leader_changes: measured.leader_changes,
            calm: measured.calm,
            attacked: measured.attacked,
            bench: measured.bench,
            recovery: measured.recovery,
            ended: measured.ended,
            violations: Vec::new(),
        };
        result.violations = result.judge(needs);
        result.violations.extend(measured.shortfall);
        result
    }

    /// Whether nothing happened that must not happen.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.violations.is_empty()
    }

    /// The throughput of the honest clients during the attack, in percent of that before it.
    #[must_use]
    pub fn throughput(&self) -> u64 {
        self.attacked.per_second() * 100 / self.calm.per_second().max(1)
    }

    fn judge(&self, needs: &Needs) -> Vec<String> {
        let mut violations = Vec::new();
        let mut expect = |holds: bool, text: String| {
            if !holds {
                violations.push(text);
            }
        };
        let peak = self.peaks.iter().max().copied().unwrap_or(0);
        expect(
            peak <= self.memory_bytes,
            format!(
                "expected at most {} MiB, but a node used {} MiB",
                self.memory_bytes >> 20,
                peak >> 20
            ),
        );
        expect(
            self.oom_kills == 0,
            format!(
                "expected the memory of the nodes' control groups to suffice, but the system killed {} processes",
                self.oom_kills
            ),
        );
        expect(
            self.ended.is_empty(),
            format!(
                "expected all nodes to continue, but these ended: {:?}",
                self.ended
            ),
        );
        expect(
            self.throughput() >= needs.throughput_min,
            format!(
                "expected {} % of the throughput, but it was {} %",
                needs.throughput_min,
                self.throughput()
            ),
        );
        expect(
            needs.load == LoadKind::Busy
                || self.attacked.p99_us <= P99_RATIO_MAX * self.calm.p99_us,
            format!(
                "expected a 99th percentile of at most {P99_RATIO_MAX} times {} ms, but it was {} ms",
                ms(self.calm.p99_us),
                ms(self.attacked.p99_us)
            ),
        );
        expect(
            self.attacked.failed == 0 || needs.throughput_min == 0,
            format!("expected no call to fail, but {} did", self.attacked.failed),
        );
        expect(
            needs.hits_leader || self.attacked.probes_failed == 0,
            format!(
                "expected every probe to be answered, but {} were not",
                self.attacked.probes_failed
            ),
        );
        expect(
            self.recovery.is_some(),
            "expected the clients to be as fast as before the attack, but they are not".to_owned(),
        );
        violations.extend(self.judge_leader(needs));
        violations.extend(self.bench.map_or(Vec::new(), |bench| bench.judge(needs)));
        violations
    }

    /// Whether the leader changed exactly if the attack is on it.
    fn judge_leader(&self, needs: &Needs) -> Option<String> {
        match (needs.hits_leader, self.leader_changes) {
            (false, 0) | (true, 1..) => None,
            (false, changes) => Some(format!(
                "expected the leader to stay, but it changed {changes} times"
            )),
            (true, 0) => Some(
                "expected the attack to stop the leader, but it still leads: the attack was too weak"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for AttackResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_sound() { "ok" } else { "FAILED" };
        let (limit_mib, limit) = (self.memory_bytes >> 20, self.memory_limit.name());
        write!(
            formatter,
            "{} {verdict}: {}; {limit_mib} MiB for each node by {limit}",
            self.name, self.what
        )?;
        for violation in &self.violations {
            write!(formatter, "\n  {violation}")?;
        }
        Ok(())
    }
}

/// A time in milliseconds, with one decimal.
fn ms(us: u64) -> String {
    format!("{}.{}", us / 1_000, us / 100 % 10)
}

/// A row for each attack, in Markdown.
#[must_use]
pub fn table(results: &[AttackResult]) -> String {
    let mut text = String::from(
        "| attack | memory of the nodes | limit | leader changes | calls/s before | during | | runs/s before | during | | \
         p99 before | during | failed calls | failed probes | recovery | verdict |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for result in results {
        let peaks: Vec<String> = result
            .peaks
            .iter()
            .map(|peak| (peak >> 20).to_string())
            .collect();
        let recovery = match result.recovery {
            Some(recovery) => format!("{:.0} s", recovery.as_secs_f64()),
            None => "none".to_owned(),
        };
        let bench = match result.bench {
            Some(BenchRates {
                attacked_per_s: None,
                calm_per_s,
                ..
            }) => format!("{calm_per_s} | | not measured"),
            Some(bench) => format!(
                "{} | {} | {} %",
                bench.calm_per_s,
                bench.attacked_per_s.unwrap_or(0),
                bench.throughput()
            ),
            None => " | |".to_owned(),
        };
        writeln!(
            text,
            "| `{}` | {} MiB | {} MiB ({}) | {} | {} | {} | {} % | {bench} | {} ms | {} ms | {} | {} | {recovery} | {} |",
            result.name,
            peaks.join(", "),
            result.memory_bytes >> 20,
            result.memory_limit.name(),
            result.leader_changes,
            result.calm.per_second(),
            result.attacked.per_second(),
            result.throughput(),
            ms(result.calm.p99_us),
            ms(result.attacked.p99_us),
            result.attacked.failed,
            result.attacked.probes_failed,
            if result.is_sound() { "ok" } else { "failed" },
        )
        .expect("a string takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let served = |calls| Served {
            calls,
            ms: 1_000,
            ..Served::default()
        };
        Measured {
            name: "flood",
            what: "much".to_owned(),
            peaks: vec![100 << 20, 200 << 20],
            memory_limit: MemoryLimit::Flag,
            oom_kills: 0,
            leader_changes: 0,
            calm: served(1_000),
            attacked: served(600),
            bench: Some(BenchRates {
                calm_per_s: 100,
                attacked_per_s: Some(70),
                errors: 0,
            }),
            shortfall: None,
            recovery: Some(Duration::ZERO),
            ended: Vec::new(),
        }
    }

    #[test]
    fn an_attack_that_a_cluster_withstands_is_sound_and_each_failure_is_named() {
        let needs = Needs::default();
        let sound = AttackResult::of(measured(), &needs);
        assert!(sound.is_sound(), "{sound}");
        assert!(table(&[sound]).contains(
            "| `flood` | 100, 200 MiB | 1024 MiB (flag) | 0 | 1000 | 600 | 60 % | 100 | 70 | 70 % |"
        ));
        let mut failed = measured();
        failed.peaks = vec![2 << 30];
        failed.memory_limit = MemoryLimit::ControlGroup;
        failed.oom_kills = 2;
        failed.leader_changes = 1;
        failed.attacked.calls = 400;
        failed.attacked.failed = 1;
        failed.attacked.probes_failed = 1;
        failed.recovery = None;
        failed.shortfall = Some("expected more".to_owned());
        failed.bench = Some(BenchRates {
            calm_per_s: 100,
            attacked_per_s: Some(40),
            errors: 1,
        });
        failed.ended = vec![2];
        let failed = AttackResult::of(failed, &needs);
        assert_eq!(failed.violations.len(), 11, "{failed}");
        assert!(table(&[failed]).contains("| 1024 MiB (control group) |"));
    }

    #[test]
    fn an_attack_on_the_leader_must_stop_it() {
        let weak = AttackResult::of(measured(), &Needs::of_leader());
        assert_eq!(weak.violations.len(), 1, "{weak}");
        let mut strong = measured();
        strong.leader_changes = 1;
        let strong = AttackResult::of(strong, &Needs::of_leader());
        assert!(strong.is_sound(), "{strong}");
    }
}
