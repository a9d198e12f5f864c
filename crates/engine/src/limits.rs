//! All limits of the engine, in one place (design rule 13).
//!
//! A value over a limit is rejected with a clear message before proposal; the engine checks again those that its own
//! work can exceed.

use std::num::NonZeroUsize;

/// A payload: a run's input, a step's output, a signal's content. In bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// How deep a payload may nest.
pub const JSON_DEPTH_MAX: usize = 100;
/// The text of a definition (W1). In bytes.
pub const DEFINITION_BYTES_MAX: usize = 1 << 20;
/// A WASM module. In bytes.
pub const MODULE_BYTES_MAX: usize = 4 << 20;
/// A command, and the commands of a log entry together. In bytes.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;
/// The weight at which a log entry is full and further commands go into the next one: the size of the commands, and
/// [`LISTED_ROW_BYTES`] for each row that they list. The budget of an entry admits this much, unless definitions or
/// payloads multiply it. In bytes.
pub const ENTRY_WEIGHT_BYTES_MAX: usize = 4 << 20;
/// What each row that a command lists, such as a record to append, adds to its weight. In bytes.
pub const LISTED_ROW_BYTES: usize = 160;
/// Commands in one log entry.
pub const ENTRY_COMMANDS_MAX: usize = 1_024;
/// Offers in one log entry (design rule 3).
pub const ENTRY_OFFERS_MAX: usize = 256;

/// Workflows in a namespace (W5).
pub const WORKFLOWS_MAX: u64 = 10_000;
/// Revisions of a workflow, all its versions together (W5): none is deleted before the workflow.
pub const REVISIONS_MAX: u32 = 10_000;
/// The texts of the revisions of a workflow, together (W5). In bytes.
pub const REVISIONS_BYTES_MAX: u64 = 256 << 20;
/// Names of workflows, actions, plans and steps (W0, A1). In bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// An identity or an approver, with its kind: the longest has the text of a subject (X7a). In bytes.
pub const IDENTITY_BYTES_MAX: usize = 320;
/// Outcomes (W11). In bytes.
pub const OUTCOME_BYTES_MAX: usize = 64;
/// Namespaces (A41). In bytes.
pub const NAMESPACE_BYTES_MAX: usize = 63;
/// What an index keeps of a search attribute's value (W22). In bytes.
pub const ATTRIBUTE_KEY_BYTES_MAX: usize = 64;
/// A reason, error message or detail that is kept; longer ones are cut. In bytes.
pub const MESSAGE_BYTES_MAX: usize = 4_096;

