//! Retries a request until the cluster has decided on it.

use crate::errors::Refusal;
use std::time::Duration;
use tokio::time::sleep;

/// The delay before a retry.
const ASK_AGAIN_DELAY: Duration = Duration::from_millis(200);

/// Retries until the response is final: a leader exists and admits the request, and the result of a
/// command is known. The request must be safe to repeat (design rule 9).
///
/// # Errors
/// The refusal that the cluster has decided on.
pub(super) async fn decided<T, Asking>(mut ask: impl FnMut() -> Asking) -> Result<T, Refusal>
where
    Asking: Future<Output = Result<T, Refusal>>,
{
    loop {
        match ask().await {
            Err(refusal) if refusal.may_succeed_later() => sleep(ASK_AGAIN_DELAY).await,
            decided => return decided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Retries against these responses in order; returns the result and the number of responses
    /// left.
    async fn ask_until_decided(answers: Vec<Result<u8, Refusal>>) -> (Result<u8, Refusal>, usize) {
        let answers = RefCell::new(answers.into_iter());
        let ask = || {
            let answer = answers.borrow_mut().next().expect("no further attempt");
            async { answer }
        };
        let decided = decided(ask).await;
        (decided, answers.into_inner().len())
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_waits_for_a_leader() {
        let no_leader = || Err(Refusal::unavailable("expected a leader, but none is known"));
        let answers = vec![no_leader(), no_leader(), Ok(1), Ok(2)];
        assert_eq!(ask_until_decided(answers).await, (Ok(1), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_would_not_change_is_the_answer() {
        let refusal = Refusal::invalid("key", "expected a key, but it is empty");
        let answers = vec![Err(refusal.clone()), Ok(1)];
        assert_eq!(ask_until_decided(answers).await, (Err(refusal), 1));
    }
}
