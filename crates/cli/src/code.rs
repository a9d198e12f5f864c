//! The codes of failures that the command line itself detects; all others come from the client or
//! the server.

use crate::failure::Exit;

/// Generates [`Code`] from the table: name, code, exit, meaning.
macro_rules! codes {
    ($($name:ident $code:literal $exit:ident $meaning:literal;)*) => {
        /// The code of a failure that the command line itself detects.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// All codes, in the order of their names.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published spelling, in snake case.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The exit code of the process.
            pub(crate) fn exit(self) -> Exit {
                match self {
                    $(Self::$name => Exit::$exit,)*
                }
            }

            /// Its meaning, as one sentence.
            #[cfg(test)]
            pub(crate) fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    ActionRepeated "action_repeated" Usage
        "`flo worker exec` names an action twice.";
    ActionRunNotCompleted "action_run_not_completed" Refused
        "`flo action invoke --wait`: the action run did not complete successfully.";
    ActionTypeMismatch "action_type_mismatch" Refused
        "`flo worker exec` names an action of type wasm, which the nodes run themselves.";
    AddressInvalid "address_invalid" Usage
        "An address given to `flo cluster restore` is not HOST:PORT.";
    AuthorityInvalid "authority_invalid" Usage
        "`flo cert dev` found an authority in the directory that it cannot use.";
    BackupInvalid "backup_invalid" Usage
        "The file is not a backup, or is damaged or truncated.";
    BackupInterrupted "backup_interrupted" Retryable
        "`flo cluster backup` was stopped before it finished.";
    BenchOutputMismatch "bench_output_mismatch" Refused
        "`flo bench`: a run's output does not match its input and steps.";
    BenchInterrupted "bench_interrupted" Retryable
        "`flo bench` was stopped before there was anything to report.";
    CertificateCreationFailed "certificate_creation_failed" Machine
        "`flo cert dev` cannot create its files.";
    ClusterNotFormed "cluster_not_formed" Retryable
        "`flo cluster status`: the first members have not formed the cluster yet.";
    ConfigInvalid "config_invalid" Usage
        "A configuration file is missing or invalid.";
    DataDirUnwritable "data_dir_unwritable" Machine
        "The data directory cannot be created or written.";
    DataDirDiverged "data_dir_diverged" Refused
        "The state in the data directory differs from that of the other nodes.";
    DataDirInUse "data_dir_in_use" Refused
        "A running node uses the data directory.";
    DataDirInvalid "data_dir_invalid" Usage
        "The directory is not the data directory of a member.";
    DataDirNotEmpty "data_dir_not_empty" Refused
        "The directory to restore a backup into is not empty.";
    DataDirUnreadable "data_dir_unreadable" Machine
        "The data directory is damaged or unreadable.";
    DefinitionUnreadable "definition_unreadable" Refused
        "`flo workflow graph` cannot read the stored definition.";
    DefinitionInvalid "definition_invalid" Refused
        "The definition has errors, which are listed above.";
    DrainInterrupted "drain_interrupted" Retryable
        "`flo worker exec` received a second stop signal and abandoned its running tasks.";
    DrainTimeout "drain_timeout" Retryable
        "`flo worker exec` was stopped, and some tasks did not finish before the drain timeout.";
    ExpressionFailed "expression_failed" Refused
        "`flo expr eval`: the expression has no value for this data.";
    ExpressionInvalid "expression_invalid" Refused
        "`flo expr eval`: the expression is not CEL, or uses a name that the data does not have.";
    FileExists "file_exists" Refused
        "The file to write already exists.";
    FileUnreadable "file_unreadable" Usage
        "A file that the command names cannot be read.";
    FileUnwritable "file_unwritable" Machine
        "A file that the command names cannot be written.";
    InputUnreadable "input_unreadable" Usage
        "The input (a file or stdin) cannot be read.";
    JsonInvalid "json_invalid" Usage
        "An argument that must be JSON is not valid JSON.";
    LogFilterInvalid "log_filter_invalid" Usage
        "The filter of `--log` is invalid.";
    ModuleMalformed "module_malformed" Usage
        "The file given with `--wasm` is not a WebAssembly module.";
    NoLeader "no_leader" Retryable
        "`flo cluster status`: no node leads.";
    NoWorker "no_worker" Retryable
        "`flo bench steps --workers 0`: no worker took a task within `--timeout`.";
    NotServing "not_serving" Retryable
        "`flo cluster health`, `flo cluster status`: the node does not serve clients, or is about to stop.";
    OutputUnwritable "output_unwritable" Machine
        "The result cannot be written to stdout.";
    PortInvalid "port_invalid" Usage
        "`flo dev --port` is too high: not all ports above it exist.";
    ProgramMissing "program_missing" Usage
        "A program given to `flo worker exec` does not exist or is not executable.";
    RecoveryTimeout "recovery_timeout" Retryable
        "`flo auth recover`: no running node has carried out the request within `--timeout`.";
    RunNotCompleted "run_not_completed" Refused
        "`flo workflow start --wait`: the run ended without completing.";
    RuntimeStartFailed "runtime_start_failed" Machine
        "The system cannot create threads for the process.";
    ServerFailed "server_failed" Machine
        "The server failed while running.";
    ServerNotConfigured "server_start_failed" Usage
        "The server cannot start with these settings.";
    ServerStartFailed "server_start_failed" Refused
        "The server cannot start: a port is in use, the data directory belongs to another node, or peers refuse it.";
    SignalHandlerFailed "signal_handler_failed" Machine
        "The process cannot install signal handlers.";
    TriggerNotFound "trigger_not_found" NotFound
        "`flo workflow trigger`: the workflow has no triggers.";
    Usage "usage" Usage
        "The command line is invalid.";
    WaitTimeout "wait_timeout" Retryable
        "`--wait-timeout` expired; the run continues.";
}