/// Steps that a run takes between two waits, including immediate retries and those of its children (W16).
pub const RUN_STEPS_MAX: u32 = 256;
/// The largest `maxSteps` and `loopWarnAfter` of a definition (W78).
pub const STEPS_COUNTED_MAX: u32 = 1_000_000;
/// How often a run visits a step before its detail warns of it, unless the definition says otherwise (W78).
pub const LOOP_WARN_AFTER_DEFAULT: u32 = 100;
/// Steps that a run enters or retries immediately in all of its scopes together, since one of them last waited for
/// something from outside (W16).
pub const UNWAITED_STEPS_MAX: u32 = 1_000_000;
/// Steps of all runs in one turn before it is continued: more than one run takes without a wait.
pub const TURN_STEPS_MAX: usize = 2 * RUN_STEPS_MAX as usize;
/// Rows that a turn looks up, visits or writes before it is continued.
pub const TURN_ROWS_MAX: usize = 10_000;
/// Contents that a turn reads before it is continued. In bytes.
pub const TURN_READ_BYTES_MAX: usize = 16 << 20;
/// What a turn writes before it is continued. In bytes.
pub const TURN_WRITTEN_BYTES_MAX: usize = 2 << 20;
/// As [`TURN_ROWS_MAX`], of all turns of an entry.
pub const ENTRY_ROWS_MAX: usize = 50_000;
/// As [`TURN_READ_BYTES_MAX`], of all turns of an entry. In bytes.
pub const ENTRY_READ_BYTES_MAX: usize = 32 << 20;
/// As [`TURN_WRITTEN_BYTES_MAX`], of all turns of an entry. In bytes.
pub const ENTRY_WRITTEN_BYTES_MAX: usize = 6 << 20;
/// Work items that one continuation resumes.
pub const CONTINUED_WORKS_MAX: usize = 256;
/// The payloads that the paths of one mapping, or of all search attributes together, read. In bytes.
pub const MAPPING_READ_BYTES_MAX: usize = 16 << 20;
/// From this size on, a value that a mapping takes from the run's input is not stored again. In bytes.
pub const SHARED_BYTES_MIN: usize = 1_024;
/// A value that is shared has at least this part of the input, because its readers read the whole input.
pub const SHARED_PART_MIN: usize = 16;
/// What a part of a payload counts for besides its text. In bytes.
pub const PAYLOAD_PART_BYTES: usize = 24;
/// What an event counts for besides its texts and lists. In bytes.
pub const EVENT_BYTES: usize = 64;
/// What the id of a record counts for. In bytes.
pub const RECORD_ID_BYTES: usize = 16;
/// Paths of a mapping, or of a cache's key.
pub const MAPPING_PATHS_MAX: usize = 256;
/// Search attributes of a definition (W22).
pub const ATTRIBUTES_MAX: usize = 64;
/// A search attribute's value, as JSON text (W22). In bytes.
pub const ATTRIBUTE_BYTES_MAX: usize = 2_048;
/// The search attributes of a run together (W22). In bytes.
pub const ATTRIBUTES_BYTES_MAX: usize = 16 << 10;
/// An encoded record of a table: far below the decoder's limit. In bytes.
pub const RECORD_BYTES_MAX: usize = ENTRY_BYTES_MAX;
/// The part of such a record that clients and definitions determine. In bytes.
pub const RECORD_CONTENT_BYTES_MAX: usize = RECORD_BYTES_MAX - (64 << 10);
/// Inputs that a definition declares (W68).
pub const INPUTS_MAX: usize = 256;
/// How far in the future a step may wait (W79): 3,660 days, in milliseconds.
pub const WAIT_MS_MAX: u64 = 3_660 * 24 * 60 * 60 * 1_000;
/// Hops of a record for which a trigger starts a run: the runs that led to it, each started by a record of the one before
/// it (W62).
pub const HOPS_MAX: u8 = 16;
/// Levels of child runs (W17).
pub const NESTING_MAX: u16 = 16;
/// Steps in a definition.
pub const STEPS_MAX: usize = 4_096;
/// Branches of a step (W55).
pub const BRANCHES_MAX: usize = 64;
/// Different outcomes of `flo.End.NAME` in a definition (W51).
pub const ENDS_MAX: usize = 1_024;
/// Blocks around a block (W55).
pub const NESTED_BLOCKS_MAX: usize = 16;
/// The path of a scope, which has up to two names and two numbers for each nested block (W53). In bytes.
pub const SCOPE_PATH_BYTES_MAX: usize = 16 << 10;
/// Steps of a run that can be active at the same time (W55).
pub const ACTIVE_STEPS_MAX: usize = 1_000;
/// What a read of a run shows of its active steps, and also of its open scopes. In bytes.
pub const RUN_TREE_BYTES_MAX: u64 = 128 << 10;
/// The state of a run, and what a scope below it writes (W66). In bytes.
pub const STATE_BYTES_MAX: usize = 256 << 10;
/// What the open scopes of a run write to the state, together (W58). In bytes.
pub const STATE_WRITES_BYTES_MAX: u64 = 1 << 20;
/// Values that a step writes to the state (W63).
pub const STATE_WRITES_MAX: usize = 64;
/// The text of an expression (W64). In bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4_096;
/// The texts of the expressions of a definition, together (W64). In bytes.
pub const EXPRESSIONS_BYTES_MAX: usize = 128 << 10;
/// Expressions of a definition (W64).
pub const EXPRESSIONS_MAX: usize = 1_024;
/// How deep the operations of an expression nest (W64).
pub const EXPRESSION_DEPTH_MAX: usize = 64;
/// What an evaluation costs at most, in units: one per operation and element, and per [`EXPRESSION_UNIT_BYTES`] (W64).
pub const EXPRESSION_COST_MAX: u32 = 100_000;
/// The bytes that an expression reads, compares or makes for one unit (W64). A unit counts for as many bytes of the
/// budget of its turn. In bytes.
pub const EXPRESSION_UNIT_BYTES: usize = 64;
/// Instructions of the compiled regular expressions of an expression, together (W64).
pub const PATTERN_INSTRUCTIONS_MAX: usize = 4_096;
/// Instructions of the regular expressions of a definition, together (W64).
pub const PATTERNS_INSTRUCTIONS_MAX: usize = 32_768;
/// Items over which a step iterates (W57).
pub const ITEMS_MAX: usize = 10_000;
/// Iterations of a step that run at the same time (W57).
pub const CONCURRENT_ITERATIONS_MAX: u16 = 100;
/// Rows of items that one piece of work writes or deletes (W57, design rule 13).
pub const ITEMS_PER_BATCH_MAX: u32 = 256;
/// The code of a failed item that its step keeps (W57). In bytes.
pub const ITEM_CODE_BYTES_MAX: usize = 128;
/// The message of a failed item that its step keeps (W57). In bytes.
pub const ITEM_MESSAGE_BYTES_MAX: usize = 512;
/// Failed items that the error of their step lists (W57).
pub const FAILED_ITEMS_SHOWN_MAX: usize = 100;
/// Approvers of a step, and its quorum (W61).
pub const APPROVERS_MAX: usize = 100;
/// The names of all approvers of a step together (W61). In bytes.
pub const APPROVERS_BYTES_MAX: usize = 8 << 10;
/// Approvers that the history names of a step (W61).
pub const APPROVERS_SHOWN_MAX: usize = 10;
/// The comment of a decision (W61). In bytes.
pub const COMMENT_BYTES_MAX: usize = 4_096;
/// Signals of one run that wait for a step, or that an open block with a retry policy has taken (W19, W69).
pub const SIGNALS_KEPT_MAX: u32 = 10_000;
/// The payloads of those signals, together. In bytes.
pub const SIGNALS_KEPT_BYTES_MAX: u64 = 16 << 20;
/// Signals of one attempt at a block that are put back or discarded in one batch (W69, design rule 13).
pub const TAKEN_SIGNALS_PER_BATCH_MAX: usize = 256;
/// Ids of signals that one run remembers: the newest ones (W19).
pub const SIGNAL_IDS_MAX: u64 = 10_000;
/// Events in a run's history before its middle is trimmed (design rule 13).
pub const HISTORY_EVENTS_MAX: u64 = 10_000;
/// Events at the start of a history that trimming keeps.
pub const HISTORY_HEAD_EVENTS: u64 = 100;
/// Trimmed events between two sweeps of what only they refer to. A sweep costs about as much as reading the results of
/// the run's steps and its waiting signals.
pub const HISTORY_SWEEP_EVENTS: u64 = 1_000;
/// Action runs, and also payloads, that one such sweep drops at most; the next turn of the run continues.
pub const HISTORY_SWEEP_ROWS_MAX: usize = 1_000;
/// Action runs that one sweep looks at: more than can be in use at the same time, and those that it may delete.
pub const HISTORY_SWEEP_LOOKED_AT_MAX: usize = 4_000;

