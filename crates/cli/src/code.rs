//! The codes of failures that the command line itself finds; all others come from the client or the
//! server.

use crate::failure::Exit;

/// Makes [`Code`] from the table: name, code, exit, meaning.
macro_rules! codes {
    ($($name:ident $code:literal $exit:ident $meaning:literal;)*) => {
        /// The code of a failure that the command line itself finds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// All of them, in the order of their names.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published spelling, in snake case.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The exit code.
            pub(crate) fn exit(self) -> Exit {
                match self {
                    $(Self::$name => Exit::$exit,)*
                }
            }

            /// What it means, in a sentence.
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
        "`flo action invoke --wait`: the action run ended, and not well.";
    ActionTypeMismatch "action_type_mismatch" Refused
        "`flo worker exec` names an action of type wasm, which the nodes run themselves.";
    AddressInvalid "address_invalid" Usage
        "An address given to `flo cluster restore` is not HOST:PORT.";
    AuthorityInvalid "authority_invalid" Usage
        "`flo cert dev` finds an authority in the folder that it cannot use.";
    BackupInvalid "backup_invalid" Usage
        "The file is no backup, or is damaged or cut short.";
    BackupStopped "backup_stopped" Retryable
        "`flo cluster backup` was stopped before its end.";
    BenchOutputWrong "bench_output_wrong" Refused
        "`flo bench`: a run's output is not what its input and its steps make of it.";
    BenchStopped "bench_stopped" Retryable
        "`flo bench` was stopped before there was anything to report.";
    CertificatesNotMade "certificates_not_made" Machine
        "`flo cert dev` cannot make its files.";
    ClusterNotFormed "cluster_not_formed" Retryable
        "`flo cluster status`: the first members have not all met yet.";
    ConfigInvalid "config_invalid" Usage
        "A configuration file is missing, or something in it is wrong.";
    DataDir "data_dir" Machine
        "The folder for the data cannot be made.";
    DataDirDiverged "data_dir_diverged" Refused
        "The state in a data directory is known to differ from that of the other nodes.";
    DataDirInUse "data_dir_in_use" Refused
        "A node runs on the data directory.";
    DataDirInvalid "data_dir_invalid" Usage
        "The folder is not the data directory of a member.";
    DataDirNotEmpty "data_dir_not_empty" Refused
        "The folder for a backup's data has something in it.";
    DataDirUnreadable "data_dir_unreadable" Machine
        "The data directory is damaged, or cannot be read.";
    DefinitionForm "definition_form" Refused
        "`flo workflow graph` cannot read the definition that the server holds.";
    DefinitionInvalid "definition_invalid" Refused
        "The definition has errors, which are listed before.";
    DrainCutShort "drain_cut_short" Retryable
        "`flo worker exec` was stopped a second time, and gave up what it still ran.";
    DrainTimeout "drain_timeout" Retryable
        "`flo worker exec` was stopped, and some of its tasks outlasted the drain.";
    FileExists "file_exists" Refused
        "The file to be written exists.";
    FileUnreadable "file_unreadable" Usage
        "A file that the command names cannot be read.";
    FileUnwritable "file_unwritable" Machine
        "A file that the command names cannot be written.";
    InputUnreadable "input_unreadable" Usage
        "The input that the command names (a file, or stdin) cannot be read.";
    JsonInvalid "json_invalid" Usage
        "An argument that is to be JSON is not.";
    LogInvalid "log_invalid" Usage
        "The filter of `--log` cannot be read.";
    ModuleMalformed "module_malformed" Usage
        "The file given with `--wasm` is no WebAssembly.";
    NoLeader "no_leader" Retryable
        "`flo cluster status`: no node leads.";
    NoWorker "no_worker" Retryable
        "`flo bench steps --workers 0`: no worker takes the tasks within `--timeout`.";
    Output "output" Machine
        "The result cannot be written to stdout.";
    PortInvalid "port_invalid" Usage
        "`flo dev --port` leaves no room for the other ports above it.";
    ProgramMissing "program_missing" Usage
        "A program given to `flo worker exec` is not there, or cannot be run.";
    RunNotCompleted "run_not_completed" Refused
        "`flo workflow start --wait`: the run ended, and not well.";
    Runtime "runtime" Machine
        "The system gives the process no threads.";
    ServerEnded "server_ended" Machine
        "The server cannot go on.";
    ServerNotConfigured "server_not_started" Usage
        "The server cannot start with these settings.";
    ServerNotStarted "server_not_started" Refused
        "The server cannot start: a port is taken, a folder is another node's, or peers say no.";
    Signal "signal" Machine
        "The process cannot catch signals.";
    TriggerNotFound "trigger_not_found" NotFound
        "`flo workflow trigger`: the workflow has no trigger.";
    Usage "usage" Usage
        "The command line cannot be read.";
    WaitTimeout "wait_timeout" Retryable
        "`--wait-timeout` is over; the run goes on.";
}
