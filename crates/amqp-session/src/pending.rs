//! What waits for an answer of the engine.

use std::collections::VecDeque;

use overtake_amqp::connection::{Consume, DeclareExchange, DeclareQueue, Refused, Token};
use overtake_engine::core::Request;
use overtake_engine::{Ask, NewMessage};
use overtake_lane::{ConsumerId, Outcome, Receipt, Refusal};

use crate::arguments::Urgent;
use crate::control::Reply;

/// An operation of a channel that the engine has been asked for: what its answer means.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Done is done.
    Done(Token),
    /// So is what there is nothing of.
    DoneOrGone(Token),
    /// How many messages.
    Count(Token),
    /// How many messages; none where there is no queue.
    CountOrGone(Token),
    /// A queue is declared, or another one is there.
    Queue(Token, Box<DeclareQueue>),
    /// The queue that is another one.
    OtherQueue(Token, Box<DeclareQueue>),
    /// A queue was looked for.
    QueueThere(Token, String),
    /// The queue of somebody's replies was looked for.
    RepliesThere(Token, String),
    /// An exchange is declared, or another one is there.
    Exchange(Token, Box<DeclareExchange>),
    /// The exchange that is another one: it differs in this.
    OtherExchange(Token, Box<DeclareExchange>, &'static str),
    /// The queue of a consumer that wants extra window, for its scheme.
    Scheme(Token, Box<Consume>, Urgent),
    /// The queue of a channel's replies is there.
    Replies(Token, Box<Consume>, String),
    /// A consumer starts.
    Consumer(Token, ConsumerId),
    /// A message, or none.
    Got(Token),
    /// A transaction.
    Committed(Token, Box<Transaction>),
    /// A transaction that was refused because the lease of a settlement, counted from 0, is over: whether the messages of its
    /// settlements are still in their queues.
    StillThere(Token, Box<Transaction>, usize),
}

/// Publishes and settlements that are done together or not at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) messages: Vec<NewMessage>,
    pub(crate) settlements: Vec<(Receipt, Outcome)>,
    /// Receipts of messages that have ended while the client held them: settling them changes nothing but the place that
    /// they have in the client's window.
    pub(crate) gone: Vec<Receipt>,
}

impl Transaction {
    pub(crate) fn request(&self) -> Request {
        Request::Publish { messages: self.messages.clone(), settlements: self.settlements.clone() }
    }

    /// The receipts of its settlements, in their order.
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        self.settlements.iter().map(|(receipt, _)| *receipt).collect()
    }

    /// Leaves out the settlements of messages that are not in their queues any more, as told of each in their order. False: the one at
    /// fault is still there.
    pub(crate) fn leave_out_gone(&mut self, told: &[Result<(), Refusal>], at_fault: usize) -> bool {
        let mut is_gone = told.iter().map(Result::is_err);
        let left = self.settlements.extract_if(.., |_| is_gone.next().unwrap_or(false));
        self.gone.extend(left.map(|(receipt, _)| receipt));
        told.get(at_fault).is_some_and(Result::is_err)
    }
}

/// Messages that a client may ask for one by one (`basic.get`) at once. Each channel waits for its own, but there are thousands of
/// channels, and nobody knows how large a message is before it comes.
const GETS_MAX: usize = 4;

/// Messages that the client asked for one by one and has not got.
#[derive(Debug, Default)]
pub(crate) struct Gets {
    asked: usize,
    waiting: VecDeque<Ask>,
}

impl Gets {
    /// One more; it comes back if it is to be asked now.
    pub(crate) fn ask(&mut self, get: Ask) -> Option<Ask> {
        if self.asked == GETS_MAX {
            self.waiting.push_back(get);
            return None;
        }
        self.asked += 1;
        Some(get)
    }

    /// One is answered. Answers the next that is to be asked.
    pub(crate) fn answered(&mut self) -> Option<Ask> {
        let next = self.waiting.pop_front();
        self.asked -= usize::from(next.is_none());
        next
    }
}

/// Publishes that the client is not told of yet, in the order in which they came and are told of.
#[derive(Debug, Default)]
pub(crate) struct Publishes {
    waiting: VecDeque<Waiting>,
    /// The engine's answers to messages, in their order, of which the client is told after an order before them.
    told: VecDeque<Told>,
}

/// Publishes for which there is room when none waits.
const WAITING_KEPT_MAX: usize = 4;

/// To how many queues a publish went.
type Told = Result<u64, Refused>;

#[derive(Debug)]
enum Waiting {
    /// A message, for the engine to answer,
    Message(Token),
    /// an order, which the engine may answer later than messages that were published after it,
    Order(Token, Option<Told>),
    /// or one that was refused before.
    Refused(Token, Refused),
}

impl Publishes {
    pub(crate) fn message(&mut self, token: Token) {
        self.waiting.push_back(Waiting::Message(token));
    }

    pub(crate) fn order(&mut self, token: Token) {
        self.waiting.push_back(Waiting::Order(token, None));
    }

    pub(crate) fn refused(&mut self, token: Token, refused: Refused) {
        self.waiting.push_back(Waiting::Refused(token, refused));
    }

    /// The engine has answered the next message.
    pub(crate) fn message_told(&mut self, told: Told) {
        self.told.push_back(told);
    }

    /// The engine has answered this order.
    pub(crate) fn order_told(&mut self, order: Token, answer: Told) {
        let waiting = self.waiting.iter_mut().find_map(|waiting| match waiting {
            Waiting::Order(token, told) if *token == order => Some(told),
            _ => None,
        });
        *waiting.expect("an order waits until it is answered") = Some(answer);
    }

    /// The next that the client is to be told of.
    pub(crate) fn next(&mut self) -> Option<(Token, Told)> {
        let (token, told) = match self.waiting.front_mut()? {
            Waiting::Message(token) => (*token, self.told.pop_front()?),
            Waiting::Order(token, told) => (*token, told.take()?),
            Waiting::Refused(token, refused) => (*token, Err(refused.clone())),
        };
        self.waiting.pop_front();
        if self.waiting.is_empty() {
            // An idle connection holds no memory for what it once had much of.
            self.waiting.shrink_to(WAITING_KEPT_MAX);
            self.told.shrink_to(WAITING_KEPT_MAX);
        }
        Some((token, told))
    }
}

/// An order of which the engine was asked something: how its answer is told.
#[derive(Debug)]
pub(crate) enum Ordered {
    /// The order is carried out, or has begun: the client hears a confirm, and perhaps an answer as a message.
    Begun(Token, Option<Reply>),
    /// The job of the order is over: the client gets the answer as a message.
    Over(Reply),
}

#[cfg(test)]
mod tests {
    use overtake_lane::Get;

    use super::*;

    fn get(token: u64) -> Ask {
        let get = Get { consumer: ConsumerId(token), queue: "q".into(), no_ack: false };
        Ask { token: Some(token), request: Request::Get { get, holder: None } }
    }

    #[test]
    fn few_messages_are_asked_for_at_once_and_the_others_in_their_order() {
        let mut gets = Gets::default();
        let token = |ask: Option<Ask>| ask.and_then(|ask| ask.token);
        let asked: Vec<_> = (1..=6).map(|number| token(gets.ask(get(number)))).collect();
        assert_eq!(asked, [Some(1), Some(2), Some(3), Some(4), None, None]);
        let next: Vec<_> = (0..6).map(|_| token(gets.answered())).collect();
        assert_eq!(next, [Some(5), Some(6), None, None, None, None]);
        assert_eq!(token(gets.ask(get(7))), Some(7));
    }
}
