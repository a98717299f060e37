//! Leasing: what somebody of this process would take is claimed at the places, and handed over.

use std::sync::{Arc, Weak};
use std::time::Duration;

use overtake_engine::core::Answer;
use overtake_engine::{ANSWER_BYTES_MAX, Failure, Got, Holder, LeaseRequest};
use overtake_lane::{
    Asker, ConsumerId, Get, LeaseId, Outcome, Pull, PutBack, QueueId, Receipt, Refusal, Seq, State, Terms,
    Want,
};
use tokio::time::{Instant, sleep};

use super::House;
use super::carry::fill_in;
use super::floor::{Aftermath, Gift, Ticket};
use super::hosted::Hosted;
use super::see::read;
use super::signs::ALIVE_MS;
use crate::functions::{Choice, How, Leasing, Sweep};
use crate::places::Given;

/// Where leases end, and how.
type Ends = (QueueId, How);

/// Most messages of one claim.
const CLAIM_MAX: u32 = 200;
/// A pull that is ended by hand does not end by itself meanwhile, ms.
const LONG_MS: u64 = 600_000;
/// No answer is on its way for so long unless something is amiss: leases that are shorter are handed over, else there might be none that is not over.
const SLOW: Duration = Duration::from_secs(1);
/// Between two tries where servers do not answer.
pub(super) const REST: Duration = Duration::from_millis(200);

