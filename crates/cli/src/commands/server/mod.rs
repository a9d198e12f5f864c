//! `flo server`: one node of a cluster.

mod settings;
mod waiting;

use self::settings::Settings;
use crate::failure::Failure;
use crate::module_compiler;
use crate::open_files;
use crate::output;
use crate::shutdown::Shutdown;
use crate::supervisor::Supervisor;
use clap::Args;
use flotilla_server::{ServerConfig, ServerError};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  flo server --data-dir /var/lib/flo
  flo server --config flo.toml --listen 127.0.0.1:9010

Example of a configuration file:
  node_id = 1
  listen = \"10.0.0.1:9000\"
  peer_listen = \"10.0.0.1:9001\"
  data_dir = \"/var/lib/flo\"
  peers = [\"1=10.0.0.1:9001\", \"2=10.0.0.2:9001\", \"3=10.0.0.3:9001\"]
  bootstrap_token_file = \"/etc/flo/bootstrap.token\"
  keyring_file = \"/etc/flo/keyring\"
  tls_cert = \"/etc/flo/node.pem\"
  tls_key = \"/etc/flo/node-key.pem\"
  tls_ca = \"/etc/flo/ca.pem\"

Flags override environment variables, which override the file. Exit codes: 0 stopped by SIGTERM or
Ctrl-C, or removed from the cluster; 2 bad configuration; 3 could not start; 6 failed while running.";

/// Run one node of a cluster
///
/// Prints one line once a leader serves the node; until then the log says what the node waits for.
/// Logs go to stderr. SIGTERM or Ctrl-C stops the node gracefully.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Server {
    /// TOML file with these flags as snake_case keys; flags and variables override it
    #[arg(long, value_name = "FILE", env = "FLO_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Settings,
}

impl Server {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        serve(self.config()?).await
    }

    /// The node's configuration: flags and environment variables override the file.
    ///
    /// # Errors
    /// `config_invalid` if the file cannot be read, a key is unknown or a value is malformed.
    pub(crate) fn config(&self) -> Result<ServerConfig, Failure> {
        let mut config = self.settings.over_file(self.config.as_deref())?;
        config.module_compiler = Some(module_compiler::of_this_program());
        Ok(config)
    }
}

async fn serve(config: ServerConfig) -> Result<(), Failure> {
    let mut shutdown = Shutdown::new()?;
    open_files::raise_limit();
    let node_id = config.node_id;
    let supervisor = Supervisor::of_process();
    let server = tokio::select! {
        server = flotilla_server::Server::start(config) => server,
        () = shutdown.requested() => return Ok(()),
    };
    let server = match server {
        Ok(server) => server,
        Err(error) if error.is_removal() => return tell_end(&error),
        Err(error) => return Err(Failure::server_start(&error)),
    };
    let is_stopping = tokio::select! {
        ready = server.ready() => match ready {
            Ok(()) => {
                let address = server.client_address();
                output::write(&format!("node {node_id} serves clients at {address}\n"))?;
                supervisor.ready(server.liveness());
                false
            }
            Err(error) => return tell_end(&error),
        },
        () = shutdown.requested() => true,
        never = waiting::tell(node_id, &server) => match never {},
    };
    let stop = async {
        if !is_stopping {
            shutdown.requested().await;
        }
        supervisor.stopping();
    };
    match server.run_until(stop).await {
        Ok(()) => Ok(()),
        Err(error) => tell_end(&error),
    }
}

/// Reports why the node stopped by itself. Removal from the cluster is not a failure.
fn tell_end(error: &ServerError) -> Result<(), Failure> {
    if !error.is_removal() {
        return Err(Failure::server_end(error));
    }
    let hint = error.hint().unwrap_or_default();
    output::write(&format!("{error}: {hint}\n"))
}
