//! A node's memory: how much it may use, and who uses it.
//!
//! What callers and actions control counts against a pool of its owner, in bytes. The pools are parts of the node's limit, so
//! neither large requests nor large actions can take the memory that replication needs.

mod fair;
mod limit;
mod pool;

pub(crate) use fair::{FairPool, PoolShare};
pub(crate) use pool::{MemoryPool, Reservation};

use crate::config::ServerConfig;
use crate::limits::{
    ADMIN_BYTES_MAX, MEMORY_BYTES_MIN, OPEN_STREAM_BYTES, OPEN_STREAMS_BYTES_MAX,
    OPEN_STREAMS_BYTES_MIN, QUEUE_BYTES_MAX, QUEUE_BYTES_MIN, READS_BYTES_MAX, READS_BYTES_MIN,
    RECEIVED_MESSAGES_BYTES_MAX, RECEIVED_MESSAGES_BYTES_MIN, REQUESTS_BYTES_MAX,
    REQUESTS_BYTES_MIN, RESPONSES_BYTES_MAX, RESPONSES_BYTES_MIN, VIEWS_BYTES_MAX, VIEWS_BYTES_MIN,
    WASM_MEMORY_BYTES_MIN,
};
use crate::namespace_permits::NamespacePermits;

/// The memory of a node.
#[derive(Debug)]
pub(crate) struct Memory {
    /// What the sizes of the pools follow from. In bytes.
    pub(crate) bytes_max: u64,
    /// Requests: what has arrived of them, their decoded form and their copies, until they are answered.
    pub(crate) requests: MemoryPool,
    /// Reads of many or large rows, until their results are responses.
    pub(crate) reads: MemoryPool,
    /// Open workers' streams.
    pub(crate) worker_streams: MemoryPool,
    /// Permits for these streams. The last eighth is reserved for namespaces below their share.
    pub(crate) worker_stream_permits: NamespacePermits,
    /// Messages that workers' streams have received, until they are handled. One more may be received beyond the pool.
    pub(crate) worker_messages: MemoryPool,
    /// Responses and messages of streams, until they are sent.
    pub(crate) responses: MemoryPool,
    /// What watches have read, until all of it is a response.
    pub(crate) views: MemoryPool,
    /// Requests and responses at the port of operators.
    pub(crate) admin: MemoryPool,
    /// Calls of WASM actions, each with what it may take.
    pub(crate) wasm: MemoryPool,
}

impl Memory {
    /// The memory of a node, as configured; without a limit, that of its control group or machine.
    pub(crate) fn of_node(config: &ServerConfig) -> Self {
        let bytes_max = config.max_memory_bytes;
        let bytes_max = bytes_max.unwrap_or_else(limit::of_process);
        let wasm = config.max_wasm_memory_bytes;
        let wasm = wasm.unwrap_or((bytes_max / 4).max(WASM_MEMORY_BYTES_MIN));
        if bytes_max < MEMORY_BYTES_MIN {
            tracing::warn!(
                bytes_max,
                expected_bytes = MEMORY_BYTES_MIN,
                "the node has less memory than it needs under load"
            );
        }
        tracing::info!(bytes_max, wasm, "the node divides its memory");
        let streams_bytes = part(
            bytes_max,
            32,
            OPEN_STREAMS_BYTES_MIN,
            OPEN_STREAMS_BYTES_MAX,
        );
        let streams_max = streams_bytes / OPEN_STREAM_BYTES;
        Self {
            bytes_max,
            requests: MemoryPool::new(part(bytes_max, 8, REQUESTS_BYTES_MIN, REQUESTS_BYTES_MAX)),
            reads: MemoryPool::new(part(bytes_max, 32, READS_BYTES_MIN, READS_BYTES_MAX)),
            worker_streams: MemoryPool::new(streams_bytes),
            worker_stream_permits: NamespacePermits::new(streams_max / 8 * 7, streams_max),
            worker_messages: MemoryPool::new(part(
                bytes_max,
                32,
                RECEIVED_MESSAGES_BYTES_MIN,
                RECEIVED_MESSAGES_BYTES_MAX,
            )),
            responses: MemoryPool::new(part(
                bytes_max,
                8,
                RESPONSES_BYTES_MIN,
                RESPONSES_BYTES_MAX,
            )),
            views: MemoryPool::new(part(bytes_max, 16, VIEWS_BYTES_MIN, VIEWS_BYTES_MAX)),
            admin: MemoryPool::new(ADMIN_BYTES_MAX),
            wasm: MemoryPool::new(usize::try_from(wasm).unwrap_or(usize::MAX)),
        }
    }

    /// The part for commands that wait for the leader's next entries. In bytes.
    pub(crate) fn queue_bytes_max(&self) -> usize {
        part(self.bytes_max, 16, QUEUE_BYTES_MIN, QUEUE_BYTES_MAX)
    }

    /// The pools, each with the name of its owner.
    pub(crate) fn pools(&self) -> [(&'static str, &MemoryPool); 8] {
        [
            ("requests", &self.requests),
            ("reads", &self.reads),
            ("worker_streams", &self.worker_streams),
            ("worker_messages", &self.worker_messages),
            ("responses", &self.responses),
            ("views", &self.views),
            ("admin", &self.admin),
            ("wasm", &self.wasm),
        ]
    }
}

/// One of `parts` equal parts of `total`, within bounds. In bytes.
fn part(total: u64, parts: u64, min: usize, max: usize) -> usize {
    usize::try_from(total / parts)
        .unwrap_or(usize::MAX)
        .clamp(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MESSAGE_COPIES, RECEIVED_MESSAGE_BYTES_MAX};
    use flotilla_wasm::Limits;

    fn memory(bytes: u64) -> Memory {
        Memory::of_node(&ServerConfig {
            max_memory_bytes: Some(bytes),
            ..ServerConfig::default()
        })
    }

    #[test]
    fn the_parts_of_a_node_fit_into_its_memory() {
        for mib in [256, 512, 1_024, 2_048, 65_536] {
            let memory = memory(mib << 20);
            let pools = memory.pools().map(|(_, pool)| pool.bytes_max());
            let completed = MESSAGE_COPIES * RECEIVED_MESSAGE_BYTES_MAX;
            let parts = pools.into_iter().sum::<usize>() + memory.queue_bytes_max() + completed;
            assert!(
                parts as u64 <= memory.bytes_max / 5 * 4,
                "{mib} MiB: {parts}"
            );
        }
    }

    #[test]
    fn a_large_machine_does_not_make_the_bounds_meaningless() {
        let memory = memory(1 << 40);
        assert_eq!(memory.requests.bytes_max(), REQUESTS_BYTES_MAX);
        assert_eq!(memory.queue_bytes_max(), QUEUE_BYTES_MAX);
    }

    #[test]
    fn wasm_has_a_quarter_of_the_memory_or_what_is_configured() {
        let wasm = memory(1 << 30).wasm.bytes_max();
        assert_eq!(wasm, 256 << 20);
        assert!(
            Limits::default().call_bytes() <= wasm,
            "a call with the default limits fits"
        );
        let configured = Memory::of_node(&ServerConfig {
            max_wasm_memory_bytes: Some(WASM_MEMORY_BYTES_MIN),
            ..ServerConfig::default()
        });
        assert_eq!(configured.wasm.bytes_max() as u64, WASM_MEMORY_BYTES_MIN);
    }
}
