//! One step of the engine, and what the checkers say of it.

use std::collections::BTreeSet;

use overtake_engine::core::{Answer, Done as JobDone, Out, Request};
use overtake_engine::{Clock, Event, LeasedMessage, NewMessage, Refused};
use overtake_lane::{
    Asker, Backoff, Command, ConsumerId, LaneChoice, LeaseTerm, Message, Outcome, QueueId, Receipt, Refusal,
    Seq, Time, VhostId,
};
use overtake_store::FileReady;

use crate::audit::Audit;
use crate::book::asked_by;
use crate::check::patience::Moment;
use crate::check::{
    self, aside, awake, bounded, budget, cap, conserved, expiry, kept, looks, one_holder, order, policies,
    route, routes, vhosts,
};
use crate::failure::{Checked, Promise, hold};
use crate::life::Life;
use crate::refold::mark_of;
use crate::round::{Lent, Round};
use crate::routed::is_routed;
use crate::rules::Change;
use crate::sabotage::Sabotage;
use crate::world::World;

/// Bites of cleaning after which a journal that is too long is shorter, beside one for the record of each run.
const BITES_MAX: u64 = 60;

/// What the engine is made to do.
#[derive(Debug)]
pub(crate) enum Act {
    /// Time passes.
    Tick,
    /// A request is handled.
    Ask(u64, Request),
    /// A file is ready.
    File(FileReady),
    /// A job beside the journal is done.
    Done(JobDone),
    /// A look at messages goes on.
    Scan,
    /// What is left of messages that are gone is cleared.
    Clear,
    /// House is kept.
    House,
}

/// Messages that a step of a scan looks at: few, so that much happens between two steps.
const LOOKS: usize = 3;
/// Messages, gone all at once, that a step clears.
const CLEARED: usize = 3;

/// A step that was done.
struct Done {
    ticket: u64,
    request: Option<Request>,
    /// What goes out now.
    outs: Vec<Out<u64>>,
    /// Answers that were made now and go out once records have room.
    held: Vec<Out<u64>>,
    /// Those of `outs` that were made so in an earlier step.
    late: BTreeSet<u64>,
}

impl Done {
    /// What was made in this step, whenever it goes out.
    fn made(&self) -> impl Iterator<Item = &Out<u64>> {
        let is_late =
            |out: &&Out<u64>| matches!(out, Out::Answer { ticket, .. } if self.late.contains(ticket));
        self.outs.iter().filter(move |out| !is_late(out)).chain(&self.held)
    }

    /// What was answered, whenever that is told.
    fn result(&self) -> Option<&Result<Answer, Refused>> {
        self.made().find_map(|out| match out {
            Out::Answer { ticket, result, .. } if *ticket == self.ticket => Some(result),
            _ => None,
        })
    }
}