/// Events of a run that are read, besides those that end visits, to find when these visits began and
/// what happened in between.
pub const VISIT_EVENTS_LOOKED_AT_MAX: usize = 1_000;
/// Events in the span of a step; beyond that, the first and the last ones are kept.
pub const VISIT_EVENTS_MAX: usize = 100;

/// The combined size of the outputs and the state that a run takes over from the run that it retries, in bytes (W90).
/// Includes the state changes that are read to reconstruct that state.
pub const TAKEN_OVER_BYTES_MAX: usize = 4 << 20;

/// Results of steps that a report looks at.
pub const REPORTED_RESULTS_MAX: usize = 20_000;
/// Names in what one attempt has used (W87).
pub const USAGE_NAMES_MAX: usize = 16;
/// The length of such a name. In bytes.
pub const USAGE_NAME_BYTES_MAX: usize = 64;
/// Names in the sums of a step or a run.
pub const USAGE_SUMS_MAX: usize = 64;

/// Attempts at the beginning of a visit that a report shows (W87).
pub const REPORTED_FIRST_ATTEMPTS: usize = 10;
/// Attempts at the end of a visit that a report shows.
pub const REPORTED_LAST_ATTEMPTS: usize = 90;

/// Plans in a definition.
pub const PLANS_MAX: usize = 64;
/// Events that a plan's `invalidate_on` lists (W37).
pub const INVALIDATION_EVENTS_MAX: usize = 32;
/// Plans that one command invalidates at most; the rest follows in further commands (W37).
pub const INVALIDATED_PLANS_MAX: usize = 1_000;
/// Executors in a plan.
pub const EXECUTORS_MAX: usize = 64;
/// Results that the health of an executor is computed from (W31): the newest ones count.
pub const HEALTH_SAMPLES_MAX: u32 = 100;
/// Probes that a half-open breaker lets through concurrently (W32); a higher setting counts as this.
pub const PROBES_MAX: u32 = 1_000;
/// Time slices of a rate window (W33). Up to this many calls per window, each call keeps its own time.
pub const RATE_SLICES: u32 = 64;
/// Results that a plan may cache (W37).
pub const CACHED_RESULTS_MAX: u64 = 10_000;
/// The outputs that a plan may cache, together (W37). In bytes.
pub const CACHED_BYTES_MAX: u64 = 64 << 20;
/// A cache key, after its placeholders are filled; results under longer ones are not cached (W37). In bytes.
pub const CACHE_KEY_BYTES_MAX: usize = 4_096;
/// Cached results that are evicted for a new one, at most. If that is not enough, the new result is not cached.
pub const CACHE_EVICTIONS_MAX: usize = 16;
/// The pause between two sweeps of a plan's expired results. In milliseconds.
pub const CACHE_SWEEP_PAUSE_MS: u64 = 1_000;

