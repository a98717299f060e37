//! What a client has been given: whether it may be given that, what it says to it, and what that comes to.

use overtake_amqp::method::basic;

use super::channel::{Channel, Expect, Incoming, Mode, Out, Queue, Taking, Transaction, What};
use super::hears::check_tag;
use super::letters;
use super::wire::Wire;
use crate::failure::{Checked, Promise, broken, hold};
use crate::refold::mark_of;
use crate::world::World;

impl World {
    /// A content is whole.
    pub(super) fn has_come(&mut self, wire: &mut Wire, number: u16, incoming: &Incoming) -> Checked {
        let properties = incoming.properties.as_ref().expect("it is whole").view();
        let mark = mark_of(properties.content_type().and_then(overtake_properties::Short::text));
        let session = wire.session;
        let letter = mark.and_then(|mark| self.book.letters.get(mark as usize));
        let Some(letter) = letter else {
            return broken(Promise::Kept, format!("{session:?} gets what nobody published: {properties:?}"));
        };
        let redelivered = match incoming.what {
            What::Deliver { redelivered, .. } | What::Got { redelivered, .. } => Some(redelivered),
            What::Returned => None,
        };
        letters::compare(letter, incoming, redelivered).or_else(|why| {
            broken(
                Promise::Kept,
                format!("{session:?} gets m/{mark:?} otherwise than it was published: {why}"),
            )
        })?;
        let channel = wire.side.channels.get_mut(&number).expect("it has a content");
        let (tag, out) = match &incoming.what {
            What::Returned => return Ok(()),
            What::Got { queue, no_ack, tag, .. } => {
                let out = Out { mark, queue: queue.clone(), taker: None };
                (*tag, (!no_ack).then_some(out))
            }
            What::Deliver { taker, tag, .. } => {
                let taking = channel.takers.get(taker);
                check_tag(channel, *tag, taking)
                    .or_else(|why| broken(Promise::Alive, format!("{session:?} hears {why}")))?;
                let Taking { queue, no_ack, is_leaving, .. } = taking.expect("it was just checked");
                let taker = (!is_leaving).then(|| taker.clone());
                let out = Out { mark, queue: queue.clone(), taker };
                (*tag, (!no_ack).then_some(out))
            }
        };
        hold(tag == channel.last + 1, Promise::Alive, || {
            format!("{session:?} hears of delivery {tag} after {}", channel.last)
        })?;
        channel.last = tag;
        self.tally.deliveries += 1;
        self.trace.mix(&[session.0, tag]);
        // What comes while all goes back goes back, too.
        let goes_back = channel.expects.iter().any(|(_, expect)| matches!(expect, Expect::Recover));
        if let Some(out) = out.filter(|_| !goes_back) {
            let taker = out.taker.clone();
            channel.out.insert(tag, out);
            let is_there = |queue: &Queue| queue.id.is_some_and(|id| self.audit.queues.contains_key(&id));
            // What was out of a queue that is gone is out no more, and who does not want to be told is not.
            let is_known = channel.out.values().all(|out| out.queue.is_ours() && is_there(&out.queue));
            check_windows(channel, taker.as_deref().filter(|_| is_known))
                .or_else(|why| broken(Promise::Cap, format!("{session:?} {why}")))?;
        }
        Ok(())
    }

    /// What was acknowledged is known to be: its message is gone for good.
    pub(super) fn check_gone(&self, out: &Out) -> Checked {
        let Some(mark) = out.mark else { return Ok(()) };
        let Some(queue) = out.queue.id.filter(|id| self.audit.queues.contains_key(id)) else { return Ok(()) };
        // Somebody else may have taken it away. What a `get` gave may have been acknowledged in time, and heard of too late: then
        // no channel has it that could be closed.
        let is_ours = out.queue.is_ours();
        let may_time_out =
            self.book.settings.get(&queue).is_some_and(|settings| settings.consumer_timeout_ms > 0);
        let is_gone = self.checks.gone.has(mark);
        hold(is_gone || !is_ours || (may_time_out && out.taker.is_none()), Promise::Gone, || {
            format!("m/{mark} was acknowledged and what came later was answered, but it is not settled")
        })
    }