impl World {
    /// Makes the engine do something and judges it.
    pub(crate) fn step(&mut self, act: Act) -> Checked {
        let Some(mut life) = self.life.take() else { return Ok(()) };
        let now = self.clock();
        if self.config.sabotage != Some(Sabotage::BelievesWallClock) {
            life.core.set_clock_ahead(self.steady.ahead_ms());
        }
        let (mut ticket, mut request, mut looked) = (0, None, 0);
        let is_at_end = life.core.is_at_end();
        let passes_time = matches!(act, Act::Tick | Act::Ask(..));
        let (is_house, is_tick) = (matches!(act, Act::House), matches!(act, Act::Tick));
        match act {
            Act::Tick => life.core.tick(now),
            Act::Ask(number, asked) => {
                *self.tally.requests.entry(crate::tell::kind(&asked)).or_default() += 1;
                self.book.asks(now.max(life.core.broker().now()), &asked, life.core.broker());
                life.core.handle(now, self.sabotaged_request(&asked), number);
                self.learn_consumer(&life, &asked);
                self.checks.looks.asked(number, &asked, life.core.broker(), &self.audit);
                (ticket, request) = (number, Some(asked));
            }
            Act::File(news) => life.core.file_ready(news),
            Act::Done(done) => life.core.done(done),
            Act::Scan => {
                let before = life.core.looked();
                request = self.scan_on(&mut life, now);
                looked = life.core.looked() - before;
            }
            Act::Clear => life.core.clear_on(CLEARED),
            Act::House if self.config.sabotage == Some(Sabotage::HoardsJournal) => {}
            Act::House => drop(life.core.keep_house()),
        }
        if passes_time {
            life.seen = life.seen.max(self.true_clock());
        }
        self.tally.steps += 1;
        if life.core.failure().is_some() {
            return self.cannot_read(life);
        }
        if let Err(broken) = budget::check_looks(LOOKS, looked) {
            self.life = Some(life);
            return Err(broken);
        }
        let mut outs = life.core.take_outs();
        self.sabotage_outs(&mut outs);
        let tail = life.core.tail();
        let is_behind = life.core.is_behind();
        if request.is_none() && outs.is_empty() && tail == life.tail && !is_behind {
            // Nothing was recorded: then nothing has changed, or the next audit will tell.
            return self.pass_over(life, is_house);
        }
        let written = match (is_house, is_at_end) {
            (true, false) => &mut self.tally.house_bytes,
            (true, true) => &mut self.tally.full_house_bytes,
            (false, _) => &mut self.tally.other_bytes,
        };
        *written += tail.0 - life.tail.0;
        life.tail = tail;
        let audit = Audit::of(life.core.broker());
        if life.core.failure().is_some() {
            return self.cannot_read(life);
        }
        self.live_most = self.live_most.max(audit.bytes());
        self.trace.mix(&[audit.digest, tail.0]);
        let (held, late) = life.take_held(&outs);
        let done = Done { ticket, request, outs, held, late };
        let before = std::mem::replace(&mut self.audit, audit);
        self.checks.looks.look(&self.audit);
        let judged = self.judge(&life, &before, &done);
        let judged = judged.and_then(|()| self.judge_looks(&done));
        let judged = judged.and_then(|()| match is_tick {
            true => {
                let given = self.given(&done);
                budget::check_tick(&self.book, &before, &self.audit, &given, self.plan.step_max)
            }
            false => Ok(()),
        });
        let judged = judged.and_then(|()| if is_house { self.judge_length(&mut life) } else { Ok(()) });
        let judged = judged.and_then(|()| self.judge_routes(&mut life, &done));
        life.due = awake::first_due(&self.book, &self.audit);
        if is_behind {
            self.tally.behind += 1;
            self.checks.refold.take_none();
        } else {
            self.checks.refold.take(tail, &self.audit);
        }
        self.life = Some(life);
        judged?;
        let leaves = done.request.as_ref().and_then(leaving);
        self.hand_out(done, tail);
        // What it was given before it left is still told.
        self.peers.forget(leaves);
        Ok(())
    }

    /// Goes on with a look, or with a change of many messages: then this is what it asked for and did.
    fn scan_on(&mut self, life: &mut Life, now: Time) -> Option<Request> {
        let looks = if self.config.sabotage == Some(Sabotage::LooksAtAll) { usize::MAX } else { LOOKS };
        let mut asked = life.core.scan_on(now, looks)?;
        if life.core.must_wait(Asker::default(), &asked) {
            return None;
        }
        if self.config.sabotage == Some(Sabotage::ChangesLess) {
            looks::leave_one_out(&mut asked);
        }
        self.book.asks(now.max(life.core.broker().now()), &asked, life.core.broker());
        life.core.change_on(now, asked.clone());
        self.tell(|| format!("a change goes on: {}", crate::tell::request(&asked)));
        self.book.answered(&asked, &Answer::Count(0), life.core.broker());
        self.checks.looks.changed(&asked, life.core.broker());
        Some(asked)
    }

    /// The engine cannot read what it spilled, and says so: then the machine is going down.
    fn cannot_read(&mut self, mut life: Life) -> Checked {
        let why = life.core.failure().expect("it failed");
        life.ended = Some(why.to_string());
        self.life = Some(life);
        hold(self.has_struck(), Promise::Alive, || format!("the engine cannot read a segment: {why}"))
    }

