//! A measurement from its setup to what it prints.

use super::load::{Connections, Load, LoadFlags, Measured, Meter, Work, drive};
use super::report::ReportView;
use crate::failure::Failure;
use crate::session::Session;
use flotilla_client::Client;
use flotilla_client::v1::GetStatusRequest;
use std::sync::Arc;

/// A measurement.
pub(super) struct Bench<'a> {
    session: &'a Session,
    flags: &'a LoadFlags,
    workload: &'static str,
    connections: Connections,
    meter: Arc<Meter>,
}

/// What a report tells beside what was measured.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// How many steps a run has, where steps are work.
    pub(super) steps_per_run: Option<u16>,
    /// How large the inputs are, where that can be chosen. In bytes.
    pub(super) payload_bytes: Option<u32>,
}

impl<'a> Bench<'a> {
    /// A measurement with this load, of work whose parts have these names.
    ///
    /// # Errors
    /// As [`Session::client`].
    pub(super) fn open(
        session: &'a Session,
        workload: &'static str,
        flags: &'a LoadFlags,
        stages: &[&'static str],
    ) -> Result<Self, Failure> {
        Ok(Self {
            session,
            flags,
            workload,
            connections: Connections::open(session, flags.connections())?,
            meter: Arc::new(Meter::new(stages)),
        })
    }

    /// Calls the cluster.
    pub(super) fn client(&self) -> &Client {
        self.connections.first()
    }

    /// Where parts of the work are noted.
    pub(super) fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    /// Puts the load on the cluster and prints what came of it.
    ///
    /// # Errors
    /// When nothing was done, the reason.
    pub(super) async fn measure<W: Work>(self, work: W, figures: Figures) -> Result<(), Failure> {
        let load = Load {
            flags: self.flags,
            connections: &self.connections,
            meter: self.meter.clone(),
        };
        let client = self.client();
        let look = async || last_log_index(client).await;
        let (measured, [before, after]) = drive(load, Arc::new(work), look).await?;
        self.report(measured, figures, after.saturating_sub(before))
    }

    fn report(
        &self,
        mut measured: Measured,
        figures: Figures,
        entries: u64,
    ) -> Result<(), Failure> {
        let is_all_failed = measured.is_all_failed();
        let view = ReportView::new((self.workload, self.flags), figures, &measured, entries);
        self.session.output.value(&view, ReportView::text)?;
        match measured.error.take() {
            Some(error) if is_all_failed => Err(error),
            Some(_) | None => Ok(()),
        }
    }
}

/// The end of the longest log.
async fn last_log_index(client: &Client) -> Result<u64, Failure> {
    let status = client.get_status(GetStatusRequest {}).await?;
    let ends = status.nodes.iter().map(|node| node.last_log_index);
    Ok(ends.max().unwrap_or_default())
}
