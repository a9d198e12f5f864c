//! `flo cluster`.

mod add_learner;
mod backup;
mod backup_file;
mod blocking;
mod drain;
mod form;
mod health;
mod inspect;
mod promote;
mod quarantine;
mod remove;
mod restore;
mod set;
mod snapshot;
mod status;
mod transfer_leader;
mod undrain;
mod verify;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Form and inspect a cluster, change its members and leader, back it up and restore it
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    Status(status::Status),
    Health(health::Health),
    Inspect(inspect::Inspect),
    Form(form::Form),
    AddLearner(add_learner::AddLearner),
    Promote(promote::Promote),
    Remove(remove::Remove),
    TransferLeader(transfer_leader::TransferLeader),
    Set(set::Set),
    Drain(drain::Drain),
    Undrain(undrain::Undrain),
    Snapshot(snapshot::Snapshot),
    Backup(backup::Backup),
    Verify(verify::Verify),
    Restore(restore::Restore),
    #[command(subcommand)]
    Quarantine(quarantine::QuarantineCommand),
}

impl ClusterCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Status(status) => status.run(session).await,
            Self::Health(health) => health.run(session).await,
            Self::Inspect(inspect) => inspect.run(session).await,
            Self::Form(form) => form.run(session).await,
            Self::AddLearner(add_learner) => add_learner.run(session).await,
            Self::Promote(promote) => promote.run(session).await,
            Self::Remove(remove) => remove.run(session).await,
            Self::TransferLeader(transfer_leader) => transfer_leader.run(session).await,
            Self::Set(set) => set.run(session).await,
            Self::Drain(drain) => drain.run(session).await,
            Self::Undrain(undrain) => undrain.run(session).await,
            Self::Snapshot(snapshot) => snapshot.run(session).await,
            Self::Backup(backup) => backup.run(session).await,
            Self::Verify(verify) => verify.run(session).await,
            Self::Restore(restore) => restore.run(session).await,
            Self::Quarantine(quarantine) => quarantine.run(session).await,
        }
    }
}
