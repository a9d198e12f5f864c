//! `flo dev`: a whole cluster in one process.

mod layout;

use self::layout::Layout;
use crate::code::Code;
use crate::failure::Failure;
use crate::open_files;
use crate::output;
use crate::shutdown::Shutdown;
use clap::Args;
use flotilla_server::{
    AccessMode, Server, ServerConfig, ServerError, ensure_bootstrap_token, ensure_keyring_file,
};
use flotilla_trace::Endpoint;
use futures::future::{join_all, try_join, try_join_all};
use std::path::PathBuf;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const EXAMPLES: &str = "\
Examples:
  flo dev
  flo dev --nodes 3 --ephemeral
  flo dev --access closed

Each node has three ports: for clients, for peers, and for HTTP. Node 1 uses 9000, 9001 and 9002,
node 2 uses 9010, 9011 and 9012, and so on.";

/// Run a development cluster in one process
///
/// Prints the endpoints and then, once a leader serves, the line `ready`. Ctrl-C stops the cluster.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dev {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=9))]
    nodes: u16,

    /// Directory for the nodes' data
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".flo",
        conflicts_with = "ephemeral"
    )]
    data_dir: PathBuf,

    /// The first port; see below
    #[arg(long, value_name = "P", default_value_t = 9000, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// OTLP/gRPC collector to export spans to, such as http://127.0.0.1:4317
    #[arg(
        long,
        env = "FLO_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    otlp_endpoint: Option<Endpoint>,

    /// Access mode of a new cluster: open, or closed if callers need a token. A closed cluster has its bootstrap token in the file
    /// bootstrap-token of the data directory
    #[arg(long, value_name = "MODE", value_parser = access_mode, default_value = "open")]
    access: AccessMode,

    /// Keep the data in a temporary directory and delete it on exit
    #[arg(long)]
    ephemeral: bool,
}

impl Dev {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let shutdown = Shutdown::new()?;
        // Deleted when dropped, after the servers have stopped.
        let ephemeral = if self.ephemeral {
            Some(temporary_folder()?)
        } else {
            None
        };
        let layout = Layout {
            nodes: self.nodes,
            port: self.port,
            data_dir: ephemeral
                .as_ref()
                .map_or(self.data_dir, |dir| dir.path().to_owned()),
            otlp_endpoint: self.otlp_endpoint,
            access: self.access,
        };
        let configs = layout.configs()?;
        if let Some(file) = layout.bootstrap_token_file() {
            let ensured = ensure_bootstrap_token(&file);
            ensured.map_err(|error| Failure::server_start(&error.into()))?;
        }
        let ensured = ensure_keyring_file(&layout.keyring_file());
        ensured.map_err(|error| Failure::server_start(&error.into()))?;
        let text = layout.text(&configs);
        run(configs, &text, shutdown).await
    }
}

/// Runs the nodes and prints `text` once they listen, so that no one uses an endpoint whose port
/// was taken.
async fn run(
    configs: Vec<ServerConfig>,
    text: &str,
    mut shutdown: Shutdown,
) -> Result<(), Failure> {
    open_files::raise_limit();
    // Started together, because the first start of a cluster waits for all its members.
    let starting = try_join_all(configs.into_iter().map(Server::start));
    let servers = tokio::select! {
        servers = starting => servers.map_err(|error| Failure::server_start(&error))?,
        () = shutdown.requested() => return Ok(()),
    };
    output::write(text)?;
    tokio::select! {
        ready = become_ready(&servers) => {
            ready.map_err(|error| Failure::server_end(&error))?;
            output::write("ready\n")?;
            run_until(servers, shutdown.requested()).await
        }
        () = shutdown.requested() => run_until(servers, async {}).await,
    }
}

/// Forms the cluster, unless it is formed, and waits until all servers have a leader.
async fn become_ready(servers: &[Server]) -> Result<(), ServerError> {
    let ready = try_join_all(servers.iter().map(Server::ready));
    let form = async {
        if let Some(first) = servers.first() {
            first.form().await?;
        }
        Ok(())
    };
    try_join(ready, form).await?;
    Ok(())
}

/// Runs all servers until the shutdown or until one of them fails.
async fn run_until(
    servers: Vec<Server>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let running = servers.into_iter().map(|server| {
        let stop = stop.clone();
        async move {
            let ended = server.run_until(stop.cancelled()).await;
            stop.cancel();
            ended
        }
    });
    let running = join_all(running);
    let watch = async {
        tokio::select! {
            () = shutdown => stop.cancel(),
            () = stop.cancelled() => {}
        }
    };
    let (ends, ()) = tokio::join!(running, watch);
    let ended: Result<Vec<()>, ServerError> = ends.into_iter().collect();
    ended.map_err(|error| Failure::server_end(&error))?;
    Ok(())
}

fn access_mode(name: &str) -> Result<AccessMode, String> {
    AccessMode::from_name(name).ok_or_else(|| "expected open or closed".to_owned())
}

fn temporary_folder() -> Result<TempDir, Failure> {
    TempDir::with_prefix("flo-dev-").map_err(|error| {
        let message = format!("expected to create a temporary directory, but {error}");
        Failure::new(Code::DataDirUnwritable, message)
    })
}
