//! What is asked and what is heard, whatever connection there is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use overtake_amqp::client::{Answer, Client, Ending, Event};
use overtake_amqp::method::{basic, confirm};
use overtake_lane::Time;
use overtake_properties::{Short, ShortText, TableBuilder, Value};
use tokio::sync::oneshot;

use super::How;
use super::flights::{Flight, Flights, Numbers};
use super::inbox::{Inbox, Incoming};
use super::seats::{Seat, SeatId, Wanted};
use crate::error::Error;
use crate::received::Received;

/// Whoever asks on this queue hears the answers on the channel that consumes from it (RabbitMQ's direct reply-to).
pub(crate) const REPLY_TO: &str = "amq.rabbitmq.reply-to";
const REPLY_TO_TEXT: ShortText<'static> = ShortText::literal(REPLY_TO);

pub(super) struct State {
    open: Option<Open>,
    /// Connections so far.
    life: u64,
    flights: Flights,
    seats: BTreeMap<SeatId, Seat>,
    seats_so_far: u64,
    /// Who waits for a reply, by correlation id.
    replies: HashMap<String, oneshot::Sender<Received>>,
    /// Somebody has asked for one, ever.
    wants_replies: bool,
    /// Nobody asks anything more; it ends when everything is told.
    pub(super) is_closing: bool,
    over: Option<Error>,
}

/// A connection that is open.
struct Open {
    amqp: Client,
    publishing: u16,
    seated: BTreeMap<u16, SeatId>,
}

impl State {
    pub(super) fn new(numbers: Option<Numbers>) -> Self {
        Self {
            open: None,
            life: 0,
            flights: Flights::new(numbers),
            seats: BTreeMap::new(),
            seats_so_far: 0,
            replies: HashMap::new(),
            wants_replies: false,
            is_closing: false,
            over: None,
        }
    }

    // ---- what is asked ----

    pub(super) fn publish(&mut self, flight: Flight) {
        self.flights.take(flight);
        self.go();
    }

    fn go(&mut self) {
        match (&self.over, &mut self.open) {
            (Some(why), _) => self.flights.give_up(why),
            (None, Some(open)) => self.flights.go(&mut open.amqp, open.publishing),
            (None, None) => {}
        }
    }

    pub(super) fn sit_down(
        &mut self,
        wanted: Wanted,
        started: oneshot::Sender<Result<(), Error>>,
    ) -> Result<(SeatId, Arc<Inbox>), Error> {
        self.check()?;
        self.seats_so_far += 1;
        let id = SeatId(self.seats_so_far);
        let inbox = Arc::new(Inbox::default());
        let seat = Seat {
            wanted,
            inbox: Arc::clone(&inbox),
            channel: 0,
            started: Some(started),
            is_cancelled: false,
        };
        self.seats.insert(id, seat);
        if let Some(open) = &mut self.open {
            open.seat(self.life, id, self.seats.get_mut(&id).expect("it was just made"));
        }
        Ok((id, inbox))
    }

    pub(super) fn cancel(&mut self, id: SeatId) {
        let Some(seat) = self.seats.get_mut(&id) else { return };
        seat.is_cancelled = true;
        let left = seat.inbox.close();
        let Some(open) = self.open.as_mut().filter(|_| seat.channel != 0) else { return };
        let _ = open.amqp.ask(seat.channel, basic::Cancel { consumer_tag: TAG, no_wait: true });
        for incoming in left.iter().filter(|incoming| incoming.life == self.life) {
            open.settle(seat.channel, incoming.tag, How::Nack);
        }
    }

    pub(super) fn stand_up(&mut self, id: SeatId) {
        let Some(seat) = self.seats.remove(&id) else { return };
        if let Some(open) = self.open.as_mut().filter(|_| seat.channel != 0) {
            open.seated.remove(&seat.channel);
            let _ = open.amqp.close_channel(seat.channel, "the consumer is gone");
        }
    }

    pub(super) fn settle(&mut self, id: SeatId, life: u64, tag: u64, how: How) -> Result<(), Error> {
        let seat = self.seats.get(&id).filter(|seat| seat.channel != 0 && life == self.life);
        let (Some(seat), Some(open)) = (seat, &mut self.open) else { return Err(Error::LeaseOver) };
        open.settle(seat.channel, tag, how);
        Ok(())
    }