    /// A step in which nothing happened, and nothing should have.
    fn pass_over(&mut self, mut life: Life, is_house: bool) -> Checked {
        let judged = self
            .judge_standing(&life)
            .and_then(|()| if is_house { self.judge_length(&mut life) } else { Ok(()) });
        self.life = Some(life);
        judged
    }

    /// What stands in the broker may stand there, and nobody waits for it.
    fn judge_standing(&mut self, life: &Life) -> Checked {
        let now = Moment {
            clock: self.clock().max(life.core.broker().now()),
            now_us: self.running_us(),
            excused_from_us: self.patient_until(),
            life: life.number,
        };
        self.checks.patience.look(now, &self.audit)?;
        if !life.core.is_late() {
            expiry::check_standing(&self.book, life.seen, &self.audit)?;
        }
        self.check_served(life, &self.audit)
    }

    /// Every promise that one step can break.
    fn judge(&mut self, life: &Life, before: &Audit, done: &Done) -> Checked {
        let result = done.result();
        let audit = std::mem::take(&mut self.audit);
        let asked = done.request.as_ref().map(asked_by);
        let (vhost, request) =
            (asked.map_or(VhostId::DEFAULT, |(asker, _)| asker.vhost), asked.map(|(_, request)| request));
        let given = self.given(done);
        let step =
            check::Step { now: life.seen, vhost, request, result, before, after: &audit, given: &given };
        let judged = self.judge_answer(life, &step, done).and_then(|()| self.judge_leases(life, &step, done));
        self.audit = audit;
        judged?;
        bounded::check_messages(&self.audit)?;
        self.judge_standing(life)?;
        if self.chance.schedule.once_in(8) { self.judge_gauges(life) } else { Ok(()) }
    }

    /// Routes are looked at through the engine, as clients do: the model knows nothing of them.
    fn judge_routes(&mut self, life: &mut Life, done: &Done) -> Checked {
        let Some(request) = &done.request else { return Ok(()) };
        self.checks.routes.changed(&mut life.core, done.ticket, request, done.result())
    }

    fn judge_looks(&mut self, done: &Done) -> Checked {
        done.made().try_for_each(|out| match out {
            Out::Answer { ticket, result, .. } => self.checks.looks.check(*ticket, result),
            _ => Ok(()),
        })
    }

    fn judge_answer(&mut self, life: &Life, step: &check::Step<'_>, done: &Done) -> Checked {
        if let (Some(request), Some(result)) = (step.request, step.result) {
            one_holder::check_settled(&self.book, step, request, result)?;
            check_taken(request, result)?;
            check_room(life, request, result)?;
            self.checks.metadata.answered(life.core.broker(), done.ticket, request, result)?;
            self.checks.vhosts.answered(life.core.broker(), done.ticket, request, result)?;
            self.checks.policies.answered(life.core.broker(), done.ticket, step)?;
            self.checks.routes.check_shown(step)?;
            self.checks.routes.check_published(life.core.broker(), step)?;
            routes::check_endpoints(life.core.broker(), step)?;
            if let Ok(answer) = result {
                self.checks.kept.answered(life.core.broker(), done.ticket, step, request, answer);
                self.checks.gone.answered(&self.book, done.ticket, request, answer);
                self.judge_stamps(life, step, request, answer)?;
            }
        }
        kept::check_leaving(&self.book, step)?;
        aside::check_returned(&self.book, step)?;
        vhosts::check_apart(step)?;
        let lent = done.made().filter_map(|out| match out {
            Out::Deliver { message, .. } => Some((message.receipt.queue, message.receipt.seq)),
            _ => None,
        });
        // What the step had no room for goes in those after it.
        if !life.core.is_late() {
            cap::check_length(&self.book, step, &lent.collect())?;
            cap::check_ruled(&self.book, step)?;
        }
        self.book.endpoints_made(life.core.broker(), step);
        if let (Some(request), Some(Ok(answer))) = (&done.request, step.result) {
            self.book.answered(request, answer, life.core.broker());
            if let Some(change) = Change::of(step) {
                self.book.policies_change(&change);
            }
            policies::check(&self.book, life.core.broker())?;
        }
        Ok(())
    }

