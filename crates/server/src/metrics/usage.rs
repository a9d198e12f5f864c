//! A node's resource usage, for load measurements.

use super::folder;
use super::process::Process;
use crate::context::Context;
use flotilla_api::v1;
use std::sync::Arc;
use std::time::Duration;

/// This node's current usage. `None` if the thread that read it failed.
pub(crate) async fn usage(context: Arc<Context>) -> Option<v1::NodeUsage> {
    // It asks the disk.
    tokio::task::spawn_blocking(move || look(&context))
        .await
        .ok()
}

fn look(context: &Context) -> v1::NodeUsage {
    let metrics = &context.metrics;
    let counters = context.node_gateway.home().replica().counters();
    let process = Process::now();
    v1::NodeUsage {
        node_id: context.node.0,
        uptime_ms: whole_ms(metrics.began.elapsed()),
        cpu_ms: process.cpu.map(whole_ms),
        resident_bytes: process.resident_bytes,
        written_bytes: process.written_bytes,
        log_fsync_count: metrics.log_sync.read().count(),
        log_written_bytes: counters.log_bytes,
        commands_proposed: counters.commands_proposed,
        entries_proposed: counters.entries_proposed,
        entries_applied: counters.entries_applied,
        data_bytes: folder::bytes(&context.data_directory).ok(),
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
