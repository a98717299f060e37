//! Sessions: batches of requests in, each done after the one before it.

use std::sync::Arc;

use overtake_engine::core::{Answer, Request};
use overtake_engine::session::{Ask, Line, Places, Session, Taken};
use overtake_engine::{Failure, NewMessage};
use overtake_lane::{Asker, Command, ConsumerId, Outcome, PutBack, Receipt, SessionId, WindowId};
use tokio::sync::mpsc;

use super::House;
use super::floor::Ticket;
use super::hosted::within_one_deadline;

/// A session as it is known to the house.
#[derive(Clone, Copy, Debug)]
struct Who {
    number: SessionId,
    /// As whom it asks.
    asker: Asker,
    /// It is somebody connected by itself, and not a part of one.
    is_whole: bool,
}

struct Wire {
    house: Arc<House>,
    asks: mpsc::UnboundedSender<Batch>,
}

enum Batch {
    Asks(Vec<Ask>, Taken),
    End(Vec<Receipt>),
}

/// A new session, of its own or of somebody connected.
#[expect(clippy::disallowed_methods, reason = "windows, places in line and what is unheard bound them")]
pub(super) fn open(house: &Arc<House>, by: Asker) -> Session {
    let number = house.next_session();
    let asker = Asker { session: Some(by.session.unwrap_or(number)), ..by };
    let who = Who { number, asker, is_whole: by.session.is_none() };
    let (to, events) = mpsc::unbounded_channel();
    house.on_floor(|floor, _, _| floor.begin(number, to));
    let (asks, batches) = mpsc::unbounded_channel();
    house.runtime.spawn(work(Arc::clone(house), who, batches));
    Session::new(Arc::new(Wire { house: Arc::clone(house), asks }), events)
}

impl Line for Wire {
    fn places(&self) -> &Places {
        &self.house.places
    }

    fn next_consumer(&self) -> ConsumerId {
        self.house.next_consumer()
    }

    fn unavailable(&self) -> Failure {
        self.house.unavailable()
    }

    fn ask(&self, asks: Vec<Ask>, places: Taken) {
        // Without a worker the engine is gone.
        let _ = self.asks.send(Batch::Asks(asks, places));
    }

    /// What is pushed here is bounded by windows of messages only.
    fn taken(&self, _: u64) {}

    fn end(&self, unheard: Vec<Receipt>) {
        let _ = self.asks.send(Batch::End(unheard));
    }
}

async fn work(house: Arc<House>, who: Who, mut batches: mpsc::UnboundedReceiver<Batch>) {
    while let Some(batch) = batches.recv().await {
        match batch {
            Batch::Asks(asks, _places) => work_off(&house, who, asks).await,
            Batch::End(unheard) => {
                let whole = who.is_whole.then_some(who.number);
                house.on_floor(|floor, now, after| {
                    floor.end(now, who.number, whole, after);
                    after.returned.extend(unheard.into_iter().map(|receipt| (receipt, PutBack::Released)));
                });
                if let Some(session) = whole {
                    house.session_ended(session).await;
                }
                return;
            }
        }
    }
}

/// What can be done together, since nothing comes between.
enum Run {
    Publishes(Vec<Option<u64>>, Vec<NewMessage>),
    Settlements(Vec<(Option<u64>, usize)>, Vec<Receipt>, Outcome),
}

async fn work_off(house: &Arc<House>, who: Who, asks: Vec<Ask>) {
    let mut run: Option<Run> = None;
    for Ask { token, request } in asks {
        run = match (run, request) {
            (Some(Run::Publishes(mut tokens, mut messages)), Request::PublishOne(message)) => {
                tokens.push(token);
                messages.push(*message);
                Some(Run::Publishes(tokens, messages))
            }
            (
                Some(Run::Settlements(mut tokens, mut receipts, outcome)),
                Request::Do(Command::Settle { receipts: more, outcome: same }),
            ) if same == outcome => {
                tokens.push((token, more.len()));
                receipts.extend(more);
                Some(Run::Settlements(tokens, receipts, outcome))
            }
            (before, request) => {
                finish(house, who, before).await;
                begin(house, who, token, request).await
            }
        };
    }
    finish(house, who, run).await;
    house.carry_all().await;
}

/// Begins a run, or does what stands for itself.
async fn begin(house: &Arc<House>, who: Who, token: Option<u64>, request: Request) -> Option<Run> {
    match request {
        Request::PublishOne(message) => return Some(Run::Publishes(vec![token], vec![*message])),
        Request::Do(Command::Settle { receipts, outcome }) => {
            return Some(Run::Settlements(vec![(token, receipts.len())], receipts, outcome));
        }
        Request::Lease { consumer, lease } => {
            let ticket = Ticket::Session { number: who.number, token };
            let leased = house.lease(who.asker, consumer, lease, ticket).await;
            if let Err((_, why)) = leased {
                tell(house, who, token, Err(why));
            }
        }
        Request::Consume { consumer, consume } => {
            house.consume(who.number, who.asker, (consumer, consume), token).await;
        }
        Request::SetWindow { number, size, joining } => {
            let session = who.asker.session.expect("a session asks as somebody");
            let window = WindowId { session, number };
            house.on_floor(|floor, now, after| floor.set_window(now, window, size, joining, after));
            tell(house, who, token, Ok(Answer::Done));
        }
        request => {
            let result = house.respond(who.asker, request).await;
            tell(house, who, token, result);
        }
    }
    None
}

async fn finish(house: &Arc<House>, who: Who, run: Option<Run>) {
    match run {
        None => {}
        Some(Run::Publishes(tokens, messages)) => {
            let answers = within_one_deadline(house.publish_each(who.asker, messages)).await;
            for (token, result) in tokens.into_iter().zip(answers) {
                tell(house, who, token, result);
            }
        }
        Some(Run::Settlements(tokens, receipts, outcome)) => {
            let settled = within_one_deadline(house.settle(who.asker, receipts, outcome)).await;
            let mut each = settled.as_ref().map(|each| each.iter());
            for (token, count) in tokens {
                let result = match &mut each {
                    Ok(each) => Ok(Answer::Each(each.by_ref().take(count).copied().collect())),
                    Err(why) => Err((*why).clone()),
                };
                tell(house, who, token, result);
            }
        }
    }
}

fn tell(house: &House, who: Who, token: Option<u64>, result: Result<Answer, Failure>) {
    house.on_floor(|floor, _, after| floor.tell_answer(who.number, token, result, after));
}
