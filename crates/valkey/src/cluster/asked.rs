//! Calls that somebody waits for, and how each of them stands.
//!
//! ```text
//!  Waiting ──written──▶ Sent ──answered──▶ Done
//!     ▲                  │ the answer says it was not done: MOVED, LOADING …
//!     ├──────────────────┤
//!     │                  │ the connection broke; replicas did not acknowledge
//!  Doubtful ◀────────────┘
//! ```
//!
//! Doubt stays until there is an answer. Whoever waits may leave: then nothing of it that is not written is written any more.

use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::call::{Call, CallError};
use super::slot::Slot;

pub(super) type Answer = Result<Value, CallError>;

/// All that was asked for at once.
pub(super) struct Asked {
    calls: Vec<Call>,
    state: Mutex<State>,
    done: Notify,
}

struct State {
    stands: Vec<Stand>,
    left: usize,
    /// Why it takes so long.
    why: Option<String>,
    is_closed: bool,
}

enum Stand {
    Waiting { is_doubtful: bool },
    Sent { is_doubtful: bool },
    Done(Answer),
}

/// One call of them, on its way.
#[derive(Clone)]
pub(super) struct Errand {
    asked: Arc<Asked>,
    index: u32,
}

impl Asked {
    pub(super) fn new(calls: Vec<Call>) -> Arc<Self> {
        let stands = calls.iter().map(|_| Stand::Waiting { is_doubtful: false }).collect();
        let state = State { stands, left: calls.len(), why: None, is_closed: false };
        Arc::new(Self { calls, state: Mutex::new(state), done: Notify::new() })
    }

    pub(super) fn errands(self: &Arc<Self>) -> impl Iterator<Item = Errand> + '_ {
        (0..self.calls.len()).map(|index| Errand {
            asked: Arc::clone(self),
            index: u32::try_from(index).expect("calls are counted in a u32"),
        })
    }

    /// Until there is an answer to each, or the time is up.
    pub(super) async fn answers(self: &Arc<Self>, deadline: Instant) -> Vec<Answer> {
        let leaving = Leaving(self);
        // Who is told before it waits is not told in vain: a permit is kept.
        let all = async {
            while self.state().left > 0 {
                self.done.notified().await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, all).await;
        let answers = self.state().close();
        drop(leaving);
        answers
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Leaving<'a>(&'a Asked);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
    }
}

impl State {
    fn close(&mut self) -> Vec<Answer> {
        self.is_closed = true;
        let why = self.why.take().unwrap_or_else(|| "it does not answer".to_owned());
        let late = |is_doubtful| {
            let why = format!("{why}, and the time is up");
            if is_doubtful { CallError::InDoubt(why) } else { CallError::NotDone(why) }
        };
        let stands = std::mem::take(&mut self.stands).into_iter();
        let answers = stands.map(|stand| match stand {
            Stand::Done(answer) => answer,
            Stand::Waiting { is_doubtful } => Err(late(is_doubtful)),
            Stand::Sent { .. } => Err(late(true)),
        });
        answers.collect()
    }
}

impl Errand {
    pub(super) fn call(&self) -> &Call {
        &self.asked.calls[self.index as usize]
    }

    pub(super) fn slot(&self) -> Slot {
        self.call().slot
    }

    /// Nobody waits for it any more.
    pub(super) fn is_over(&self) -> bool {
        self.asked.state().is_closed
    }

    /// It is about to be written; unless nobody waits for it any more.
    pub(super) fn set_out(&self) -> bool {
        self.with(|stand| {
            if let Stand::Waiting { is_doubtful } = *stand {
                *stand = Stand::Sent { is_doubtful };
            }
        })
    }

    pub(super) fn done(&self, answer: Answer) {
        let mut state = self.asked.state();
        if state.is_closed {
            return;
        }
        let stand = &mut state.stands[self.index as usize];
        if matches!(stand, Stand::Done(_)) {
            return;
        }
        *stand = Stand::Done(answer);
        state.left -= 1;
        if state.left == 0 {
            drop(state);
            self.asked.done.notify_one();
        }
    }

    /// It was not done this time, and why not.
    pub(super) fn not_done(&self, why: &str) {
        self.back(false, why);
    }

    /// It was done, and whether it stays is not known yet.
    pub(super) fn unsure(&self, why: &str) {
        let mut state = self.asked.state();
        if !state.is_closed {
            state.why = Some(why.to_owned());
        }
    }

    /// Nobody knows whether it was done. Whether it is to be asked for again; else it is over.
    pub(super) fn in_doubt(&self, why: &str) -> bool {
        if !self.call().retry_in_doubt {
            self.done(Err(CallError::InDoubt(why.to_owned())));
            return false;
        }
        self.back(true, why);
        true
    }

    fn back(&self, is_doubtful_now: bool, why: &str) {
        let mut state = self.asked.state();
        if state.is_closed {
            return;
        }
        state.why = Some(why.to_owned());
        let stand = &mut state.stands[self.index as usize];
        if let Stand::Sent { is_doubtful } | Stand::Waiting { is_doubtful } = *stand {
            *stand = Stand::Waiting { is_doubtful: is_doubtful || is_doubtful_now };
        }
    }

    fn with(&self, change: impl FnOnce(&mut Stand)) -> bool {
        let mut state = self.asked.state();
        if !state.is_closed {
            change(&mut state.stands[self.index as usize]);
        }
        !state.is_closed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn asked(calls: usize) -> (Arc<Asked>, Vec<Errand>) {
        let call = Call::write("f", vec!["k".into()], vec![]);
        let asked = Asked::new(vec![call; calls]);
        let errands = asked.errands().collect();
        (asked, errands)
    }

    async fn at_once(asked: &Arc<Asked>) -> Vec<Answer> {
        asked.answers(Instant::now()).await
    }

    #[tokio::test]
    async fn what_is_answered_is_answered_and_the_rest_is_told_apart_when_time_is_up() {
        let (asked, errands) = asked(4);
        assert!(errands[1..].iter().all(Errand::set_out));
        errands[1].done(Ok(Value::Okay));
        errands[2].not_done("LOADING");
        let answers = at_once(&asked).await;
        assert!(matches!(&answers[0], Err(CallError::NotDone(_))), "never written");
        assert_eq!(answers[1], Ok(Value::Okay));
        assert!(matches!(&answers[2], Err(CallError::NotDone(why)) if why.contains("LOADING")));
        assert!(matches!(&answers[3], Err(CallError::InDoubt(_))), "written, and no answer");
        assert!(!errands[0].set_out() && errands[0].is_over(), "nobody waits any more");
    }

    #[tokio::test]
    async fn doubt_stays_whatever_the_next_attempt_says_short_of_an_answer() {
        let (asked, errands) = asked(1);
        errands[0].set_out();
        assert!(errands[0].in_doubt("the connection broke"));
        errands[0].set_out();
        errands[0].not_done("MOVED");
        assert!(matches!(&at_once(&asked).await[0], Err(CallError::InDoubt(_))));
    }

    #[tokio::test]
    async fn who_leaves_is_not_written_for() {
        let (asked, errands) = asked(1);
        let waiting = asked.answers(Instant::now() + Duration::from_secs(3_600));
        drop(waiting);
        assert!(errands[0].set_out(), "a wait that was not begun is none");
        let mut waiting = Box::pin(asked.answers(Instant::now() + Duration::from_secs(3_600)));
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("nobody answers"),
            () = std::future::ready(()) => {}
        }
        drop(waiting);
        assert!(errands[0].is_over());
    }
}