impl House {
    /// Claims what the takers of a queue want, and hands it over. Whether anybody got something.
    async fn serve_once(&self, hosted: &Arc<Hosted>) -> Result<bool, Failure> {
        self.be_sure_of_attendance(hosted).await?;
        hosted.until_put_back().await;
        let _turn = hosted.turn.lock().await;
        let _under_way = hosted.under_way.begin();
        let wants = self.floor().wants(hosted.queue);
        for want in wants {
            let asked = Instant::now();
            let given = self.claim(hosted, &want).await?;
            if !given.is_empty() {
                let gifts = self.gifts(hosted, given)?;
                self.hand(hosted, &gifts, want.terms, asked);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leases for somebody, as much as is there of what it wants.
    async fn claim(&self, hosted: &Arc<Hosted>, want: &Want) -> Result<Vec<Given>, Failure> {
        let mut leasing = self.leasing(hosted, want);
        let mut all = hosted.lease_now(&leasing).await?;
        while !hosted.is_whole() && !all.is_empty() {
            if leasing.choice.one {
                let level =
                    |given: &Given| hosted.places().terms().level(given.shown.stored.message.priority);
                leasing.choice.only = all.first().map(level);
            }
            let bytes: u64 = all.iter().map(|given| u64::from(given.shown.stored.message.bytes)).sum();
            leasing.max = want.max.min(CLAIM_MAX) - all.len() as u32;
            leasing.max_bytes = leasing_bytes(want).saturating_sub(bytes);
            if leasing.max == 0 || leasing.max_bytes == 0 {
                break;
            }
            match hosted.lease_now(&leasing).await {
                Ok(more) if !more.is_empty() => all.extend(more),
                Ok(_) => break,
                // What is leased is handed over; who asks for more is told.
                Err(why) => {
                    tracing::debug!(queue = %hosted.name, %why, "no more can be leased now");
                    break;
                }
            }
        }
        Ok(all)
    }

    pub(super) fn leasing(&self, hosted: &Hosted, want: &Want) -> Leasing {
        let (term_ms, is_held) = match want.terms {
            Terms::Ms(ms) => (ms, false),
            Terms::Held | Terms::Settled => (0, true),
        };
        if is_held {
            hosted.holds();
        }
        let terms = hosted.places().terms();
        let except = want.choice.except.iter().filter_map(|lane| terms.level_named(lane)).collect();
        let choice = Choice {
            floor: terms.least_level(want.choice.at_least),
            only: None,
            except,
            one: want.choice.one,
            last: None,
        };
        Leasing {
            max: want.max.min(CLAIM_MAX),
            max_bytes: leasing_bytes(want),
            term_ms,
            holder: is_held.then(|| (self.caller.clone(), ALIVE_MS)),
            choice,
            granted: Vec::new(),
        }
    }

    /// What was leased, as it is handed over.
    pub(super) fn gifts(&self, hosted: &Hosted, given: Vec<Given>) -> Result<Vec<Gift>, Failure> {
        let gift = |given: Given| {
            let mut message = given.shown.stored.message;
            message.seq = hosted.known_as(given.place, message.seq);
            let State::Leased { lease, .. } = message.state else { return Err(senseless()) };
            let content = read(given.shown.content.as_deref().ok_or_else(senseless)?)?;
            fill_in(&mut message, &content);
            let view = self.definitions.with(|broker| broker.view_of(hosted.queue, &message));
            let view = view.ok_or(Refusal::NoSuchQueue)?;
            Ok(Gift { message, lease, view, content })
        };
        given.into_iter().map(gift).collect()
    }

    /// Hands over what was asked for then. An answer may have been so long on its way, while a server fell, that its leases are over.
    pub(super) fn hand(&self, hosted: &Arc<Hosted>, gifts: &[Gift], terms: Terms, asked: Instant) {
        if let Terms::Ms(ms) = terms
            && asked.elapsed() >= Duration::from_millis(ms).max(SLOW)
        {
            let leases = gifts.iter().map(|gift| (gift.message.seq, gift.lease)).collect();
            return self.end_leases(hosted, How::Untaken, leases);
        }
        let returned = self.on_floor(|floor, now, after| {
            floor.hand(now, hosted.queue, gifts, terms, after);
            let returned = after.returned.iter().map(|(receipt, _)| receipt);
            returned.chain(&after.untaken).map(|receipt| receipt.lease).collect::<Vec<_>>()
        });
        if terms == Terms::Settled {
            let kept = gifts.iter().filter(|gift| !returned.contains(&gift.lease));
            let leases: Vec<(Seq, LeaseId)> = kept.map(|gift| (gift.message.seq, gift.lease)).collect();
            self.end_leases(hosted, How::By(Outcome::Ack), leases);
        }
    }

    /// Ends leases at their places, which nobody waits for but whoever asks there next.
    fn end_leases(&self, hosted: &Arc<Hosted>, how: How, leases: Vec<(Seq, LeaseId)>) {
        if leases.is_empty() {
            return;
        }
        let puts_back = !matches!(how, How::By(Outcome::Ack));
        let under_way = hosted.under_way.begin();
        let (returning, hosted) = (hosted.return_some(puts_back), Arc::clone(hosted));
        self.runtime.spawn(async move {
            // What cannot be given back now goes back with a sign of life.
            if let Err(why) = hosted.settle(how, &leases).await {
                tracing::debug!(queue = %hosted.name, %why, "leases are not given back yet");
            }
            drop((returning, under_way));
        });
    }

    /// Does what is to be done because of something that happened on the floor.
    pub(super) fn clear_up(&self, after: Aftermath) {
        let returned = after.returned.into_iter().map(|(receipt, why)| match why {
            PutBack::Released => (receipt, How::By(Outcome::Release)),
            _ => (receipt, How::Lost),
        });
        let untaken = after.untaken.into_iter().map(|receipt| (receipt, How::Untaken));
        let mut by_queue: Vec<(Ends, Vec<(Seq, LeaseId)>)> = Vec::new();
        for (Receipt { queue, seq, lease }, how) in returned.chain(untaken) {
            match by_queue.iter_mut().find(|(its, _)| *its == (queue, how)) {
                Some((_, leases)) => leases.push((seq, lease)),
                None => by_queue.push(((queue, how), vec![(seq, lease)])),
            }
        }
        for ((queue, how), leases) in by_queue {
            if let Some(hosted) = self.known(queue) {
                self.end_leases(&hosted, how, leases);
            }
        }
        if !after.left.is_empty()
            && let Some(me) = self.me.upgrade()
        {
            self.runtime.spawn(async move { me.end_left(after.left).await });
        }
        for queue in after.stirred {
            if let Some(hosted) = self.known(queue) {
                hosted.stirred.notify_waiters();
            }
        }
    }

    /// Leases messages, or waits for the first.
    pub(super) async fn lease(
        &self,
        asker: Asker,
        consumer: ConsumerId,
        lease: LeaseRequest,
        ticket: Ticket,
    ) -> Result<(), (Ticket, Failure)> {
        let LeaseRequest { queue, max, max_bytes, wait_ms, term, lanes, holder } = lease;
        let hosted = match self.hosted_by_name(asker, &queue).await {
            Ok(hosted) => hosted,
            Err(why) => return Err((ticket, why)),
        };
        hosted.settled_down().await;
        if let Err(why) = hosted.unused_in(true).await {
            return Err((ticket, why));
        }
        let (max, max_bytes) = (max.max(1), max_bytes.min(ANSWER_BYTES_MAX));
        self.on_floor(|floor, now, after| {
            let until = now.after(wait_ms.max(LONG_MS));
            let until = if wait_ms == 0 { until } else { now.after(wait_ms) };
            let pull = Pull { consumer, queue: Arc::clone(&queue), max, max_bytes, term, lanes, until };
            floor.pull(now, asker, (hosted.queue, pull), (ticket, holder), after);
        });
        self.dispatched(&hosted);
        if wait_ms > 0 {
            hosted.places().show_again();
        } else if let Some(me) = self.me.upgrade() {
            // What is claimed is handed over, whether somebody waits for it still or not.
            self.runtime.spawn(async move {
                let looked = me.look_hard(&hosted, consumer).await;
                me.on_floor(|floor, now, after| match looked {
                    Ok(()) => floor.give_up(now, consumer, after),
                    Err(why) => floor.fail(now, consumer, why, after),
                });
            });
        }
        Ok(())
    }

    /// Serves whoever wants something of a queue until this one got something, or nothing is there that anybody takes; then the places are asked what they have.
    async fn look_hard(&self, hosted: &Arc<Hosted>, consumer: ConsumerId) -> Result<(), Failure> {
        self.serve_until_served(hosted, consumer).await?;
        if self.floor().waits(consumer) {
            let asked = hosted.ask_served(&Sweep).await;
            hosted.places().show_again();
            self.serve_until_served(hosted, consumer).await?;
            // Where some are not asked, nothing is not known to be all.
            if self.floor().waits(consumer) {
                return asked;
            }
        }
        Ok(())
    }

    async fn serve_until_served(&self, hosted: &Arc<Hosted>, consumer: ConsumerId) -> Result<(), Failure> {
        while self.floor().waits(consumer) && self.serve_once(hosted).await? {}
        Ok(())
    }

    /// Leases one message, now or not at all.
    pub(super) async fn get(
        &self,
        asker: Asker,
        get: Get,
        holder: Option<Arc<Holder>>,
    ) -> Result<Answer, Failure> {
        let hosted = self.hosted_by_name(asker, &get.queue).await?;
        hosted.settled_down().await;
        hosted.unused_in(true).await?;
        hosted.holds();
        hosted.until_put_back().await;
        // A place that is being asked shows nothing meanwhile: whoever asks others would be given what is less urgent.
        let turn = if hosted.is_whole() { None } else { Some(hosted.turn.lock().await) };
        let _under_way = hosted.under_way.begin();
        let choice = Choice::default();
        let (max_bytes, holder_of) = (ANSWER_BYTES_MAX, Some((self.caller.clone(), ALIVE_MS)));
        let leasing =
            Leasing { max: 1, max_bytes, term_ms: 0, holder: holder_of, choice, granted: Vec::new() };
        let mut given = hosted.lease_now(&leasing).await?;
        if given.is_empty() {
            let asked = hosted.ask_served(&Sweep).await;
            hosted.places().show_again();
            given = hosted.lease_now(&leasing).await?;
            if given.is_empty() {
                asked?;
            }
        }
        drop(turn);
        let Some(gift) = self.gifts(&hosted, given)?.pop() else { return Ok(Answer::Got(None)) };
        let lease = (gift.message.seq, gift.lease);
        let handed = self.on_floor(|floor, now, after| floor.hand_to(now, asker, &get, gift, holder, after));
        let message = match handed {
            Ok(message) => message,
            Err(refusal) => {
                hosted.settle(How::By(Outcome::Release), &[lease]).await?;
                return Err(refusal.into());
            }
        };
        if get.no_ack {
            hosted.settle(How::By(Outcome::Ack), &[lease]).await?;
        }
        let ready = self.ready(&hosted).await?;
        Ok(Answer::Got(Some(Box::new(Got { message, ready }))))
    }

    /// Sees to it that somebody serves the takers of a queue.
    pub(super) fn dispatched(&self, hosted: &Arc<Hosted>) {
        if !hosted.is_served() {
            self.runtime.spawn(serve(self.me.clone(), Arc::downgrade(hosted)));
        }
        hosted.stirred.notify_waiters();
    }
}

fn senseless() -> Failure {
    Failure::Unavailable("a message makes no sense".into())
}

fn leasing_bytes(want: &Want) -> u64 {
    if want.max_bytes == 0 { ANSWER_BYTES_MAX } else { want.max_bytes }
}

/// Serves the takers of a queue, as long as it is hosted.
async fn serve(house: Weak<House>, hosted: Weak<Hosted>) {
    loop {
        let Some(here) = hosted.upgrade() else { return };
        let (stirred, better) = (here.stirred.notified(), here.places().better());
        let attendance = here.places().attendance();
        tokio::pin!(stirred, better, attendance);
        // From here on nothing is missed.
        stirred.as_mut().enable();
        better.as_mut().enable();
        attendance.as_mut().enable();
        let Some(at_work) = house.upgrade() else { return };
        match at_work.serve_once(&here).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(_) if here.is_gone() => return,
            Err(why) => {
                tracing::debug!(queue = %here.name, %why, "nothing can be leased now");
                sleep(REST).await;
                continue;
            }
        }
        drop(at_work);
        let mut ended = here.ended();
        tokio::select! {
            () = stirred => {}
            () = better => {}
            () = attendance => {
                let Some(at_work) = house.upgrade() else { return };
                if here.settings().single_active_consumer
                    && let Err(why) = at_work.attend_again(&here).await
                {
                    tracing::debug!(queue = %here.name, %why, "it is not known yet who is served");
                }
            }
            () = ended.wait() => return,
        }
    }
}
