//! The tasks that an embedded worker has in hand.

use flotilla_engine::TaskToken;
use std::collections::{HashMap, VecDeque};
use std::future::pending;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

/// So many tasks that are over are remembered: far more than a leader has under way to one worker.
const OVER_MAX: usize = 4_096;

/// The tasks that an embedded worker has in hand: they wait, run or are being reported. Dropping it
/// drops them.
#[derive(Default)]
pub(super) struct Crew {
    jobs: JoinSet<()>,
    /// Invariant: one job for each task.
    tasks: HashMap<Id, Task>,
    /// The tokens that left last. A token names one attempt, so once it is over it is over for good;
    /// a leader may still have it under way a second time.
    over: VecDeque<TaskToken>,
}

struct Task {
    token: TaskToken,
    job: AbortHandle,
}

/// How the job of a task ended.
pub(super) struct Ended {
    /// The task.
    pub(super) token: TaskToken,
    /// Why it ended too early, if it did.
    pub(super) panic: Option<JoinError>,
}

impl Crew {
    /// Whether the task is in hand or is over: it came before.
    pub(super) fn knows(&self, token: &TaskToken) -> bool {
        self.tokens().any(|held| held == token) || self.over.contains(token)
    }

    /// Takes a task in hand. The job ends when the task is reported.
    pub(super) fn start(
        &mut self,
        token: TaskToken,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        let job = self.jobs.spawn(job);
        self.tasks.insert(job.id(), Task { token, job });
    }

    /// Drops a task; nothing is reported.
    pub(super) fn give_up(&mut self, token: &TaskToken) {
        for task in self.tasks.values().filter(|task| task.token == *token) {
            task.job.abort();
        }
    }

    /// The next task that is over. Waits for ever when none is in hand. Loses nothing when it is
    /// dropped before it is ready.
    pub(super) async fn next(&mut self) -> Ended {
        loop {
            let Some(ended) = self.jobs.join_next_with_id().await else {
                pending::<()>().await;
                continue;
            };
            let (id, error) = match ended {
                Ok((id, ())) => (id, None),
                Err(error) => (error.id(), Some(error)),
            };
            if let Some(Task { token, .. }) = self.tasks.remove(&id) {
                let panic = error.filter(JoinError::is_panic);
                if panic.is_none() {
                    self.remember(token);
                }
                return Ended { token, panic };
            }
        }
    }

    /// The tasks in hand.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &TaskToken> {
        self.tasks.values().map(|task| &task.token)
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    fn remember(&mut self, token: TaskToken) {
        if self.over.len() >= OVER_MAX {
            self.over.pop_front();
        }
        self.over.push_back(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::ActionRunNumber;

    fn token(number: u64) -> TaskToken {
        TaskToken {
            action_run: ActionRunNumber(number),
            attempt: 1,
            secret: 0,
        }
    }

    #[tokio::test]
    async fn a_task_is_in_hand_until_its_job_ends_and_known_afterwards() {
        let mut crew = Crew::default();
        assert!(!crew.knows(&token(1)));
        crew.start(token(1), async {});
        assert_eq!((crew.len(), crew.knows(&token(1))), (1, true));
        let ended = crew.next().await;
        assert_eq!((ended.token, ended.panic.is_some()), (token(1), false));
        assert_eq!((crew.len(), crew.knows(&token(1))), (0, true));
    }

    #[tokio::test]
    async fn a_job_that_panics_leaves_a_task_to_be_reported() {
        let mut crew = Crew::default();
        crew.start(token(1), pending());
        crew.start(token(2), async { panic!("a bug") });
        let ended = crew.next().await;
        assert_eq!((ended.token, ended.panic.is_some()), (token(2), true));
        assert_eq!(crew.tokens().collect::<Vec<_>>(), [&token(1)]);
    }

    #[tokio::test]
    async fn a_task_that_is_given_up_ends_without_a_panic() {
        let mut crew = Crew::default();
        crew.start(token(1), pending());
        crew.give_up(&token(1));
        let ended = crew.next().await;
        assert_eq!((ended.token, ended.panic.is_some()), (token(1), false));
    }
}
