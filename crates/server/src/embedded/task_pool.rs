//! The tasks that an embedded worker holds.

use flotilla_engine::TaskToken;
use std::collections::{HashMap, VecDeque};
use std::future::pending;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

/// The number of finished tasks to remember: far more than a leader has in flight to one worker.
const OVER_MAX: usize = 4_096;

/// The tasks that an embedded worker holds: waiting, running or being reported. Dropping the pool
/// drops them.
#[derive(Default)]
pub(super) struct TaskPool {
    jobs: JoinSet<()>,
    /// Invariant: one job per task.
    tasks: HashMap<Id, Task>,
    /// The tokens of the last finished tasks. A token names one attempt, so a finished one never
    /// returns; but a leader may have sent it twice.
    over: VecDeque<TaskToken>,
}

struct Task {
    token: TaskToken,
    job: AbortHandle,
    /// Whether it was cancelled, and its run waits for a report.
    is_answer_awaited: bool,
}

/// How the job of a task ended.
pub(super) struct Ended {
    /// The task's token.
    pub(super) token: TaskToken,
    /// Why it ended without a report that is still to be made: it panicked or was cancelled.
    pub(super) unreported: Option<JoinError>,
}

impl TaskPool {
    /// Whether the task is held or finished: it has arrived before.
    pub(super) fn knows(&self, token: &TaskToken) -> bool {
        self.tokens().any(|held| held == token) || self.over.contains(token)
    }

    /// Starts a task. Its job ends when the task is reported.
    pub(super) fn start(
        &mut self,
        token: TaskToken,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        let job = self.jobs.spawn(job);
        let task = Task {
            token,
            job,
            is_answer_awaited: false,
        };
        self.tasks.insert(task.job.id(), task);
    }

    /// Drops a task. It is reported only if its run waits for that.
    pub(super) fn give_up(&mut self, token: &TaskToken, is_answer_awaited: bool) {
        let mut tasks = self.tasks.values_mut();
        if let Some(task) = tasks.find(|task| task.token == *token) {
            task.is_answer_awaited = is_answer_awaited;
            task.job.abort();
        }
    }

    /// The next finished task. Waits forever if none is held. Cancel-safe.
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
            if let Some(task) = self.tasks.remove(&id) {
                let token = task.token;
                let unreported = error.filter(|error| error.is_panic() || task.is_answer_awaited);
                if unreported.is_none() {
                    self.remember(token);
                }
                return Ended { token, unreported };
            }
        }
    }

    /// The tokens of the held tasks.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &TaskToken> {
        self.tasks.values().map(|task| &task.token)
    }

    /// The number of held tasks.
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
        let mut task_pool = TaskPool::default();
        assert!(!task_pool.knows(&token(1)));
        task_pool.start(token(1), async {});
        assert_eq!((task_pool.len(), task_pool.knows(&token(1))), (1, true));
        let ended = task_pool.next().await;
        assert_eq!((ended.token, ended.unreported.is_some()), (token(1), false));
        assert_eq!((task_pool.len(), task_pool.knows(&token(1))), (0, true));
    }

    #[tokio::test]
    async fn a_job_that_panics_leaves_a_task_to_be_reported() {
        let mut task_pool = TaskPool::default();
        task_pool.start(token(1), pending());
        task_pool.start(token(2), async { panic!("a bug") });
        let ended = task_pool.next().await;
        assert_eq!((ended.token, ended.unreported.is_some()), (token(2), true));
        assert_eq!(task_pool.tokens().collect::<Vec<_>>(), [&token(1)]);
    }

    #[tokio::test]
    async fn a_task_that_is_given_up_ends_without_a_report() {
        let mut task_pool = TaskPool::default();
        task_pool.start(token(1), pending());
        task_pool.give_up(&token(1), false);
        let ended = task_pool.next().await;
        assert_eq!((ended.token, ended.unreported.is_some()), (token(1), false));
    }

    #[tokio::test]
    async fn a_cancelled_task_whose_run_waits_is_left_to_be_reported() {
        let mut task_pool = TaskPool::default();
        task_pool.start(token(1), pending());
        task_pool.give_up(&token(1), true);
        let ended = task_pool.next().await;
        assert_eq!((ended.token, ended.unreported.is_some()), (token(1), true));
        assert!(!task_pool.knows(&token(1)));
    }
}