/// Attempts of an action or step (E401).
pub const ATTEMPTS_MAX: u32 = 1_000;
/// The delays that a `retry` block lists (W71).
pub const RETRY_DELAYS_MAX: usize = 100;
/// The outcomes, and the codes of errors, that a `retry` block lists (W71).
pub const RETRY_NAMES_MAX: usize = 64;
/// The longest delay before an action's retry (A1). In milliseconds.
pub const ACTION_RETRY_DELAY_MS_MAX: u64 = 3_600_000;
/// An action's timeout, a group's ack timeout, how far one touch extends a lease, and the redelivery
/// delay of a nacked record. In milliseconds.
pub const LEASE_MS_MAX: u64 = 24 * 3_600_000;
/// Tasks that one command assigns.
pub const TASKS_ASSIGNED_MAX: usize = ENTRY_COMMANDS_MAX;
/// Tasks per read of a queue.
pub const READY_BATCH_TASKS_MAX: usize = 32;
/// Sets of labels that the open action runs of one action may require (A3). Each set has its own queue, and each
/// assignment considers all of them.
pub const LABEL_QUEUES_MAX: usize = 128;
/// Queues of ready tasks whose head is kept in memory (design rule 4).
pub const QUEUE_HEADS_MAX: usize = 65_536;
/// Labels of a worker or action run (A3).
pub const LABELS_MAX: usize = 64;
/// Processes (actions) that one worker may list.
pub const PROCESSES_MAX: usize = 1_024;
/// Slots of one worker.
pub const SLOTS_MAX: u32 = 10_000;
/// Leases of a worker that is gone that one command frees; the rest follows in later entries (A4).
pub const LEASES_FREED_MAX: usize = 256;
/// Leases of a worker that one command lets expire; the rest follows in later entries (A4).
pub const LEASES_EXPIRED_MAX: usize = 256;
/// Leases that a worker begins or extends before the first one that ends is looked for again: those that are over leave
/// tombstones in front of it.
pub const LEASES_BEGUN_MAX: u32 = 4_096;
/// Workers in one namespace (A20).
pub const WORKERS_MAX: u64 = 10_000;
/// Processes of one worker that are remembered as replaced (A20).
pub const REPLACED_PROCESSES_MAX: usize = 16;
/// Time without a heartbeat after which a worker is unhealthy (A20). In milliseconds.
pub const WORKER_SILENCE_MS_MAX: u64 = 90_000;
/// Grace that a new leader gives to every lease and worker (A4). In milliseconds.
pub const LEADER_GRACE_MS: u64 = 10_000;
/// How late a schedule's last firing may be without counting as missed, so that a leader change misses
/// none (W40). In milliseconds.
pub const FIRING_LATENESS_MS_MAX: u64 = LEADER_GRACE_MS;
/// Missed firings of one schedule that are made up in one batch, at most (W40).
pub const CATCHUP_FIRINGS_MAX: usize = 1_000;
/// Rows that one page of runs reads, at most. A rare match then takes more pages, and no page blocks a node (W22).
pub const RUN_QUERY_ROWS_MAX: usize = 10_000;
/// Delayed tasks that are searched for one that is released from quarantine, at most. If there are more, its delay may
/// be cut short (design rule 10).
pub const RELEASE_TIMERS_READ_MAX: usize = RUN_QUERY_ROWS_MAX;
/// Dead letters of one action (A6).
pub const DEAD_LETTERS_MAX: u64 = 10_000;
/// The inputs of the dead letters of one action, together (A6). In bytes.
pub const DEAD_LETTERS_BYTES_MAX: u64 = 64 << 20;
/// What a dead letter counts in addition to its input: about the size of its rows. In bytes.
pub const DEAD_LETTER_BYTES_OVERHEAD: u64 = 1_024;
/// Dead letters that one command requeues, at most.
pub const REQUEUED_PER_COMMAND_MAX: usize = 100;
/// The dead letters that one command requeues, together, unless a single one is larger. In bytes.
pub const REQUEUE_BYTES_MAX: u64 = 2 << 20;
/// Ended runs are kept this long by default (W4). In milliseconds.
pub const RETENTION_MS_DEFAULT: u64 = 7 * 24 * 3_600_000;

