//! A measurement from its setup to its report.

use super::chart;
use super::load::{Connections, Load, LoadFlags, Measured, Meter, Work, drive};
use super::report::{Conditions, Report};
use super::report_flags::ReportFlags;
use super::usage::{self, Snapshot};
use crate::failure::Failure;
use crate::session::Session;
use crate::time;
use flotilla_client::Client;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A measurement.
pub(super) struct Bench<'a> {
    session: &'a Session,
    flags: &'a LoadFlags,
    report: &'a ReportFlags,
    connections: Connections,
    meter: Arc<Meter>,
}

/// A sample of all counters.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The counters of the nodes.
    pub(super) nodes: Snapshot,
    /// The CPU time of this process, in milliseconds.
    pub(super) own_cpu_ms: i64,
    /// When the sample was taken.
    pub(super) at: Instant,
    /// When it was taken, by this machine's clock, in milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
}

impl<'a> Bench<'a> {
    /// A measurement of this load, with stages of these names.
    ///
    /// # Errors
    /// As [`Session::client`], and if the figure's file cannot be written.
    pub(super) fn open(
        session: &'a Session,
        flags: &'a LoadFlags,
        report: &'a ReportFlags,
        stages: &[&'static str],
    ) -> Result<Self, Failure> {
        report.check()?;
        Ok(Self {
            session,
            flags,
            report,
            connections: Connections::open(session, flags.connections())?,
            meter: Arc::new(Meter::new(stages)),
        })
    }

    /// The client that calls the cluster.
    pub(super) fn client(&self) -> &Client {
        self.connections.first()
    }

    /// Where the work records its stages.
    pub(super) fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    /// Runs the load on the cluster and prints the report.
    ///
    /// # Errors
    /// The first error, if nothing was done.
    pub(super) async fn measure<W: Work>(
        &self,
        work: W,
        conditions: Conditions,
    ) -> Result<(), Failure> {
        let (measured, looks) = self.load(Arc::new(work)).await?;
        self.conclude(measured, conditions, &looks)
    }

    /// Runs the load on the cluster.
    ///
    /// # Errors
    /// If signals cannot be caught.
    pub(super) async fn load<W: Work>(
        &self,
        work: Arc<W>,
    ) -> Result<(Measured, [Look; 2]), Failure> {
        let load = Load {
            flags: self.flags,
            connections: &self.connections,
            meter: self.meter.clone(),
        };
        drive(load, work, async || self.look().await).await
    }

    /// Samples the counters of the nodes and of this process.
    pub(super) async fn look(&self) -> Look {
        Look {
            nodes: usage::look(self.session, self.client()).await,
            own_cpu_ms: own_cpu_ms(),
            at: Instant::now(),
            at_ms: time::now_ms(),
        }
    }

    /// Prints the report and draws the figure.
    ///
    /// # Errors
    /// The first error, if nothing was done; or if the report cannot be printed or drawn.
    pub(super) fn conclude(
        &self,
        mut measured: Measured,
        conditions: Conditions,
        looks: &[Look; 2],
    ) -> Result<(), Failure> {
        let is_all_failed = measured.is_all_failed();
        let error = measured.error.take();
        let conditions = Conditions {
            labels: self.report.labels(),
            ..conditions
        };
        let mut report = Report::new(self.flags, conditions, &measured, looks);
        report.error = error.as_ref().map(|error| error.message().to_owned());
        self.session.output.value(&report, Report::text)?;
        if let Some(path) = &self.report.plot {
            chart::write(path, &chart::of_one(&report))?;
        }
        match error {
            Some(error) if is_all_failed => Err(error),
            Some(_) | None => Ok(()),
        }
    }
}

impl Look {
    /// The share of one core that this process has used since an earlier sample, in percent.
    pub(super) fn own_cpu_percent(&self, before: &Self) -> Option<f64> {
        let used = u64::try_from(self.own_cpu_ms - before.own_cpu_ms).ok()?;
        let passed = self.at.saturating_duration_since(before.at);
        (!passed.is_zero())
            .then(|| Duration::from_millis(used).as_secs_f64() / passed.as_secs_f64() * 100.0)
    }
}

fn own_cpu_ms() -> i64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| {
        usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds()
    })
}
