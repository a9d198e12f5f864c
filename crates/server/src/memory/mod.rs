//! A node's memory: how much it may use, and who uses it.
//!
//! What callers and actions control counts against a pool of its owner, in bytes. The pools are parts of the node's limit, so
//! neither large requests nor large actions can take the memory that replication needs. A fixed part of the limit is reserved
//! first, for what has a bound elsewhere: the databases, caches, entries, forwarded commands and snapshots ([`FIXED_BYTES`]).

mod fair;
mod limit;
mod pool;

pub(crate) use fair::{FairPool, PoolShare, SharedReservation};
pub(crate) use pool::{MemoryPool, Reservation};

use crate::config::ServerConfig;
use crate::limits::{
    ADMIN_BYTES_MAX, CODE_BYTES_MIN, COMPILATION_BYTES_MAX, COMPILATION_BYTES_MIN, FIXED_BYTES,
    OPEN_STREAM_BYTES, OPEN_STREAMS_BYTES_MAX, OPEN_STREAMS_BYTES_MIN, QUEUE_BYTES_MAX,
    QUEUE_BYTES_MIN, READS_BYTES_MAX, READS_BYTES_MIN, RECEIVED_MESSAGES_BYTES_MAX,
    RECEIVED_MESSAGES_BYTES_MIN, REQUESTS_BYTES_MAX, REQUESTS_BYTES_MIN, RESPONSES_BYTES_MAX,
    RESPONSES_BYTES_MIN, TRIALS_MAX, VIEWS_BYTES_MAX, VIEWS_BYTES_MIN, WASM_MEMORY_BYTES_MIN,
};
use crate::namespace_permits::NamespacePermits;
use flotilla_replica::{FORWARD_BYTES_MAX, Gauges, SNAPSHOTS_BYTES_MAX};
use flotilla_wasm::MODULES_CACHED_BYTES_MAX;

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
    /// Modules of WASM actions.
    pub(crate) modules: ModuleMemory,
    /// Commands that wait for the leader's next entries; the replica counts them. In bytes.
    pub(crate) queue_bytes_max: usize,
}

/// The memory for modules of WASM actions.
#[derive(Clone, Debug)]
pub(crate) struct ModuleMemory {
    /// Trials and compilations in progress.
    pub(crate) compilations: MemoryPool,
    /// What one of them may take. In bytes.
    pub(crate) compilation_bytes: usize,
    /// Compiled code that is cached. In bytes.
    pub(crate) code_bytes_max: usize,
}

/// The memory of one owner. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedMemory {
    pub(crate) owner: &'static str,
    pub(crate) bytes: usize,
    pub(crate) bytes_max: usize,
}

impl Memory {
    /// The memory of a node, as configured; without a limit, that of its control group or machine.
    pub(crate) fn of_node(config: &ServerConfig) -> Self {
        let bytes_max = config.max_memory_bytes;
        let bytes_max = bytes_max.unwrap_or_else(limit::of_process);
        let memory = Self::divided(bytes_max, config.max_wasm_memory_bytes);
        let needed_bytes = memory.needed_bytes();
        if needed_bytes > bytes_max {
            tracing::warn!(
                bytes_max,
                needed_bytes,
                "the node may need more memory under load than it has"
            );
        }
        let wasm = memory.wasm.bytes_max();
        tracing::info!(bytes_max, wasm, "the node divides its memory");
        memory
    }

    /// Reserves the fixed memory and that of modules, and divides the rest.
    fn divided(bytes_max: u64, wasm: Option<u64>) -> Self {
        let modules = ModuleMemory::of_node(bytes_max);
        let shared =
            bytes_max.saturating_sub(FIXED_BYTES + modules.bytes() + ADMIN_BYTES_MAX as u64);
        let wasm = wasm.unwrap_or((shared / 32 * 9).max(WASM_MEMORY_BYTES_MIN));
        // By default 23 of the 32 parts.
        let part = shared.saturating_sub(wasm) / 23;
        let pool = |parts, min, max| MemoryPool::new(within(parts * part, min, max));
        let worker_streams = pool(2, OPEN_STREAMS_BYTES_MIN, OPEN_STREAMS_BYTES_MAX);
        let streams_max = worker_streams.bytes_max() / OPEN_STREAM_BYTES;
        Self {
            bytes_max,
            requests: pool(5, REQUESTS_BYTES_MIN, REQUESTS_BYTES_MAX),
            reads: pool(3, READS_BYTES_MIN, READS_BYTES_MAX),
            worker_streams,
            worker_stream_permits: NamespacePermits::new(streams_max / 8 * 7, streams_max),
            worker_messages: pool(2, RECEIVED_MESSAGES_BYTES_MIN, RECEIVED_MESSAGES_BYTES_MAX),
            responses: pool(5, RESPONSES_BYTES_MIN, RESPONSES_BYTES_MAX),
            views: pool(3, VIEWS_BYTES_MIN, VIEWS_BYTES_MAX),
            admin: MemoryPool::new(ADMIN_BYTES_MAX),
            wasm: MemoryPool::new(usize::try_from(wasm).unwrap_or(usize::MAX)),
            modules,
            queue_bytes_max: within(3 * part, QUEUE_BYTES_MIN, QUEUE_BYTES_MAX),
        }
    }

    /// All that the node may use. In bytes.
    fn needed_bytes(&self) -> u64 {
        let pools = self.pools().map(|(_, pool)| pool.bytes_max() as u64);
        let others = self.queue_bytes_max + self.modules.code_bytes_max;
        // A configured size may be any number.
        let all = pools.into_iter().chain([FIXED_BYTES, others as u64]);
        all.fold(0, u64::saturating_add)
    }