/// How long a stand-alone action run waits for a worker before it ends `timed_out` (A2). In milliseconds.
pub const ACTION_RUN_WAIT_MS_MAX: u64 = RETENTION_MS_DEFAULT;

/// Hot records that are kept decoded (design rule 4).
pub const CACHE_RECORDS_MAX: NonZeroUsize = NonZeroUsize::new(32_768).expect("above zero");
/// Hot records that are kept decoded, by their encoded length with the keys. In bytes.
pub const CACHE_BYTES_MAX: usize = 64 << 20;
/// Rows that one page of a list reads, at most, so that a rare match cannot block a node.
pub const PAGE_ROWS_LOOKED_AT_MAX: usize = 100_000;
/// What one page of a list reads before it ends, including the rows that it does not list. In bytes.
pub const PAGE_BYTES_LOOKED_AT_MAX: u64 = 16 << 20;

/// How many compensations a run has to make at most (W82). A step with a compensation fails while there are as many.
pub const COMPENSATIONS_MAX: u32 = 10_000;

/// The maximum number of attempts at a run that is retried as a whole (W77).
pub const RUN_ATTEMPTS_MAX: u32 = 100;

/// The attempts at such a run, unless the definition says otherwise.
pub const RUN_ATTEMPTS_DEFAULT: u32 = 10;

/// How long a handler of a run may take, unless the definition says otherwise (W83). In milliseconds.
pub const HANDLER_MS_DEFAULT: u64 = 60 * 60 * 1_000;

/// The longest delay that an action gives for what follows it (W74). In milliseconds.
pub const STEP_DELAY_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1_000;

/// How long an accepted request id is remembered (design rule 9), while there is room for it. In milliseconds.
pub const REQUEST_WINDOW_MS: u64 = 10 * 60_000;
/// How long a client may retry: a request whose id was made longer ago is rejected. In milliseconds.
pub const REQUEST_RETRY_MS: u64 = REQUEST_WINDOW_MS / 2;
/// How much longer an id is never deleted: for the last retry to be applied, and for clocks that differ. In
/// milliseconds.
pub const REQUEST_RESERVE_MS: u64 = 60_000;
/// An id with a time longer ago than this only looks like a version 7 UUID, and counts as random. In milliseconds.
pub const REQUEST_AGE_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1_000;
/// Request ids that are remembered at the same time, unless `flo cluster set` sets another number; beyond it, new work is rejected in namespaces that have used up their share.
pub const REQUESTS_MAX_DEFAULT: u64 = 6_000_000;
/// The lowest value that `flo cluster set --max-request-ids` accepts.
pub const REQUESTS_MAX_LOWEST: u64 = 100_000;
/// The highest value that `flo cluster set --max-request-ids` accepts.
pub const REQUESTS_MAX_HIGHEST: u64 = 100_000_000;
/// The bytes allowed for each remembered request id: times the maximum number of ids, the bound on their total size.
pub const REQUESTS_BYTES_EACH: u64 = 180;
/// The hard bound on what is remembered when namespaces below their share exceed the two limits: a multiple of them.
pub const REQUESTS_EXCESS_FACTOR: u64 = 2;
/// The reserve beyond the two limits for commands that let open work end: one part in this many (design rule 2).
pub const REQUESTS_RESERVED_PART: u64 = 10;
/// Starts per second for which the engine is designed.
pub const STARTS_PER_SECOND: u64 = 15_000;
/// Rows that one sweep deletes at most.
pub const SWEEP_ROWS_MAX: usize = 1_000;

