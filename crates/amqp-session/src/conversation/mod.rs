//! One connection and one session, each told what the other says.

mod answers;
mod asks;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::BytesMut;
use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{self as amqp, Ask, Connection, NoVhost, Refused};
use overtake_engine::core::Request;
use overtake_engine::{Ask as Asked, Event, Failure, Holder};
use overtake_lane::{Command, ConsumerId, Time};

use crate::delivery;
use crate::message::Ways;
use crate::names::Names;
use crate::pending::{Gets, Ordered, Pending, Publishes};
use crate::rights::{Here, Nobody, Rights};

/// What names that belong to the broker begin with.
const RESERVED: &str = "amq.";
/// What the names of the queues of replies begin with.
const REPLIES: &str = "amq.rabbitmq.reply-to.";
/// What a publish is called that nobody waits for by name.
const PUBLISH: u64 = 0;

/// What a conversation is told once.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What the connection may do.
    pub connection: amqp::Options,
    /// Whom the certificate names that the client showed.
    pub certificate: Option<String>,
    /// What the connection is called where people look for it.
    pub name: Option<Arc<str>>,
    /// At random, so that nobody guesses the names made up for it.
    pub seed: [u64; 2],
}

/// What is decided outside, before anything else is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Who is this? For [`Conversation::logged_in`].
    LogIn {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// The same, by a certificate that was checked.
    Certificate {
        /// Whom it names.
        user: String,
    },
    /// May the user enter this virtual host? For [`Conversation::entered`].
    Enter {
        /// Its name.
        vhost: String,
    },
}

/// The most asks for which memory is kept for the next connection.
const SPARE_MAX: usize = 1_024;

thread_local! {
    /// Connections gather their asks in this memory, one after the other: an idle one holds none for it, a busy one finds it in the cache.
    static SPARE: RefCell<Vec<Ask>> = RefCell::default();
}

/// Gives room back, in which nothing is left: the larger is kept, within bounds.
fn spare(asks: Vec<Ask>) {
    SPARE.with_borrow_mut(|spare| {
        if asks.capacity() > spare.capacity() && asks.capacity() <= SPARE_MAX {
            *spare = asks;
        }
    });
}

/// A client, from its first byte to its last.
#[derive(Debug)]
pub struct Conversation {
    connection: Connection,
    name: Option<Arc<str>>,
    certificate: Option<String>,
    wish: Option<Wish>,
    here: Here,
    names: Names,
    ways: Ways,
    pending: BTreeMap<u64, Pending>,
    next_token: u64,
    publishes: Publishes,
    /// Orders that the engine has not answered, by number.
    orders: BTreeMap<u64, Ordered>,
    /// The queues of channels' replies, and who takes from them, once that is there.
    replies: BTreeMap<u16, (Option<ConsumerId>, String)>,
    /// Consumers whose queue is gone, to be told so.
    ended: Vec<ConsumerId>,
    gets: Gets,
    requests: Vec<Asked>,
}

impl Options {
    /// For a client that showed a certificate of this name, or none.
    #[must_use]
    pub fn with_certificate(mut self, name: Option<String>) -> Self {
        self.connection.has_certificate = name.is_some();
        Self { certificate: name, ..self }
    }
}

impl Conversation {
    /// With somebody who has just connected.
    #[must_use]
    pub fn new(now: Time, options: Options) -> Self {
        Self {
            connection: Connection::new(now, options.connection),
            name: options.name,
            certificate: options.certificate,
            wish: None,
            here: Here::new(Arc::new(Nobody)),
            names: Names::new(options.seed),
            ways: Ways::default(),
            pending: BTreeMap::new(),
            next_token: PUBLISH,
            publishes: Publishes::default(),
            orders: BTreeMap::new(),
            replies: BTreeMap::new(),
            ended: Vec::new(),
            gets: Gets::default(),
            requests: Vec::new(),
        }
    }

    /// The connection: its bytes out, its time, whether it is over.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The name that the client logged in with; empty: it has not.
    #[must_use]
    pub fn user(&self) -> &str {
        self.here.user()
    }

    /// Who takes messages here.
    fn holder(&self) -> Holder {
        let user = Some(self.here.user()).filter(|user| !user.is_empty()).map(Into::into);
        Holder { user, connection: self.name.clone(), ..Holder::default() }
    }

    /// Takes what can be taken of these bytes, as [`Connection::receive`].
    pub fn receive(&mut self, now: Time, bytes: &mut BytesMut) {
        self.connection.lend_asks(|| SPARE.take());
        self.connection.receive(now, bytes);
    }

    /// What is to be decided, once. Until then the client is told nothing, and nothing is asked of the session.
    pub fn take_wish(&mut self) -> Option<Wish> {
        self.wish.take()
    }

