//! Asking until the cluster has decided.

use crate::errors::Refusal;
use std::time::Duration;
use tokio::time::sleep;

/// How long to wait before the same is asked again.
const ASK_AGAIN_DELAY: Duration = Duration::from_millis(200);

/// Asks again and again until the answer is more than "later": there is a leader, it has room, and
/// what became of a command is known. So it must be safe to ask for the same twice (design rule 9).
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

    /// What asking comes to when it is answered in this order, and how many answers are left then.
    async fn asked(answers: Vec<Result<u8, Refusal>>) -> (Result<u8, Refusal>, usize) {
        let answers = RefCell::new(answers.into_iter());
        let ask = || {
            let answer = answers.borrow_mut().next().expect("nobody asks again");
            async { answer }
        };
        let decided = decided(ask).await;
        (decided, answers.into_inner().len())
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_waits_for_a_leader() {
        let no_leader = || Err(Refusal::unavailable("expected a leader, but there is none"));
        let answers = vec![no_leader(), no_leader(), Ok(1), Ok(2)];
        assert_eq!(asked(answers).await, (Ok(1), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_would_not_change_is_the_answer() {
        let refusal = Refusal::invalid("key", "expected a key, but it is empty");
        let answers = vec![Err(refusal.clone()), Ok(1)];
        assert_eq!(asked(answers).await, (Err(refusal), 1));
    }
}