    /// What was published stands as it was asked for.
    fn judge_stamps(
        &mut self,
        life: &Life,
        step: &check::Step<'_>,
        request: &Request,
        answer: &Answer,
    ) -> Checked {
        if let (Request::PublishOne(message), Answer::Count(copies)) = (request, answer) {
            return self.judge_untold(life, step, message, *copies);
        }
        let (Request::Publish { messages, .. }, Answer::Copies(copies)) = (request, answer) else {
            return Ok(());
        };
        if let [message] = &**messages {
            route::check(life.core.broker(), step, message, copies)?;
        }
        for copy in copies.iter().filter(|copy| !copy.duplicate) {
            let asked = &messages[copy.publish];
            let Ok(queue) = life.core.broker().id_of(step.vhost, &copy.queue) else { continue };
            let Some(message) = step.after.find(queue, copy.seq) else { continue };
            self.judge_stamp(step, queue, message, asked)?;
            if messages.len() == 1 {
                order::check_position(&self.book, step, queue, copy)?;
            }
        }
        Ok(())
    }

    /// What was published without asking what became of it stands as it was asked for, too.
    fn judge_untold(&self, life: &Life, step: &check::Step<'_>, asked: &NewMessage, copies: u64) -> Checked {
        if !is_routed(asked) {
            route::check_count(life.core.broker(), step, asked, copies)?;
        }
        for (queue, message) in step.arrivals() {
            self.judge_stamp(step, queue, message, asked)?;
        }
        Ok(())
    }

    /// A message stands in its queue as urgent, and until, as was asked for, or as its route says.
    fn judge_stamp(
        &self,
        step: &check::Step<'_>,
        queue: QueueId,
        message: &Message,
        asked: &NewMessage,
    ) -> Checked {
        let settings = &self.book.settings[&queue];
        let name = &step.after.queues[&queue].name;
        let copy = self.checks.routes.copy_for(step.vhost, name, asked)?;
        if let Some(copy) = &copy {
            routes::check_urgency(copy, settings, asked, message)?;
        }
        let default_ttl_ms = self.options.default_ttl_ms;
        let route_ttl_ms = copy.and_then(|copy| copy.ttl_ms);
        let expected = expiry::expected(step.now, settings, default_ttl_ms, asked, route_ttl_ms);
        hold(message.expires == expected, Promise::Expiry, || {
            let (seq, expires) = (message.seq.0, message.expires.0);
            format!("message {seq} of {} expires at {expires}, not at {}", queue.0, expected.0)
        })
    }

    fn judge_leases(&mut self, life: &Life, step: &check::Step<'_>, done: &Done) -> Checked {
        let lent = self.lent(done);
        self.book.prune(step.now, step.after, life.core.broker());
        for one in &lent {
            self.tally.leases += 1;
            one_holder::check_lent(&self.book, &one.message)?;
            self.checks.gone.check_lent(&one.message)?;
            self.checks.denied.check_lent(&one.message)?;
            self.check_content(&one.message)?;
            expiry::check_lent(step, one)?;
            cap::check_single(&self.book, one)?;
            self.book.begin(step.now, one);
            self.endpoints.lent(&one.message.receipt);
        }
        cap::check_shared(&self.book, &lent)?;
        let rounds = Round::of_step(&self.book, step.before, step.after, &lent);
        self.checks.rates.look(step.now, &self.book);
        for round in &rounds {
            order::check(&self.book, round)?;
            self.checks.pick.check(&self.book, round)?;
            cap::check(&self.book, round)?;
            self.checks.rates.check(round)?;
        }
        Ok(())
    }

    /// Whether what a consumer gets is settled as it is given.
    fn takes_for_good(&self, consumer: ConsumerId) -> bool {
        self.book.takers.get(&consumer).is_some_and(|taker| taker.no_ack)
    }