    /// Who the client is; `None`: not who it says to be.
    pub fn logged_in(&mut self, who: Option<Arc<dyn Rights>>) {
        let is_right = who.is_some();
        if let Some(rights) = who {
            self.here = Here::new(rights);
        }
        self.connection.logged_in(is_right);
    }

    /// It was not looked at who the client is: why, for the client.
    pub fn not_logged_in(&mut self, why: &str) {
        self.connection.not_logged_in(why);
    }

    /// Where the client is; an error says why not.
    pub fn entered(&mut self, vhost: Result<String, NoVhost>) {
        match vhost {
            Ok(vhost) => {
                self.here.vhost = vhost;
                self.connection.opened(Ok(()));
            }
            Err(why) => self.connection.opened(Err(why)),
        }
    }

    /// Somebody's rights have changed. The client's consumers of queues that it may not read any more are cancelled: it is told so, and
    /// keeps what it holds.
    pub fn look_at_rights(&mut self) {
        let consumers = self.connection.consumers();
        let is_denied = |(_, queue): &(ConsumerId, &str)| self.here.judge_consumer(queue).is_err();
        let denied: Vec<ConsumerId> = consumers.into_iter().filter(is_denied).map(|(id, _)| id).collect();
        denied.into_iter().for_each(|consumer| self.deny(consumer));
    }

    /// Ends a consumer whose queue the client may not read.
    fn deny(&mut self, consumer: ConsumerId) {
        self.connection.ended(consumer);
        self.tell(Command::Leave { consumer });
    }

    /// What is to be asked of the session, in order. Numbers for consumers come from there ([`overtake_engine::Asks::next_consumer`]).
    pub fn take_requests(&mut self, mut next_consumer: impl FnMut() -> ConsumerId) -> Vec<Asked> {
        loop {
            let mut asks = self.connection.take_asks();
            if asks.is_empty() {
                spare(asks);
                return std::mem::take(&mut self.requests);
            }
            self.requests.reserve(asks.len());
            for ask in asks.drain(..) {
                self.ask(ask, &mut next_consumer);
            }
            self.connection.lend_asks(|| asks);
        }
    }

    /// What the session says.
    pub fn hear(&mut self, events: Vec<Event>, mut next_consumer: impl FnMut() -> ConsumerId) {
        for event in events {
            match event {
                Event::Deliver { consumer, message } => {
                    delivery::delivered(&message, |delivery| self.connection.deliver(consumer, delivery));
                }
                Event::Answer { token: PUBLISH, result } => self.published(result),
                Event::Answer { token, result } => {
                    if let Some(result) = self.ordered(token, result) {
                        self.answered(token, result, &mut next_consumer);
                    }
                }
                Event::TimedOut { consumer, receipt } => self.connection.timed_out(consumer, receipt),
                Event::Ended { consumer } => self.ended.push(consumer),
            }
        }
        self.tell_ended();
    }

    /// Whether an operation of a channel is not answered, so that what the channel said after it waits.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Consumers whose queue is gone. Who deletes it hears that first.
    fn tell_ended(&mut self) {
        if self.pending.values().any(|pending| matches!(pending, Pending::CountOrGone(_))) {
            return;
        }
        for consumer in std::mem::take(&mut self.ended) {
            self.replies.retain(|_, (replies, _)| *replies != Some(consumer));
            self.connection.ended(consumer);
        }
    }

    // ---- asking ----

    /// Asks what the client wants, if it may.
    fn request(&mut self, pending: Pending, request: Request) -> Result<(), Refused> {
        self.here.judge(&request)?;
        self.ask_for(pending, request);
        Ok(())
    }

    /// Asks what must be known or done for what the client wants.
    fn ask_for(&mut self, pending: Pending, request: Request) {
        self.next_token += 1;
        self.pending.insert(self.next_token, pending);
        self.requests.push(Asked { token: Some(self.next_token), request });
    }

    /// Asks for one message, as soon as few enough are asked for.
    fn request_get(&mut self, pending: Pending, request: Request) -> Result<(), Refused> {
        self.here.judge(&request)?;
        self.next_token += 1;
        self.pending.insert(self.next_token, pending);
        let get = Asked { token: Some(self.next_token), request };
        self.requests.extend(self.gets.ask(get));
        Ok(())
    }

    /// Something that nobody waits for.
    fn tell(&mut self, command: Command) {
        self.requests.push(Asked { token: None, request: Request::Do(command) });
    }

    /// Why there is no answer. A broker that cannot serve ends the connection.
    fn failed(&mut self, failure: Failure) -> Refused {
        match failure {
            Failure::Refused(refused) => Refused::Declined(refused.refusal),
            Failure::Unavailable(why) => {
                self.connection.force_close(&format!("the broker is not available: {why}"));
                Refused::because(ReplyCode::InternalError, why.to_string())
            }
        }
    }
}
