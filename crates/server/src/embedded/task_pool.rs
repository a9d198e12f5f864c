//! The tasks that an embedded worker holds.

use flotilla_engine::TaskToken;
use std::collections::{HashMap, VecDeque};
use std::future::pending;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

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
    /// Cancelled when the task should stop and report that.
    cancellation: CancellationToken,
}

/// How the job of a task ended.
pub(super) struct Ended {
    /// The task's token.
    pub(super) token: TaskToken,
    /// The panic that ended it early, if any.
    pub(super) panic: Option<JoinError>,
}

impl TaskPool {
    /// Whether the task is held or finished: it has arrived before.
    pub(super) fn knows(&self, token: &TaskToken) -> bool {
        self.tokens().any(|held| held == token) || self.over.contains(token)
    }

    /// Starts a task. Its job ends when the task is reported; it is given the token that tells it to stop.
    pub(super) fn start<J: Future<Output = ()> + Send + 'static>(
        &mut self,
        token: TaskToken,
        job: impl FnOnce(CancellationToken) -> J,
    ) {
        let cancellation = CancellationToken::new();
        let job = self.jobs.spawn(job(cancellation.clone()));
        let task = Task {
            token,
            job,
            cancellation,
        };
        self.tasks.insert(task.job.id(), task);
    }

    /// Drops a task; nothing is reported.
    pub(super) fn give_up(&mut self, token: &TaskToken) {
        if let Some(task) = self.find(token) {
            task.job.abort();
        }
    }

    /// Stops a task, and lets it report that; one that is being reported already is reported as it ended.
    pub(super) fn cancel(&mut self, token: &TaskToken) {
        if let Some(task) = self.find(token) {
            task.cancellation.cancel();
        }
    }

    fn find(&self, token: &TaskToken) -> Option<&Task> {
        self.tasks.values().find(|task| task.token == *token)
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
            if let Some(Task { token, .. }) = self.tasks.remove(&id) {
                let panic = error.filter(JoinError::is_panic);
                if panic.is_none() {
                    self.remember(token);
                }
                return Ended { token, panic };
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

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
        task_pool.start(token(1), |_| async {});
        assert_eq!((task_pool.len(), task_pool.knows(&token(1))), (1, true));
        let ended = task_pool.next().await;
        assert_eq!((ended.token, ended.panic.is_some()), (token(1), false));
        assert_eq!((task_pool.len(), task_pool.knows(&token(1))), (0, true));
    }

    #[tokio::test]
    async fn a_job_that_panics_leaves_a_task_to_be_reported() {
        let mut task_pool = TaskPool::default();
        task_pool.start(token(1), |_| pending());
        task_pool.start(token(2), |_| async { panic!("a bug") });
        let ended = task_pool.next().await;
        assert_eq!((ended.token, ended.panic.is_some()), (token(2), true));
        assert_eq!(task_pool.tokens().collect::<Vec<_>>(), [&token(1)]);
    }

    #[tokio::test]
    async fn a_task_that_is_given_up_ends_without_a_report() {
        let mut task_pool = TaskPool::default();
        task_pool.start(token(1), |_| pending());
        task_pool.give_up(&token(1));
        let ended = task_pool.next().await;
        assert_eq!((ended.token, ended.panic.is_some()), (token(1), false));
    }

    #[tokio::test]
    async fn a_cancelled_task_ends_when_it_has_reported_that() {
        let mut task_pool = TaskPool::default();
        let reported = Arc::new(AtomicBool::new(false));
        let report = reported.clone();
        task_pool.start(token(1), |cancellation| async move {
            cancellation.cancelled().await;
            report.store(true, Ordering::Relaxed);
        });
        task_pool.cancel(&token(1));
        let ended = task_pool.next().await;
        assert_eq!((ended.token, ended.panic.is_some()), (token(1), false));
        assert!(reported.load(Ordering::Relaxed));
    }
}