    /// What was settled as it was given, by consumers that were there before or came in this step.
    fn given(&self, done: &Done) -> BTreeSet<(QueueId, Seq)> {
        let request = done.request.as_ref().map(|request| asked_by(request).1);
        let comes = |id: ConsumerId| matches!(request, Some(Request::Consume { consumer, consume }) if *consumer == id && consume.no_ack);
        let gets = matches!(request, Some(Request::Get { get, .. }) if get.no_ack);
        let name = |receipt: &Receipt| (receipt.queue, receipt.seq);
        let given = done.made().filter_map(|out| match out {
            Out::Deliver { consumer, message } => {
                (comes(*consumer) || self.takes_for_good(*consumer)).then(|| name(&message.receipt))
            }
            Out::Answer { result: Ok(Answer::Got(Some(got))), .. } if gets => {
                Some(name(&got.message.receipt))
            }
            _ => None,
        });
        given.collect()
    }

    /// The leases of a step in the order in which they were given. Takers that are served or gone leave the book.
    fn lent(&mut self, done: &Done) -> Vec<Lent> {
        let mut lent = Vec::new();
        for out in done.made() {
            match out {
                Out::Deliver { consumer, message } => {
                    let is_given = self.takes_for_good(*consumer);
                    lent.push(Lent::delivered(*consumer, message, is_given));
                }
                Out::TimedOut { consumer, receipt, .. } => self.book.timed_out(*consumer, receipt),
                Out::Ended { consumer } => self.book.ended(*consumer),
                Out::Answer { ticket, result, .. } => {
                    let asked = self.asked.get(ticket).map(|asked| asked_by(&asked.request).1);
                    if let Some(Request::Get { get, .. }) = asked {
                        match result {
                            Ok(Answer::Got(Some(got))) => {
                                let message = got.message.clone();
                                let (consumer, is_given) = (get.consumer, get.no_ack);
                                let lanes = LaneChoice::default();
                                lent.push(Lent { consumer, lanes, message, is_given });
                                if get.no_ack {
                                    self.book.takers.remove(&get.consumer);
                                }
                            }
                            _ => drop(self.book.takers.remove(&get.consumer)),
                        }
                        continue;
                    }
                    let Some(Request::Lease { consumer, lease }) = asked else { continue };
                    let messages = match result {
                        Ok(Answer::Leased(messages)) => &messages[..],
                        _ => &[],
                    };
                    let holds = lease.term == LeaseTerm::Session && !messages.is_empty();
                    self.book.pulled(*consumer, holds);
                    lent.extend(messages.iter().map(|message| Lent {
                        consumer: *consumer,
                        lanes: lease.lanes.clone(),
                        message: message.clone(),
                        is_given: false,
                    }));
                }
            }
        }
        if self.config.sabotage != Some(Sabotage::SwapsInLane)
            && self.config.sabotage != Some(Sabotage::SwapsLanes)
        {
            lent.sort_by_key(|one| one.message.receipt.lease);
        }
        lent
    }

    /// What is delivered says what was published.
    fn check_content(&self, message: &LeasedMessage) -> Checked {
        let letter =
            mark_of(message.content.content_type()).and_then(|mark| self.book.letters.get(mark as usize));
        hold(letter.is_some_and(|letter| letter.says() == *message.content), Promise::Kept, || {
            format!("{} says what nobody published", message.receipt)
        })
    }

    fn judge_gauges(&self, life: &Life) -> Checked {
        let broker = life.core.broker();
        for mut view in broker.all_views(life.seen) {
            if self.config.sabotage == Some(Sabotage::Miscounts)
                && let Some(lane) = view.lanes.iter_mut().find(|lane| lane.settled > 2)
            {
                lane.settled -= 1;
            }
            conserved::check(&self.book, &self.audit, &view, life.core.broker().is_ruled(view.queue))?;
        }
        conserved::check_once(&self.book, life.core.broker().now(), &self.audit)?;
        conserved::check_deaths(&self.audit)?;
        bounded::check_memory(&self.audit, &life.core)
    }