    /// The pools, each with the name of its owner.
    fn pools(&self) -> [(&'static str, &MemoryPool); 9] {
        [
            ("requests", &self.requests),
            ("reads", &self.reads),
            ("worker_streams", &self.worker_streams),
            ("worker_messages", &self.worker_messages),
            ("responses", &self.responses),
            ("views", &self.views),
            ("admin", &self.admin),
            ("wasm", &self.wasm),
            ("compilations", &self.modules.compilations),
        ]
    }

    /// How many reservations each pool had no room for, by owner.
    pub(crate) fn refused_by_owner(&self) -> [(&'static str, u64); 9] {
        let pools = self.pools();
        pools.map(|(owner, pool)| (owner, pool.refused_count()))
    }

    /// What each owner uses now: of the pools, of what the replica counts, and of the compiled code, `code_bytes`.
    pub(crate) fn by_owner(&self, gauges: &Gauges, code_bytes: usize) -> Vec<OwnedMemory> {
        let owned = |(owner, bytes, bytes_max)| OwnedMemory {
            owner,
            bytes,
            bytes_max,
        };
        let pools = self.pools();
        let pools = pools.map(|(owner, pool)| (owner, pool.bytes_reserved(), pool.bytes_max()));
        let others = [
            ("queue", gauges.waiting_bytes, self.queue_bytes_max),
            ("forwards", gauges.forward_bytes, FORWARD_BYTES_MAX as usize),
            ("snapshots", gauges.snapshot_bytes, SNAPSHOTS_BYTES_MAX),
            ("modules", code_bytes, self.modules.code_bytes_max),
        ];
        pools.into_iter().chain(others).map(owned).collect()
    }
}

impl ModuleMemory {
    fn of_node(bytes_max: u64) -> Self {
        let together_bytes = within(
            bytes_max / 8,
            COMPILATION_BYTES_MIN,
            TRIALS_MAX * COMPILATION_BYTES_MAX,
        );
        Self {
            compilations: MemoryPool::new(together_bytes),
            compilation_bytes: within(bytes_max / 16, COMPILATION_BYTES_MIN, COMPILATION_BYTES_MAX),
            code_bytes_max: within(bytes_max / 32, CODE_BYTES_MIN, MODULES_CACHED_BYTES_MAX),
        }
    }

    fn bytes(&self) -> u64 {
        (self.compilations.bytes_max() + self.code_bytes_max) as u64
    }
}

/// `bytes` within bounds.
fn within(bytes: u64, min: usize, max: usize) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).clamp(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_wasm::Limits;

    fn memory(bytes: u64) -> Memory {
        Memory::of_node(&ServerConfig {
            max_memory_bytes: Some(bytes),
            ..ServerConfig::default()
        })
    }

    #[test]
    fn all_owners_together_fit_into_the_memory_of_a_node() {
        for mib in [1_024, 1_536, 2_048, 4_096, 65_536] {
            let memory = memory(mib << 20);
            let needed = memory.needed_bytes();
            assert!(needed <= memory.bytes_max, "{mib} MiB: {needed}");
            let wasm = mib << 18;
            let memory = Memory::divided(mib << 20, Some(wasm));
            let needed = memory.needed_bytes();
            assert!(
                needed <= memory.bytes_max || mib < 2_048,
                "{mib} MiB: {needed}"
            );
        }
        let small = memory(512 << 20);
        assert!(small.needed_bytes() > small.bytes_max, "the node warns");
    }

    #[test]
    fn the_figures_of_the_documentation_are_right() {
        let mib = |pool: &MemoryPool| pool.bytes_max() >> 20;
        let small = memory(1 << 30);
        assert_eq!(small.worker_streams.bytes_max() / OPEN_STREAM_BYTES, 597);
        let (requests, wasm) = (mib(&small.requests), mib(&small.wasm));
        assert_eq!((FIXED_BYTES >> 20, requests, wasm), (632, 35, 63));
        let large = memory(2 << 30);
        assert_eq!((mib(&large.requests), mib(&large.wasm)), (170, 306));
    }

    #[test]
    fn compilations_are_bounded_by_the_memory_of_the_node() {
        for (gib, each, together, code) in
            [(1, 128, 128, 32), (2, 128, 256, 64), (64, 256, 512, 128)]
        {
            let modules = memory(gib << 30).modules;
            let found = [
                modules.compilation_bytes,
                modules.compilations.bytes_max(),
                modules.code_bytes_max,
            ];
            assert_eq!(found.map(|bytes| bytes >> 20), [each, together, code]);
        }
    }

    #[test]
    fn each_owner_is_shown_with_what_it_uses() {
        let memory = memory(2 << 30);
        let _reserved = memory.modules.compilations.try_reserve(1 << 20);
        let gauges = Gauges {
            waiting_bytes: 2,
            forward_bytes: 3,
            snapshot_bytes: 4,
            ..Gauges::default()
        };
        let owners = memory.by_owner(&gauges, 5).into_iter();
        let used = owners.filter(|owned| owned.bytes > 0);
        let used: Vec<_> = used.map(|owned| (owned.owner, owned.bytes)).collect();
        let expected = [
            ("compilations", 1 << 20),
            ("queue", 2),
            ("forwards", 3),
            ("snapshots", 4),
            ("modules", 5),
        ];
        assert_eq!(used, expected);
    }

    #[test]
    fn a_large_machine_does_not_make_the_bounds_meaningless() {
        let memory = memory(1 << 40);
        assert_eq!(memory.requests.bytes_max(), REQUESTS_BYTES_MAX);
        assert_eq!(memory.queue_bytes_max, QUEUE_BYTES_MAX);
    }

    #[test]
    fn wasm_has_its_part_of_the_memory_or_what_is_configured() {
        let wasm = memory(1 << 30).wasm.bytes_max();
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
