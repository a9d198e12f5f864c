//! The commands, one file each.

mod action;
mod auth;
mod bench;
mod cert;
mod cluster;
mod completions;
mod created;
mod deleted;
mod descendants;
mod dev;
mod expr;
mod generated;
mod keyring;
mod kv;
mod listing;
mod ns;
mod plan;
mod rights;
mod scope;
mod server;
mod stream;
mod switch;
mod token;
mod worker;
mod workflow;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::logging;
use crate::session::Session;
use clap::Subcommand;

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dev(dev::Dev),
    Server(Box<server::Server>),
    #[command(subcommand)]
    Workflow(workflow::WorkflowCommand),
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    #[command(subcommand)]
    Action(action::ActionCommand),
    #[command(subcommand)]
    Worker(worker::WorkerCommand),
    #[command(subcommand)]
    Stream(stream::StreamCommand),
    #[command(subcommand)]
    Kv(kv::KvCommand),
    #[command(subcommand)]
    Ns(ns::NsCommand),
    #[command(subcommand)]
    Token(token::TokenCommand),
    #[command(subcommand)]
    Auth(auth::AuthCommand),
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    #[command(subcommand)]
    Keyring(keyring::KeyringCommand),
    #[command(subcommand)]
    Cert(cert::CertCommand),
    #[command(subcommand)]
    Expr(expr::ExprCommand),
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    Completions(completions::Completions),
}

/// Runs the command.
///
/// # Errors
/// The failure to report on stderr, with its exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { globals, command } = arguments;
    start_log(&globals, &command)?;
    let session = Session::new(globals);
    match command {
        Command::Dev(dev) => dev.run().await,
        Command::Server(server) => server.run().await,
        Command::Workflow(workflow) => workflow.run(&session).await,
        Command::Plan(plan) => plan.run(&session).await,
        Command::Action(action) => action.run(&session).await,
        Command::Worker(worker) => worker.run(&session).await,
        Command::Stream(stream) => stream.run(&session).await,
        Command::Kv(kv) => kv.run(&session).await,
        Command::Ns(ns) => ns.run(&session).await,
        Command::Token(token) => token.run(&session).await,
        Command::Auth(auth) => auth.run(&session).await,
        Command::Cluster(cluster) => cluster.run(&session).await,
        Command::Keyring(keyring) => keyring.run(&session),
        Command::Cert(cert) => cert.run(&session),
        Command::Expr(expr) => expr.run(&session),
        Command::Bench(bench) => bench.run(&session).await,
        Command::Completions(completions) => completions.run(),
    }
}

fn start_log(globals: &Globals, command: &Command) -> Result<(), Failure> {
    let default = match command {
        // openraft logs routine activity at `info`, several times a second.
        Command::Server(_) => "info,openraft=error",
        // At startup the nodes of one process wait for each other, which is not worth a log line.
        Command::Dev(_) => "warn,openraft=error",
        _ => "warn",
    };
    let filter = globals.log.as_deref().unwrap_or(default);
    logging::start(filter, globals.log_format)
}