    /// Something durable was answered that was asked for when so much had been said: then all that was said before is done.
    pub(super) fn is_done(&mut self, wire: &mut Wire, number: u16, said: u64) -> Checked {
        let Some(channel) = wire.side.channels.get_mut(&number) else { return Ok(()) };
        let known: Vec<Out> =
            channel.acked.extract_if(.., |(at, _)| *at < said).map(|(_, out)| out).collect();
        known.iter().try_for_each(|out| self.check_gone(out))
    }

    // ---- what it says to it ----

    /// Settles some of what it has.
    pub(super) fn settle(&mut self, wire: &mut Wire, number: u16) {
        let habits = wire.habits;
        let rng = &mut self.chance.amqp;
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        if channel.out.is_empty() || (habits.is_slow && !rng.once_in(5)) {
            return;
        }
        let tags: Vec<u64> = channel.out.keys().copied().collect();
        let tag = rng.one_of(&tags);
        let multiple = rng.once_in(3);
        let all = multiple && rng.once_in(4);
        let is_nack = rng.once_in(habits.nacks);
        let requeue = rng.once_in(2);
        let settled: Vec<(u64, Out)> = match multiple {
            false => channel.out.remove_entry(&tag).into_iter().collect(),
            true => channel.out.extract_if(.., |at, _| all || *at <= tag).collect(),
        };
        let said_tag = if all { 0 } else { tag };
        channel.is_unsure |= all;
        channel.has_refused_all |= all && is_nack;
        let is_ack = !is_nack && !channel.has_refused_all;
        let outs = settled.iter().map(|(_, out)| out.clone());
        if channel.mode == Mode::Transacts {
            if is_ack {
                channel.transaction.acked.extend(outs);
            }
            channel.transaction.settled.extend(settled);
        } else if is_ack {
            let said = channel.said;
            channel.acked.extend(outs.map(|out| (said, out)));
        }
        channel.said += 1;
        match (is_nack, multiple) {
            (false, _) => wire.say(number, basic::Ack { delivery_tag: said_tag, multiple }),
            (true, false) if requeue => wire.say(number, basic::Reject { delivery_tag: tag, requeue }),
            (true, _) => wire.say(number, basic::Nack { delivery_tag: said_tag, multiple, requeue }),
        }
    }

    /// All that it has goes back, without being settled.
    pub(super) fn recover(wire: &mut Wire, number: u16) {
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        channel.out.clear();
        channel.expect(Expect::Recover);
        wire.say(number, basic::Recover { requeue: true });
    }

    /// Ends a transaction, this way or that.
    pub(super) fn end_transaction(&mut self, wire: &mut Wire, number: u16) {
        use overtake_amqp::method::tx;
        let channel = wire.side.channels.get_mut(&number).expect("it is open");
        let transaction: Transaction = std::mem::take(&mut channel.transaction);
        if self.chance.amqp.once_in(4) {
            // They are out again for what is said from now on, whenever the answer comes.
            channel.out.extend(transaction.settled);
            channel.expect(Expect::Rollback);
            wire.say(number, tx::Rollback {});
        } else {
            channel.expect(Expect::Commit(transaction));
            wire.say(number, tx::Commit {});
        }
    }
}

/// A consumer has no more than it asked for, nor have those of a channel that share a window. Where others may take away what
/// a client has, nobody can tell: then there is no `taker`.
fn check_windows(channel: &Channel, taker: Option<&str>) -> Result<(), String> {
    let Some((tag, taking)) = taker.and_then(|tag| Some((tag, channel.takers.get(tag)?))) else {
        return Ok(());
    };
    if channel.is_unsure {
        return Ok(());
    }
    let most = usize::from(taking.prefetch) + usize::from(taking.extra);
    let held = channel.held_by(tag);
    if taking.prefetch > 0 && held > most {
        return Err(format!("holds {held} messages by consumer {tag}, {most} is the most"));
    }
    match channel.shared {
        Some(most) if taking.is_shared && most > 0 && channel.held_in_share() > usize::from(most) => {
            Err(format!("holds {} messages in a window of {most}", channel.held_in_share()))
        }
        _ => Ok(()),
    }
}
