//! `cargo xtask local`: the three nodes of `deploy/local`, until Ctrl-C.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cluster::{Cluster, Listening, NodeId, PORT_CONFIGURED, PORT_MAX};
use crate::interrupt::{Interrupt, Interrupted};
use crate::sandbox::tails;
use crate::stages::say;
use crate::subcommand::{Subcommand, UsageError};
use crate::wait::pause;
use crate::{flo, project, requirements};

/// The command `local`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "local",
    summary: "Start the three nodes of deploy/local, and stop them on Ctrl-C",
    help: HELP,
    run,
};

const HELP: &str = "\
Build flo and start the three nodes of deploy/local with their configuration files and ports, and with data
and logs in .flo. Nodes and clients use TLS with certificates from `flo cert dev`. Prints when the nodes
serve and what a client needs. Ctrl-C stops them; the next start resumes with their data.

Usage: cargo xtask local [--folder DIR] [--port P]

Options:
  --folder DIR  Where .flo is [default: the root of the repository]
  --port P      Ports P, P+1 and P+2 for node 1, and 10 more for each further node; a cluster keeps the ports
                of its first start [default: 9000, as in the files]

FLOTILLA_BINARY names an existing flo to use instead of building one.

Example:
  cargo xtask local
";

/// Names an existing binary to use instead of building one.
const BINARY: &str = "FLOTILLA_BINARY";

/// The caller's options.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    folder: PathBuf,
    port: u16,
}

fn run(arguments: &[String]) -> Result<()> {
    let Options { folder, port } = read_arguments(arguments)?;
    let binary = match env::var_os(BINARY) {
        Some(path) => PathBuf::from(path),
        None => {
            requirements::ensure()?;
            flo::build()?
        }
    };
    let folder = std::path::absolute(folder).context("expected a current folder")?;
    let interrupt = Interrupt::catch()?;
    let result = serve(&binary, &folder, port, &interrupt);
    // Interrupted while the nodes started.
    if result
        .as_ref()
        .is_err_and(|error| error.is::<Interrupted>())
    {
        return Ok(());
    }
    if result.is_err() {
        // The failure is printed even if the logs cannot be read.
        eprint!("{}", tails(&folder.join(".flo")).unwrap_or_default());
    }
    result
}

fn read_arguments(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        folder: project::root().to_owned(),
        port: PORT_CONFIGURED,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--folder" => {
                let folder = words.next();
                let folder =
                    folder.ok_or_else(|| UsageError("expected --folder DIR".to_owned()))?;
                options.folder = folder.into();
            }
            "--port" => options.port = read_port(words.next())?,
            other => {
                let message = format!("expected --folder or --port, but got `{other}`");
                return Err(UsageError(message).into());
            }
        }
    }
    Ok(options)
}

fn read_port(word: Option<&String>) -> Result<u16> {
    let port = word.and_then(|word| word.parse().ok());
    let port = port.filter(|port| (1..=PORT_MAX).contains(port));
    port.ok_or_else(|| {
        UsageError(format!("expected --port and a number from 1 to {PORT_MAX}")).into()
    })
}

/// Starts the nodes, prints where they are, and stops them on request.
fn serve(binary: &Path, folder: &Path, port: u16, interrupt: &Interrupt) -> Result<()> {
    let mut cluster = Cluster::start(binary, folder, Listening::From(port), interrupt)?;
    cluster.wait_until_all_serve(interrupt)?;
    for node_id in cluster.node_ids() {
        let [client, peer, http] = cluster.addresses(node_id);
        let process_id = cluster.process(node_id).id();
        say(format!(
            "node {node_id} serves clients at {client}, peers at {peer}, HTTP at {http}; process {process_id}"
        ));
    }
    for (name, value) in cluster.variables() {
        say(format!("export {name}={value}"));
    }
    say("Ctrl-C stops them");
    let mut running: Vec<NodeId> = cluster.node_ids().collect();
    while interrupt.check().is_ok() {
        running.retain(
            |node_id| match cluster.process_mut(*node_id).expect_running() {
                Ok(()) => true,
                Err(error) => {
                    say(error.to_string());
                    false
                }
            },
        );
        if running.is_empty() {
            bail!("expected a node to run, but all have ended");
        }
        pause();
    }
    say("stopping");
    cluster.stop(&Interrupt::never())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options> {
        let arguments: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read_arguments(&arguments)
    }

    #[test]
    fn without_arguments_it_is_what_is_done_by_hand() {
        let options = read(&[]).unwrap();
        assert_eq!(options.folder, project::root());
        assert_eq!(options.port, 9000);
    }

    #[test]
    fn folder_and_ports_are_chosen_on_request() {
        let options = read(&["--port", "20000", "--folder", "a"]).unwrap();
        assert_eq!(options.folder, Path::new("a"));
        assert_eq!(options.port, 20_000);
    }

    #[test]
    fn other_arguments_are_refused() {
        for words in [
            &["--fast"][..],
            &["--folder"],
            &["--port"],
            &["--port", "65535"],
        ] {
            assert!(read(words).unwrap_err().is::<UsageError>(), "{words:?}");
        }
    }
}