    /// The journal may be long for a while: a queue may be emptied at once, and cleaning goes in bites for which there
    /// must be room. But it gets shorter.
    fn judge_length(&self, life: &mut Life) -> Checked {
        let topology = life.core.broker().topology_len() as u64;
        let bytes = life.core.journal_bytes();
        let runs = life.core.broker().runs().count() as u64;
        let history = life.core.broker().history_bytes();
        let segment = self.plan.segment_bytes;
        let length = bounded::check_journal(&self.audit, history, topology, runs, bytes, segment, 4);
        let is_excused =
            length.is_ok() || life.is_preparing || life.core.is_held() || life.core.is_clearing();
        if is_excused || life.long.is_none_or(|(shortest, _)| bytes < shortest) {
            life.long = length.is_err().then_some((bytes, 0));
            return Ok(());
        }
        let (shortest, bites) = life.long.expect("it was long before");
        life.long = Some((shortest, bites + 1));
        // Definitions are written again a few in each turn, and nothing is given back before all of them are.
        let definitions = life.core.broker().topology_facts().len() as u64;
        if bites < BITES_MAX + runs + definitions { Ok(()) } else { length }
    }

    /// What came of a step goes out: at once, or when the log is durable up to `tail`.
    fn hand_out(&mut self, done: Done, tail: overtake_store::Lsn) {
        // An endpoint stays to hear what comes all the same, to put it back.
        if let Some((Asker { session: None, .. }, Request::GiveUp { consumer })) =
            done.request.as_ref().map(asked_by)
        {
            self.asked.retain(|_, asked| !matches!(asked_by(&asked.request).1, Request::Lease { consumer: other, .. } if other == consumer));
        }
        for out in done.outs {
            match out {
                Out::Answer { ticket, result, durable } => {
                    if durable && !self.confirms_early(&done.request) {
                        let life = self.life.as_mut().expect("it just stepped");
                        life.waiting.push_back((tail, ticket, result));
                    } else {
                        self.told(ticket, result);
                    }
                }
                Out::Deliver { consumer, message } => {
                    let lent = Lent::delivered(consumer, &message, false).message;
                    self.delivered(consumer, lent);
                    self.hear(consumer, Event::Deliver { consumer, message });
                }
                Out::TimedOut { consumer, session, receipt } => {
                    self.tell(|| format!("consumer {} held {receipt} for too long", consumer.0));
                    self.times_out(consumer, session, receipt);
                }
                Out::Ended { consumer } => {
                    self.ended(consumer);
                    self.hear(consumer, Event::Ended { consumer });
                }
            }
        }
        self.release();
    }

    fn delivered(&mut self, consumer: ConsumerId, message: LeasedMessage) {
        self.trace.mix(&[consumer.0, message.receipt.lease.0]);
        self.tell(|| format!("delivery to {}: {}", consumer.0, crate::tell::leased(&message)));
        if let Some(client) = self.clients.iter_mut().find(|client| client.consumer == Some(consumer)) {
            client.holds.push(message.receipt);
        }
    }

    fn ended(&mut self, consumer: ConsumerId) {
        self.tell(|| format!("consumer {} is cancelled", consumer.0));
        if let Some(client) = self.clients.iter_mut().find(|client| client.consumer == Some(consumer)) {
            client.disconnected();
        }
    }

    // ---- planted bugs ----

    fn confirms_early(&self, request: &Option<Request>) -> bool {
        matches!(
            (self.config.sabotage, request.as_ref().map(|request| asked_by(request).1)),
            (Some(Sabotage::ConfirmsEarly), Some(Request::Publish { .. }))
                | (Some(Sabotage::SettlesEarly), Some(Request::Do(Command::Settle { .. })))
        )
    }