    pub(super) fn expect_reply(
        &mut self,
        correlation_id: &str,
        answer: oneshot::Sender<Received>,
    ) -> Result<(), Error> {
        self.check()?;
        self.replies.insert(correlation_id.to_owned(), answer);
        if !self.wants_replies {
            self.wants_replies = true;
            if let Some(open) = &mut self.open {
                open.listen();
            }
        }
        Ok(())
    }

    pub(super) fn forget_reply(&mut self, correlation_id: &str) {
        self.replies.remove(correlation_id);
    }

    fn check(&self) -> Result<(), Error> {
        self.over.as_ref().map_or(Ok(()), |why| Err(why.clone()))
    }

    // ---- connections ----

    /// A connection is open: everything that was is asked again.
    pub(super) fn begin(&mut self, amqp: Client) {
        let mut open = Open { amqp, publishing: 0, seated: BTreeMap::new() };
        open.publish_again(self.wants_replies);
        for (id, seat) in self.seats.iter_mut().filter(|(_, seat)| !seat.is_cancelled) {
            open.seat(self.life, *id, seat);
        }
        self.open = Some(open);
        self.go();
    }

    /// The connection is lost. What was out is not ours any more.
    pub(super) fn lost(&mut self) {
        self.open = None;
        self.life += 1;
        self.flights.lost();
        // What was asked over it is answered to nobody.
        self.replies.clear();
        for seat in self.seats.values_mut() {
            seat.channel = 0;
            seat.inbox.begin(self.life);
        }
    }

    /// There will be no other.
    pub(super) fn end(&mut self, why: Error) {
        self.flights.give_up(&why);
        for seat in self.seats.values_mut() {
            seat.fail(why.clone());
        }
        self.seats.clear();
        self.replies.clear();
        self.over = Some(why);
    }

    // ---- the connection that is ----

    pub(super) fn receive(&mut self, now: Time, input: &mut bytes::BytesMut) {
        if let Some(open) = &mut self.open {
            open.amqp.receive(now, input);
        }
    }

    pub(super) fn hung_up(&mut self) {
        if let Some(open) = &mut self.open {
            open.amqp.hung_up();
        }
    }

    pub(super) fn tick(&mut self, now: Time) {
        if let Some(open) = &mut self.open {
            open.amqp.tick(now);
        }
    }

    pub(super) fn written(&mut self, now: Time) {
        if let Some(open) = &mut self.open {
            open.amqp.written(now);
        }
    }

    /// Takes out what is to be written, into an empty buffer; and says until when it may be waited.
    pub(super) fn take_output(&mut self, now: Time, output: &mut Vec<u8>) -> Option<Time> {
        let open = self.open.as_mut()?;
        if self.is_closing && self.flights.is_empty() {
            open.amqp.close(now, "done");
        }
        if output.is_empty() {
            std::mem::swap(open.amqp.output(), output);
        }
        open.amqp.next_deadline()
    }

    /// Whether nothing is to be written.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.open.as_mut().is_none_or(|open| open.amqp.output().is_empty())
    }

    pub(super) fn take_room(&mut self) -> usize {
        self.flights.take_room()
    }

    /// Hears everything that has happened. Answers how the connection ended, if it did.
    pub(super) fn hear_all(&mut self) -> Option<Ending> {
        let mut ending = None;
        for event in self.open.as_mut()?.amqp.take_events() {
            match event {
                Event::Closed(how) => ending = Some(how),
                event => self.hear(event),
            }
        }
        ending
    }

    fn hear(&mut self, event: Event) {
        let Some(open) = &mut self.open else { return };
        match event {
            Event::Confirmed { channel, tags, is_accepted } if channel == open.publishing => {
                self.flights.confirmed(tags, is_accepted);
                self.go();
            }
            Event::Returned { channel, tag: Some(tag), text, message, .. } if channel == open.publishing => {
                let (text, key) =
                    (String::from_utf8_lossy(&text), String::from_utf8_lossy(&message.routing_key));
                self.flights.returned(tag, format!("{text}: {key}"));
            }
            Event::Delivered { channel, delivery_tag: tag, redelivered, message, .. } => {
                let received = Received::new(message, redelivered);
                if channel == open.publishing {
                    return self.answer(received);
                }
                let seat = open.seated.get(&channel).and_then(|id| self.seats.get(id));
                let incoming = Incoming { life: self.life, tag, received };
                if !seat.is_some_and(|seat| seat.inbox.push(incoming)) {
                    open.settle(channel, tag, How::Nack);
                }
            }
            Event::Answered { channel, answer: Answer::Consuming(_), .. } => {
                let id = open.seated.get(&channel);
                if let Some(started) =
                    id.and_then(|id| self.seats.get_mut(id)).and_then(|seat| seat.started.take())
                {
                    let _ = started.send(Ok(()));
                }
            }
            Event::ConsumerCancelled { channel, .. } => {
                if let Some(seat) = open.seated.get(&channel).and_then(|id| self.seats.get_mut(id)) {
                    seat.is_cancelled = true;
                    seat.fail(Error::ConsumerCancelled);
                }
            }
            Event::ChannelClosed { channel, code, text } if channel == open.publishing => {
                self.flights.refused(code, &text);
                open.publish_again(self.wants_replies);
                self.go();
            }
            Event::ChannelClosed { channel, code, text } => {
                let id = open.seated.remove(&channel);
                if let Some(seat) = id.and_then(|id| self.seats.get_mut(&id)) {
                    (seat.channel, seat.is_cancelled) = (0, true);
                    seat.fail(Error::Refused { code, text });
                }
            }
            Event::Unblocked | Event::Flow { .. } => self.go(),
            _ => {}
        }
    }

    fn answer(&mut self, received: Received) {
        let asked = received.correlation_id().and_then(|id| self.replies.remove(id));
        if let Some(asked) = asked {
            // Who gave up waiting meanwhile does not want it.
            let _ = asked.send(received);
        }
    }
}

