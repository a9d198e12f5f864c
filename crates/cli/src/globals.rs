//! The flags that all commands accept.

use crate::logging::LogFormat;
use crate::output::Format;
use crate::period;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// The flags that all commands accept.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Nodes to call; any node will do, and the others are tried if one fails
    #[arg(
        long,
        global = true,
        env = "FLO_ENDPOINT",
        hide_env_values = true,
        value_name = "HOST:PORT,…",
        value_delimiter = ',',
        default_value = "127.0.0.1:9000"
    )]
    pub(crate) endpoint: Vec<String>,

    /// PEM file with the authorities whose certificates to trust; enables TLS
    #[arg(
        long,
        global = true,
        env = "FLO_TLS_CA",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) tls_ca: Option<PathBuf>,

    /// PEM file with the certificate that identifies you to nodes with TLS
    #[arg(
        long,
        global = true,
        env = "FLO_TLS_CERT",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) tls_cert: Option<PathBuf>,

    /// PEM file with the key of that certificate
    #[arg(
        long,
        global = true,
        env = "FLO_TLS_KEY",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) tls_key: Option<PathBuf>,

    /// File with the API token to show [default: the token in $FLO_TOKEN, if it is set]
    #[arg(
        long,
        global = true,
        env = "FLO_TOKEN_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) token_file: Option<PathBuf>,

    /// Namespace to use [default: default, or the one that a definition names]
    #[arg(
        short,
        long,
        global = true,
        env = "FLO_NAMESPACE",
        hide_env_values = true
    )]
    pub(crate) namespace: Option<String>,

    /// Trace context (W3C) of the caller; runs that the call starts become part of that trace
    #[arg(
        long,
        global = true,
        env = "TRACEPARENT",
        hide_env_values = true,
        value_name = "TEXT"
    )]
    pub(crate) traceparent: Option<String>,

    /// Output format
    #[arg(
        short = 'o',
        long,
        global = true,
        env = "FLO_FORMAT",
        hide_env_values = true,
        value_enum,
        default_value_t = Format::Text
    )]
    pub(crate) format: Format,

    /// Maximum duration of a call, including retries: 10s, 500ms, 2m, or a number of seconds
    #[arg(
        long,
        global = true,
        env = "FLO_TIMEOUT",
        hide_env_values = true,
        value_name = "TIME",
        value_parser = period::parse,
        default_value = "10s"
    )]
    pub(crate) timeout: Duration,

    /// Log filter for stderr, such as `info` or `flotilla_client=debug` [default: info for servers,
    /// warn otherwise]
    #[arg(
        long,
        global = true,
        env = "FLO_LOG",
        hide_env_values = true,
        value_name = "FILTER"
    )]
    pub(crate) log: Option<String>,

    /// Log format
    #[arg(
        long,
        global = true,
        env = "FLO_LOG_FORMAT",
        hide_env_values = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t = LogFormat::Text
    )]
    pub(crate) log_format: LogFormat,
}