/// Namespaces in a cluster (A41).
pub const NAMESPACES_MAX: usize = 1_024;
/// Namespaces and trees with a quota, and the quota that new namespaces begin with (X37).
pub const QUOTAS_MAX: usize = 2 * NAMESPACES_MAX + 1;
/// Namespaces below the root of a tree, unless its quota has another limit (X37).
pub const TREE_NAMESPACES_DEFAULT: u64 = 64;
/// How long a node keeps a refusal because of a quota, and answers with it, at most (X40). In milliseconds.
pub const QUOTA_REFUSAL_KEPT_MS: u64 = 1_000;
/// API tokens of a namespace, with those that have ended and are kept (X7).
pub const NAMESPACE_TOKENS_MAX: u64 = 1_000;
/// As [`NAMESPACE_TOKENS_MAX`], of the cluster itself (X7).
pub const CLUSTER_TOKENS_MAX: u64 = 10_000;
/// Grants of an API token (X7).
pub const TOKEN_GRANTS_MAX: usize = 32;
/// Roles of approvers of one API token (W61).
pub const TOKEN_APPROVES_MAX: usize = 32;
/// Bindings that the administrators of a namespace have made (X17).
pub const NAMESPACE_BINDINGS_MAX: u64 = 1_000;
/// Bindings of the cluster and of all its namespaces together (X17).
pub const CLUSTER_BINDINGS_MAX: u64 = 10_000;
/// Subjects that are blocked (X12).
pub const BLOCKED_SUBJECTS_MAX: u64 = 10_000;
/// The name of an issuer of tokens (X12).
pub const ISSUER_NAME_BYTES_MAX: usize = 32;
/// Groups that a caller proves (X12). Each is looked up when one of its commands is judged.
pub const ACTOR_GROUPS_MAX: usize = 64;
/// As [`ACTOR_GROUPS_MAX`], the bytes of their names: each command of the caller carries them in the log.
pub const ACTOR_GROUPS_BYTES_MAX: usize = 4 << 10;
/// How long an API token lives at most, unless an administrator of the cluster creates it (X7): a year, in milliseconds.
pub const TOKEN_TTL_MS_MAX: u64 = 365 * 24 * 60 * 60 * 1_000;
/// How long the token of `flo auth recover` lives (X4): a day, in milliseconds.
pub const RECOVERY_TOKEN_TTL_MS: u64 = 24 * 60 * 60 * 1_000;
/// How long an API token that has ended is kept (X7): 30 days, in milliseconds.
pub const TOKEN_KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// How long the former secret of a token that is rotated stays valid at most (X10): 7 days, in milliseconds.
pub const TOKEN_OVERLAP_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;
/// How exactly the cluster notes when an API token was used last (X7): an hour, in milliseconds.
pub const TOKEN_USE_MS: u64 = 60 * 60 * 1_000;
/// API tokens whose use one command notes (X7).
pub const TOKEN_USES_MAX: usize = 1_000;
/// A value of the key-value store (A40). In bytes.
pub const KV_VALUE_BYTES_MAX: usize = 64 << 10;

/// Keys that the deletion of a namespace reads to find out whether one of them has not expired.
pub const KV_KEYS_LOOKED_AT_MAX: usize = (3 << 20) / KV_VALUE_BYTES_MAX;
/// Streams in a namespace (A30).
pub const STREAMS_MAX: usize = 10_000;
/// Streams of a namespace, beyond `STREAMS_MAX`, that only dead letters may create (A31).
pub const DEAD_LETTER_STREAMS_MAX: usize = 1_000;
/// Partitions of a stream (A30).
pub const PARTITIONS_MAX: u32 = 64;
/// The hard byte limit of a stream when none is given (A32).
pub const STREAM_BYTES_DEFAULT: u64 = 1 << 30;
/// What a record counts in addition to its content: about the size of its row. In bytes.
pub const RECORD_BYTES_OVERHEAD: u64 = 32;
/// Records in one append (A30).
pub const APPEND_RECORDS_MAX: usize = 1_000;
/// The records of one append. In bytes.
pub const APPEND_BYTES_MAX: usize = 3 << 20;
/// Headers of a record (A30).
pub const HEADERS_MAX: usize = 64;
/// A header of a record, name and value. In bytes.
pub const HEADER_BYTES_MAX: usize = 4_096;
/// Records of one read when no number is given (A30).
pub const READ_RECORDS_DEFAULT: usize = 10;
/// Records of one read or of one delivery (A30).
pub const READ_RECORDS_MAX: usize = 1_000;
/// The records of one read or of one delivery, the items of a page, the events of a page of a history, and a run with the
/// outputs of its steps, unless one item alone is larger. Less than the 4 MiB that gRPC clients accept by default. In bytes.
pub const READ_BYTES_MAX: u64 = 3 << 20;
/// What one sweep of a stream removes at most. In bytes.
pub const SWEEP_BYTES_MAX: u64 = 16 << 20;
/// Records of a partition that a sweep reads at a time.
pub const FRONT_BATCH_RECORDS_MAX: usize = 64;
/// As [`FRONT_BATCH_RECORDS_MAX`], unless two records are larger. In bytes.
pub const FRONT_BATCH_BYTES_MAX: u64 = 256 << 10;