    fn sabotaged_request(&self, request: &Request) -> Request {
        let mut request = request.clone();
        let asked = match &mut request {
            Request::By { request, .. } => &mut **request,
            request => request,
        };
        if self.config.sabotage == Some(Sabotage::RaisesCaps)
            && let Request::Do(Command::DeclareQueue { settings, .. }) = asked
            && settings.max_active > 0
        {
            settings.max_active += 1;
        }
        if self.config.sabotage == Some(Sabotage::ForgetsBackoff)
            && let Request::Do(Command::DeclareQueue { settings, .. }) = asked
        {
            settings.backoff = Backoff::default();
        }
        if self.config.sabotage == Some(Sabotage::SetsLess)
            && let Request::Do(Command::SetMetadata { entries }) = asked
        {
            entries.truncate(1);
        }
        if self.config.sabotage == Some(Sabotage::ForgetsLimits)
            && let Request::Do(Command::DeclareVhost { settings, .. }) = asked
        {
            settings.max_queues = None;
        }
        if self.config.sabotage == Some(Sabotage::RulesOtherwise)
            && let Request::Do(Command::SetPolicy { policy, .. }) = asked
        {
            policy.priority += 1;
        }
        if self.config.sabotage == Some(Sabotage::TakesAnyLane)
            && let Request::Lease { lease, .. } = asked
        {
            lease.lanes = LaneChoice::default();
        }
        if let (Some(sabotage), Request::SetRoutes(set)) = (self.config.sabotage, asked) {
            *set = sabotage.of_routes(set);
        }
        request
    }

    fn sabotage_outs(&self, outs: &mut [Out<u64>]) {
        if self.config.sabotage == Some(Sabotage::LosesCopy) {
            let copies = outs.iter_mut().find_map(|out| match out {
                Out::Answer { result: Ok(Answer::Copies(copies)), .. } => Some(copies),
                _ => None,
            });
            copies.filter(|copies| copies.len() > 1).map(Vec::pop);
        }
        if self.config.sabotage == Some(Sabotage::ShowsLess) {
            for out in &mut *outs {
                if let Out::Answer { result: Ok(Answer::Page(page)), .. } = out {
                    page.messages.pop();
                }
            }
        }
        let messages = outs.iter_mut().find_map(|out| match out {
            Out::Answer { result: Ok(Answer::Leased(messages)), .. } if messages.len() > 1 => Some(messages),
            _ => None,
        });
        let Some(messages) = messages else { return };
        let pair = |same: bool| {
            (1..messages.len())
                .find(|at| (messages[*at].message.lane == messages[at - 1].message.lane) == same)
        };
        let swapped = match self.config.sabotage {
            Some(Sabotage::SwapsInLane) => pair(true),
            Some(Sabotage::SwapsLanes) => pair(false),
            Some(Sabotage::DeliversTwice) => return messages.push(messages[0].clone()),
            _ => None,
        };
        if let Some(at) = swapped {
            messages.swap(at, at - 1);
        }
    }
}

/// The consumer that goes with this request.
fn leaving(request: &Request) -> Option<ConsumerId> {
    match asked_by(request).1 {
        Request::Do(Command::Cancel { consumer } | Command::Leave { consumer }) => Some(*consumer),
        _ => None,
    }
}

/// Nobody is told that the store is full while the disk has room. That it had none the engine may believe until it asks again.
fn check_room(life: &Life, request: &Request, result: &Result<Answer, Refused>) -> Checked {
    let is_bounded = life.committer.space().is_ok_and(|space| space.is_some());
    let is_full = is_bounded || life.core.is_at_end() || life.core.full().is_some();
    hold(
        is_full || !matches!(result, Err(Refused { refusal: Refusal::StoreFull, .. })),
        Promise::Alive,
        || format!("the disk has room, and there is said to be none for a {}", crate::tell::kind(request)),
    )
}

/// A full store still takes acknowledgements.
fn check_taken(request: &Request, result: &Result<Answer, Refused>) -> Checked {
    let only_frees = matches!(
        request,
        Request::Do(
            Command::Settle { outcome: Outcome::Ack | Outcome::Reject | Outcome::Timeout, .. }
                | Command::Finish { outcome: Outcome::Ack | Outcome::Reject | Outcome::Timeout, .. }
                | Command::Purge { status: None, .. }
                | Command::DeleteVhost { .. }
                | Command::Remove { .. }
        ) | Request::Change { change: overtake_engine::Change::Remove, .. }
    );
    hold(
        !only_frees || !matches!(result, Err(Refused { refusal: Refusal::StoreFull, .. })),
        Promise::Alive,
        || format!("a full store refuses to {}", crate::tell::kind(request)),
    )
}
