//! What it takes to ask something: rights to names, as RabbitMQ has them.
//!
//! Who has them is decided elsewhere; here is only what each request takes, in one exhaustive match, so that a new request does not
//! compile until it says so. A receipt takes nothing here: over AMQP only its own connection has it, over HTTP its queue is asked
//! for with it.
//!
//! | | |
//! |---|---|
//! | declare, delete | configure; with a place for dead letters or an alternate exchange also read the one and write the other |
//! | bind, unbind | write what is led to, read what leads there |
//! | publish | write the exchange, or the queue where it is put into one by name |
//! | consume, get, lease, browse, purge, remove | read the queue |
//! | reprioritise, replay | read and write the queue |

use std::fmt;

use overtake_lane::{Binding, Command, DeadLetterTo, Destination, ExchangeSettings, Settings};

use crate::api::Target;
use crate::core::Request;
use crate::jobs::Change;

/// What may be done to a queue or an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Make it, change it, delete it.
    Configure,
    /// Put something into it.
    Write,
    /// Take something out of it.
    Read,
}

impl Right {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A right to something of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need<'a> {
    /// Which.
    pub right: Right,
    /// To what.
    pub to: Named<'a>,
}

impl<'a> Need<'a> {
    /// A right to a queue.
    #[must_use]
    pub fn queue(right: Right, name: &'a str) -> Self {
        Self { right, to: Named::Queue(name) }
    }

    /// A right to an exchange.
    #[must_use]
    pub fn exchange(right: Right, name: &'a str) -> Self {
        Self { right, to: Named::Exchange(name) }
    }
}

/// A queue or an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// A queue.
    Queue(&'a str),
    /// An exchange; the empty name is that of the default exchange.
    Exchange(&'a str),
}

impl<'a> Named<'a> {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Self::Queue(name) | Self::Exchange(name) => name,
        }
    }

    /// `queue` or `exchange`.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Queue(_) => "queue",
            Self::Exchange(_) => "exchange",
        }
    }

    fn of(to: &'a Destination) -> Self {
        match to {
            Destination::Queue(name) => Self::Queue(name),
            Destination::Exchange(name) => Self::Exchange(name),
        }
    }
}