/// The metadata of a run (W91). In bytes.
pub const METADATA_BYTES_MAX: usize = 16 << 10;
/// The metadata of a definition (W91). In bytes.
pub const DEFINITION_METADATA_BYTES_MAX: usize = 64 << 10;
/// The target of a run (W85). In bytes.
pub const TARGET_BYTES_MAX: usize = 1 << 10;
/// Locks of a run (W85).
pub const LOCKS_MAX: usize = 4;
/// The pattern of a lock (W85). In bytes.
pub const LOCK_PATTERN_BYTES_MAX: usize = 256;
/// Different locks that the open runs of a namespace hold (W85).
pub const OPEN_LOCKS_MAX: usize = 256;
/// Instructions of the locks that the open runs of a namespace hold, together (W85).
pub const OPEN_LOCKS_INSTRUCTIONS_MAX: usize = 4_096;
/// Concurrency limits of a workflow (W84).
pub const CONCURRENCY_LIMITS_MAX: usize = 4;
/// The largest `limit` of a concurrency limit (W84).
pub const CONCURRENCY_LIMIT_MAX: u32 = 10_000;
/// Runs that wait for a concurrency key (W84).
pub const CONCURRENCY_WAITING_MAX: u32 = 10_000;
/// The value of a concurrency key; a longer one is replaced by its digest (W84). In bytes.
pub const CONCURRENCY_VALUE_BYTES_MAX: usize = 256;
/// Runs that a rejection at a concurrency limit lists (W84).
pub const CONCURRENCY_LISTED_MAX: usize = 10;
/// Runs that a run with `onLimit: cancel_oldest` cancels at a time (W84).
pub const CONCURRENCY_CANCELLED_MAX: usize = 256;
/// Idempotency keys for which one run that holds a concurrency key was used (W84).
pub const BOUND_KEYS_MAX: u32 = 10_000;
/// How long a trigger waits at a concurrency limit before it tries again (W84). In milliseconds.
pub const TRIGGER_LIMIT_WAIT_MS: u64 = 1_000;

/// Consumer groups of a stream (A31).
pub const GROUPS_MAX: u32 = 256;
/// Consumers of a group (A31).
pub const CONSUMERS_MAX: u32 = 256;
/// Records that a group has in flight or waiting for redelivery; at the limit, no new record is delivered.
pub const PENDING_MAX: u32 = 10_000;
/// The default ack timeout of a consumer group (A31). In milliseconds.
pub const ACK_TIMEOUT_MS_DEFAULT: u64 = 30_000;
/// The default maximum number of deliveries of a record (A31).
pub const DELIVERIES_DEFAULT: u32 = 10;
/// An info entry of a run (W92). In bytes.
pub const INFO_BYTES_MAX: usize = 64 << 10;
/// Info entries of a run (W92).
pub const INFOS_MAX: u32 = 1_000;

/// Revision changes of a run (W89).
pub const RUN_REVISIONS_MAX: usize = 20;

/// Rows that a resume can assign to the steps of another revision, at most (W89).
pub const REMAPPED_ROWS_MAX: usize = 4_000;

/// Triggers of a workflow (W93).
pub const TRIGGERS_MAX: usize = 16;
/// Records of one batch of a trigger (W41).
pub const TRIGGER_BATCH_MAX: u32 = 1_000;
/// Runs that one firing of a trigger starts at most (W41): none is started once the
/// firing's turn has reached its budget.
pub const TRIGGER_RUNS_MAX: usize = 32;