/// Each consumer is alone on its channel.
const TAG: ShortText<'static> = ShortText::literal("overtake");

impl Open {
    /// A channel to publish on, and to hear replies on. Refusals come as events.
    fn publish_again(&mut self, wants_replies: bool) {
        self.publishing = self.amqp.open_channel().unwrap_or_default();
        let _ = self.amqp.ask(self.publishing, confirm::Select { no_wait: false });
        if wants_replies {
            self.listen();
        }
    }

    fn listen(&mut self) {
        let consume = basic::Consume {
            queue: REPLY_TO_TEXT,
            consumer_tag: TAG,
            no_ack: true,
            no_wait: true,
            ..Default::default()
        };
        let _ = self.amqp.ask(self.publishing, consume);
    }

    fn seat(&mut self, life: u64, id: SeatId, seat: &mut Seat) {
        seat.inbox.begin(life);
        let Ok(channel) = self.amqp.open_channel() else {
            return seat.fail(Error::Invalid("the connection has as many consumers as it may".to_owned()));
        };
        seat.channel = channel;
        self.seated.insert(channel, id);
        let Wanted { queue, window, consumer_priority, urgent_credit, is_exclusive } = &seat.wanted;
        let mut arguments = TableBuilder::new();
        if let Some(priority) = consumer_priority {
            arguments = arguments.entry(Short::literal("x-priority"), Value::I32(*priority));
        }
        if let Some((from, messages)) = urgent_credit {
            let credit = TableBuilder::new()
                .entry(Short::literal("from"), Value::I32(*from))
                .entry(Short::literal("messages"), Value::I64((*messages).into()));
            arguments = arguments.entry(Short::literal("x-urgent-credit"), Value::Table(credit.view()));
        }
        let consume = basic::Consume {
            queue: ShortText::cut(queue),
            consumer_tag: TAG,
            exclusive: *is_exclusive,
            arguments: arguments.view(),
            ..Default::default()
        };
        let qos = basic::Qos { prefetch_size: 0, prefetch_count: *window, global: false };
        let asked = self.amqp.ask(channel, qos).and_then(|()| self.amqp.ask(channel, consume));
        if let Err(unsent) = asked {
            seat.fail(Error::Invalid(unsent.to_string()));
        }
    }

    fn settle(&mut self, channel: u16, delivery_tag: u64, how: How) {
        // It fails only when the channel is over, which is told as an event.
        let _ = match how {
            How::Ack => self.amqp.ask(channel, basic::Ack { delivery_tag, multiple: false }),
            How::Nack => self.amqp.ask(channel, basic::Nack { delivery_tag, multiple: false, requeue: true }),
            How::Reject => self.amqp.ask(channel, basic::Reject { delivery_tag, requeue: false }),
        };
    }
}

impl Seat {
    /// Nothing comes any more, whether it had begun or not.
    fn fail(&mut self, why: Error) {
        if let Some(started) = self.started.take() {
            let _ = started.send(Err(why.clone()));
        }
        self.inbox.end(why);
    }
}