/// Names each right that something takes. Ends with the first that is said to be missing.
pub trait Takes {
    /// All of them, in the order in which they are asked for.
    ///
    /// # Errors
    /// The first one of `must`.
    fn takes<E>(&self, must: &mut dyn FnMut(Need<'_>) -> Result<(), E>) -> Result<(), E>;
}

fn need<E>(must: &mut dyn FnMut(Need<'_>) -> Result<(), E>, right: Right, to: Named<'_>) -> Result<(), E> {
    must(Need { right, to })
}

impl Takes for Target {
    fn takes<E>(&self, must: &mut dyn FnMut(Need<'_>) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Queue(name) => need(must, Right::Write, Named::Queue(name)),
            Self::Exchange { name, .. } => need(must, Right::Write, Named::Exchange(name)),
        }
    }
}

impl Takes for Binding {
    fn takes<E>(&self, must: &mut dyn FnMut(Need<'_>) -> Result<(), E>) -> Result<(), E> {
        need(must, Right::Write, Named::of(&self.to))?;
        need(must, Right::Read, Named::Exchange(&self.exchange))
    }
}

/// A queue of this name with these settings.
impl Takes for (&str, &Settings) {
    fn takes<E>(&self, must: &mut dyn FnMut(Need<'_>) -> Result<(), E>) -> Result<(), E> {
        let (name, settings) = *self;
        need(must, Right::Configure, Named::Queue(name))?;
        let dead_letters = match &settings.dead_letter {
            DeadLetterTo::Keep | DeadLetterTo::Drop => None,
            DeadLetterTo::Queue(to) => Some(Named::Queue(to)),
            DeadLetterTo::Exchange { name, .. } => Some(Named::Exchange(name)),
        };
        let to: Vec<Named<'_>> =
            dead_letters.into_iter().chain(settings.history.as_deref().map(Named::Queue)).collect();
        if to.is_empty() {
            return Ok(());
        }
        need(must, Right::Read, Named::Queue(name))?;
        to.into_iter().try_for_each(|to| need(must, Right::Write, to))
    }
}

/// An exchange of this name with these settings.
impl Takes for (&str, &ExchangeSettings) {
    fn takes<E>(&self, must: &mut dyn FnMut(Need<'_>) -> Result<(), E>) -> Result<(), E> {
        let (name, settings) = *self;
        need(must, Right::Configure, Named::Exchange(name))?;
        let Some(alternate) = &settings.alternate else { return Ok(()) };
        need(must, Right::Read, Named::Exchange(name))?;
        need(must, Right::Write, Named::Exchange(alternate))
    }
}

impl Takes for (&str, &Change) {
    fn takes<E>(&self, must: &mut dyn FnMut(Need<'_>) -> Result<(), E>) -> Result<(), E> {
        let (queue, change) = *self;
        need(must, Right::Read, Named::Queue(queue))?;
        match change {
            Change::Remove | Change::Purge | Change::Cancel => Ok(()),
            Change::Reprioritise(_) | Change::Replay(_) => need(must, Right::Write, Named::Queue(queue)),
        }
    }
}

impl Takes for Command {
    fn takes<E>(&self, must: &mut dyn FnMut(Need<'_>) -> Result<(), E>) -> Result<(), E> {
        let read = |queue| (Right::Read, Named::Queue(queue));
        let (right, to) = match self {
            Self::By { command, .. } => return command.takes(must),
            Self::DeclareQueue { name, settings, .. } => return (&**name, &**settings).takes(must),
            Self::DeclareExchange { name, settings } => return (&**name, &**settings).takes(must),
            Self::Bind(binding) | Self::Unbind(binding) => return binding.takes(must),
            Self::DeleteQueue { name, .. } => (Right::Configure, Named::Queue(name)),
            Self::DeleteExchange { name, .. } => (Right::Configure, Named::Exchange(name)),
            Self::Consume(consume) => read(&consume.queue),
            Self::Get(get) => read(&get.queue),
            Self::Pull(pull) => read(&pull.queue),
            Self::Remove { queue, .. }
            | Self::CancelMessages { queue, .. }
            | Self::FinishLate { queue, .. }
            | Self::Purge { queue, .. } => read(queue),
            Self::Reprioritise { queue, .. } | Self::Replay { queue, .. } => {
                need(must, Right::Read, Named::Queue(queue))?;
                (Right::Write, Named::Queue(queue))
            }
            // Virtual hosts are for administrators, policies for policymakers. What asks for no name, or only whether it is there, or
            // means nothing to the broker. Publishes of the model are made by the engine of what was asked of it.
            Self::DeclareVhost { .. }
            | Self::DeleteVhost { .. }
            | Self::SetPolicy { .. }
            | Self::RemovePolicy { .. }
            | Self::CheckQueue { .. }
            | Self::EndSession { .. }
            | Self::SetMetadata { .. }
            | Self::Publish(_)
            | Self::PublishUntold(_)
            | Self::Transact { .. }
            | Self::Cancel { .. }
            | Self::Leave { .. }
            | Self::Took { .. }
            | Self::Taken { .. }
            | Self::EndFeed { .. }
            | Self::SetWindow { .. }
            | Self::Settle { .. }
            | Self::Finish { .. }
            | Self::Extend { .. } => return Ok(()),
        };
        need(must, right, to)
    }
}

impl Takes for Request {
    fn takes<E>(&self, must: &mut dyn FnMut(Need<'_>) -> Result<(), E>) -> Result<(), E> {
        let read = |queue| (Right::Read, Named::Queue(queue));
        let (right, to) = match self {
            Self::By { request, .. } => return request.takes(must),
            Self::Do(command) => return command.takes(must),
            Self::Publish { messages, .. } => {
                return messages.iter().try_for_each(|message| message.to.takes(must));
            }
            Self::PublishOne(message) => return message.to.takes(must),
            Self::Lease { lease, .. } => read(&lease.queue),
            Self::Get { get, .. } => read(&get.queue),
            Self::Consume { consume, .. } => read(&consume.queue),
            Self::Browse { queue, .. } | Self::Message { queue, .. } => read(queue),
            Self::Change { queue, change, .. } => return (&**queue, change).takes(must),
            // A job is of a queue, which its view names. What is there may be seen by whoever shows it; how is theirs to decide.
            Self::GiveUp { .. }
            | Self::SetWindow { .. }
            | Self::Progress { .. }
            | Self::Queues { .. }
            | Self::Queue(_)
            | Self::QueueNames(_)
            | Self::StillThere(_)
            | Self::Exchanges
            | Self::Exchange(_)
            | Self::Bindings(_)
            | Self::Vhosts
            | Self::Vhost(_)
            | Self::Policies(_)
            | Self::SetRoutes(_)
            | Self::Routes
            | Self::Metadata
            | Self::Jobs
            | Self::Job { .. }
            | Self::CancelJob { .. } => return Ok(()),
        };
        need(must, right, to)
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::{Asker, ConsumerId, ExchangeKind, Existing, Get, Identity};

    use super::*;
    use crate::api::NewMessage;

    /// `configure queue q, …`
    fn takes(what: &impl Takes) -> String {
        let mut all = Vec::new();
        let every = what.takes(&mut |Need { right, to }| {
            all.push(format!("{right} {} {}", to.kind(), to.name()));
            Ok::<_, ()>(())
        });
        assert_eq!(every, Ok(()));
        all.join(", ")
    }

    fn declare(dead_letter: DeadLetterTo) -> Request {
        let settings = Box::new(Settings { dead_letter, ..Settings::default() });
        let (identity, existing) = (Identity::default(), Existing::Same);
        Request::Do(Command::DeclareQueue { name: "q".into(), settings, identity, existing })
    }

    #[test]
    fn a_queue_takes_what_its_dead_letters_take() {
        assert_eq!(takes(&declare(DeadLetterTo::Keep)), "configure queue q");
        let to = DeadLetterTo::Exchange { name: "dlx".into(), routing_key: None };
        assert_eq!(takes(&declare(to)), "configure queue q, read queue q, write exchange dlx");
        let to = DeadLetterTo::Queue("dead".into());
        assert_eq!(takes(&declare(to)), "configure queue q, read queue q, write queue dead");
    }

    #[test]
    fn an_exchange_takes_what_its_alternate_takes() {
        let plain = ExchangeSettings::new(ExchangeKind::Direct);
        assert_eq!(takes(&("x", &plain)), "configure exchange x");
        let with = ExchangeSettings { alternate: Some("a".into()), ..plain };
        assert_eq!(takes(&("x", &with)), "configure exchange x, read exchange x, write exchange a");
    }

    #[test]
    fn a_message_takes_the_right_to_write_where_it_goes() {
        let to = |to| Request::PublishOne(Box::new(NewMessage { to, ..NewMessage::default() }));
        assert_eq!(takes(&to(Target::Queue("q".into()))), "write queue q");
        let exchange = |name: &str| Target::Exchange {
            name: name.into(),
            routing_key: "q".into(),
            more_keys: Vec::new(),
            mandatory: false,
        };
        assert_eq!(takes(&to(exchange("x"))), "write exchange x");
        assert_eq!(takes(&to(exchange(""))), "write exchange ");
    }

    #[test]
    fn the_first_that_is_missing_ends_it() {
        let mut asked = 0;
        let to = declare(DeadLetterTo::Queue("dead".into()));
        let missing = to.takes(&mut |need| {
            asked += 1;
            if need.right == Right::Read { Err("read") } else { Ok(()) }
        });
        assert_eq!((missing, asked), (Err("read"), 2));
    }

    #[test]
    fn what_is_taken_out_takes_the_right_to_read() {
        let get = Get { consumer: ConsumerId(1), queue: "q".into(), no_ack: true };
        assert_eq!(takes(&Request::Get { get, holder: None }), "read queue q");
        let purge = Box::new(Request::Do(Command::Purge { queue: "q".into(), status: None, expect: None }));
        assert_eq!(takes(&Request::By { asker: Asker::default(), request: purge }), "read queue q");
    }
}