const _: () = assert!(PAYLOAD_BYTES_MAX < TURN_WRITTEN_BYTES_MAX);
const _: () = assert!(TURN_WRITTEN_BYTES_MAX < ENTRY_WRITTEN_BYTES_MAX);
// Besides what they contain and list, commands write about a dozen rows each.
const _: () = assert!(
    ENTRY_WEIGHT_BYTES_MAX + ENTRY_COMMANDS_MAX * 12 * LISTED_ROW_BYTES <= ENTRY_WRITTEN_BYTES_MAX
);
const _: () = assert!(ENTRY_WEIGHT_BYTES_MAX / LISTED_ROW_BYTES <= ENTRY_ROWS_MAX);
const _: () = assert!(ENTRY_WEIGHT_BYTES_MAX <= ENTRY_BYTES_MAX);
const _: () = assert!(TAKEN_OVER_BYTES_MAX < ENTRY_WRITTEN_BYTES_MAX);
const _: () = assert!(REQUEUE_BYTES_MAX <= TURN_WRITTEN_BYTES_MAX as u64);
const _: () = assert!(MAPPING_READ_BYTES_MAX <= TURN_READ_BYTES_MAX);
// An approval's output has the comment of each decision and again that of the last one; a quote or line break takes two.
const _: () = assert!(
    (APPROVERS_MAX + 1) * (2 * COMMENT_BYTES_MAX + 2 * IDENTITY_BYTES_MAX + 128) + 1_024
        < PAYLOAD_BYTES_MAX
);
const _: () = assert!(ATTRIBUTE_KEY_BYTES_MAX < ATTRIBUTE_BYTES_MAX);
const _: () = assert!(APPEND_BYTES_MAX < ENTRY_BYTES_MAX);
const _: () = assert!(ACK_TIMEOUT_MS_DEFAULT < WORKER_SILENCE_MS_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX < APPEND_BYTES_MAX);
const _: () = assert!(TRIGGER_BATCH_MAX as usize <= READ_RECORDS_MAX);
const _: () = assert!(HEADERS_MAX * HEADER_BYTES_MAX + PAYLOAD_BYTES_MAX < APPEND_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX < ENTRY_BYTES_MAX);
const _: () = assert!(DEFINITION_BYTES_MAX < ENTRY_BYTES_MAX);
const _: () = assert!(DEFINITION_BYTES_MAX as u64 <= REVISIONS_BYTES_MAX);
const _: () = assert!(MODULE_BYTES_MAX < ENTRY_BYTES_MAX);
const _: () = assert!(DEFINITION_BYTES_MAX < CACHE_BYTES_MAX);
const _: () = assert!(HISTORY_HEAD_EVENTS < HISTORY_EVENTS_MAX);
const _: () = assert!(HISTORY_SWEEP_EVENTS < HISTORY_EVENTS_MAX);
const _: () = assert!(VISIT_EVENTS_MAX <= VISIT_EVENTS_LOOKED_AT_MAX);
const _: () = assert!(STEPS_MAX < u16::MAX as usize);
const _: () = assert!(EXECUTORS_MAX < u16::MAX as usize);
// A new latest revision may unlist all events of the old one and list its own: a read and a write each.
const _: () = assert!(4 * PLANS_MAX * INVALIDATION_EVENTS_MAX < TURN_ROWS_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX as u64 <= CACHED_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX as u64 <= SIGNALS_KEPT_BYTES_MAX);
// What a run itself shows besides the outputs of its steps: input, output, state and metadata.
const _: () = assert!(
    ((2 * PAYLOAD_BYTES_MAX + STATE_BYTES_MAX + METADATA_BYTES_MAX) as u64) < READ_BYTES_MAX
);
const _: () = assert!(READ_BYTES_MAX < PAGE_BYTES_LOOKED_AT_MAX);
const _: () =
    assert!(PAYLOAD_BYTES_MAX as u64 + DEAD_LETTER_BYTES_OVERHEAD <= DEAD_LETTERS_BYTES_MAX);
const _: () = assert!(REQUEST_RETRY_MS + REQUEST_RESERVE_MS < REQUEST_WINDOW_MS);
const _: () = assert!(
    REQUESTS_MAX_DEFAULT >= STARTS_PER_SECOND * ((REQUEST_RETRY_MS + REQUEST_RESERVE_MS) / 1_000)
);
const _: () = assert!(REQUESTS_MAX_LOWEST >= NAMESPACES_MAX as u64);
const _: () = assert!(
    REQUESTS_MAX_LOWEST <= REQUESTS_MAX_DEFAULT && REQUESTS_MAX_DEFAULT <= REQUESTS_MAX_HIGHEST
);
const _: () = assert!(ACTION_RETRY_DELAY_MS_MAX < ACTION_RUN_WAIT_MS_MAX);
const _: () = assert!(LEADER_GRACE_MS < WORKER_SILENCE_MS_MAX);
