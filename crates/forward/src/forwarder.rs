//! The state machine of one endpoint.
//!
//! Whoever drives it asks [`Forwarder::poll`] for what to do until there is nothing, carries it out in whatever time that takes, and says
//! what came of it; at [`Forwarder::wakes_at`] it asks again. What comes of a line that was disconnected must not be told any more.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use overtake_lane::{LaneChoice, Outcome, Priority, Receipt, Time};

use crate::allowance::{Allowance, Leave, Limits};
use crate::breaker::Breakers;
use crate::item::{Answer, End, Item};
use crate::line::{Batch, Line, Link};
use crate::settle::{Choice, Jitter, Suspects, Verdict, outcome};
use crate::terms::Terms;
use crate::view::{BreakerView, BudgetView, Counts, ForwarderView, State};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Connect a line. Answered by [`Forwarder::connected`] or [`Forwarder::not_connected`].
    Connect {
        /// Which, from 0.
        line: usize,
    },
    /// Close a line, or stop connecting it, whatever is under way there. Nothing answers.
    Disconnect {
        /// Which.
        line: usize,
    },
    /// Lease messages, and wait until there are some. Answered by [`Forwarder::leased`] or [`Forwarder::not_leased`].
    Lease {
        /// For which line.
        line: usize,
        /// What.
        ask: Ask,
    },
    /// Wait for a lease no longer. Nothing answers; what was on its way is to be released.
    GiveUp {
        /// Of which line.
        line: usize,
    },
    /// Send these, in this order. Each is answered by [`Forwarder::answered`], the whole by [`Forwarder::finished`].
    Send {
        /// On which line.
        line: usize,
        /// Their leases.
        batch: Vec<Receipt>,
    },
    /// Begin no other message of what is being sent: something more urgent is there, or the lane fails.
    Halt {
        /// On which line.
        line: usize,
    },
    /// End a lease. Nothing answers.
    Settle {
        /// Which.
        receipt: Receipt,
        /// How.
        outcome: Outcome,
        /// Why, where it failed, in words for people.
        why: Option<Arc<str>>,
    },
}

/// What to lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which lanes.
    pub lanes: LaneChoice,
    /// Most messages.
    pub max: u32,
    /// Most bytes of content, but one message at least.
    pub max_bytes: u64,
}

/// Whether it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    Runs,
    Paused,
    /// What is being sent is finished, and nothing else begun.
    Stops,
}

/// Decides what one endpoint does next.
#[derive(Clone, Debug)]
pub struct Forwarder {
    terms: Terms,
    mode: Mode,
    lines: Vec<Line>,
    breakers: Breakers,
    allowance: Allowance,
    suspects: Suspects,
    /// Lanes that wait because the receiver, and none of their messages, lost the line.
    left_alone: BTreeSet<Arc<str>>,
    counts: Counts,
    last_error: Option<(Time, Arc<str>)>,
    jitter: Jitter,
    /// To be done before anything else.
    out: VecDeque<Action>,
}

impl Forwarder {
    /// One that begins by connecting. The terms must hold ([`Terms::check`]); the seed is for chance.
    #[must_use]
    pub fn new(terms: Terms, seed: u64) -> Self {
        Self {
            mode: Mode::Runs,
            lines: vec![Line::new(); usize::from(terms.fan_out)],
            breakers: Breakers::new(terms.breaker_failures, terms.breaker),
            allowance: Allowance::new(Limits::of(&terms)),
            suspects: Suspects::default(),
            left_alone: BTreeSet::new(),
            counts: Counts::default(),
            last_error: None,
            jitter: Jitter::new(seed),
            out: VecDeque::new(),
            terms,
        }
    }

    // ---- what to do ----

    /// What to do now, one thing after the other until there is nothing.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        for line in 0..self.lines.len() {
            if self.out.is_empty()
                && let Some(action) = self.look_at(now, line)
            {
                self.out.push_back(action);
            }
        }
        self.out.pop_front()
    }

    /// When to ask again, if nothing happens before.
    pub fn wakes_at(&mut self, now: Time) -> Time {
        if !self.out.is_empty() {
            return now;
        }
        let runs = self.mode == Mode::Runs;
        let lines = self.lines.iter().filter(|line| runs || line.is_up()).map(Line::wakes_at);
        let lanes = self.breakers.wakes_at(now).min(self.allowance.wakes_at(now));
        lines.min().unwrap_or(Time::NEVER).min(if runs { lanes } else { Time::NEVER })
    }

    fn look_at(&mut self, now: Time, at: usize) -> Option<Action> {
        let line = &mut self.lines[at];
        match line.link {
            Link::Down(when) if when <= now && self.mode == Mode::Runs => {
                line.link = Link::Connecting(now.after(self.terms.connect_ms));
                return Some(Action::Connect { line: at });
            }
            Link::Connecting(_) if self.mode != Mode::Runs => {
                line.link = Link::Down(now);
                return Some(Action::Disconnect { line: at });
            }
            Link::Connecting(until) if until <= now => {
                let why = format!("no connection within {} ms", self.terms.connect_ms);
                self.not_connected(now, at, why.into());
                return Some(Action::Disconnect { line: at });
            }
            Link::Down(_) | Link::Connecting(_) => return None,
            Link::Up => {}
        }
        if line.batch.as_ref().is_some_and(|batch| batch.until <= now) {
            return Some(self.give_up_batch(now, at));
        }
        if self.mode != Mode::Runs {
            return self.wind_down(now, at);
        }
        let is_wanted = !line.next.is_empty();
        match &mut line.batch {
            None if is_wanted => self.send(now, at),
            Some(batch) if !batch.is_halted && (is_wanted || self.breakers.is_open(now, &batch.lane)) => {
                batch.is_halted = true;
                Some(Action::Halt { line: at })
            }
            _ if is_wanted => None,
            _ => self.look_ahead(now, at),
        }
    }

    /// The receiver takes too long.
    fn give_up_batch(&mut self, now: Time, at: usize) -> Action {
        if let Some(lane) = self.lines[at].batch.as_ref().map(|batch| Arc::clone(&batch.lane)) {
            self.breakers.failed(now, &lane);
        }
        let why = format!("no answer within {} ms", self.terms.batch_ms);
        // Messages behind the first one have no answer because they wait for it, or not for as long.
        self.lose(now, at, why.into(), 1);
        Action::Disconnect { line: at }
    }

    /// Nothing new is begun: a batch ends after the message that is being sent, and then the line is closed.
    fn wind_down(&mut self, now: Time, at: usize) -> Option<Action> {
        let line = &mut self.lines[at];
        if line.ask.take().is_some() {
            return Some(Action::GiveUp { line: at });
        }
        for item in std::mem::take(&mut line.next) {
            self.put_back(now, &item, None, Outcome::Release);
        }
        let line = &mut self.lines[at];
        if let Some(batch) = &mut line.batch {
            let is_halted = std::mem::replace(&mut batch.is_halted, true);
            return (!is_halted).then_some(Action::Halt { line: at });
        }
        line.link = Link::Down(now);
        Some(Action::Disconnect { line: at })
    }

    /// Asks for what goes next, unless that is asked for already.
    fn look_ahead(&mut self, now: Time, at: usize) -> Option<Action> {
        let wanted = self.wanted(now, at);
        let line = &mut self.lines[at];
        if line.ask == wanted {
            return None;
        }
        if line.ask.take().is_some() {
            return Some(Action::GiveUp { line: at });
        }
        line.ask.clone_from(&wanted);
        wanted.map(|ask| Action::Lease { line: at, ask })
    }

    /// What may be sent now: something more urgent than what is under way, of lanes that work, within what is allowed.
    fn wanted(&mut self, now: Time, at: usize) -> Option<Ask> {
        let allowed = match self.allowance.leave(now) {
            Leave::Everybody => Priority(i32::MIN),
            Leave::AtLeast(least) => least,
            Leave::From(_) => return None,
        };
        let above = match &self.lines[at].batch {
            Some(batch) => Priority(batch.level.0.checked_add(1)?),
            None => Priority(i32::MIN),
        };
        let except = self.breakers.shut(now).cloned().collect();
        Some(Ask {
            lanes: LaneChoice { at_least: allowed.max(above), except, one: true },
            max: self.terms.batch().max(1 + u32::from(self.suspects.are_some())).min(self.allowance.burst()),
            max_bytes: self.terms.batch_bytes.min(self.allowance.burst_bytes()),
        })
    }

    /// Sends what was leased, but for what is over.
    fn send(&mut self, now: Time, at: usize) -> Option<Action> {
        let mut items: VecDeque<Item> = std::mem::take(&mut self.lines[at].next).into();
        let (live, over) = items.drain(..).partition(|item| item.expires > now);
        items = live;
        let over: VecDeque<Item> = over;
        for item in &over {
            self.counts.of(now, &item.lane).expired += 1;
            self.settle(item.receipt, Outcome::Release);
        }
        let lane = Arc::clone(&items.front()?.lane);
        let (is_last, is_one_enough) = (items.len() == 1, self.breakers.tries(&lane));
        let (rest, aside) = match self.suspects.choose(&items) {
            Choice::First(count) => (items.split_off(if is_one_enough { 1 } else { count }), None),
            Choice::Probe(nth) => {
                let probe = items.remove(nth).expect("it is one of them");
                let first = items.pop_front();
                (std::mem::replace(&mut items, VecDeque::from([probe])), first)
            }
        };
        for item in rest {
            self.put_back(now, &item, None, Outcome::Release);
        }
        for item in &items {
            self.allowance.charge(now, item.bytes);
            self.counts.of(now, &item.lane).in_flight += 1;
        }
        let level = items.iter().map(|item| item.level).max().expect("there is one");
        let batch = items.iter().map(|item| item.receipt).collect();
        let until = now.after(self.terms.batch_ms);
        self.lines[at].batch = Some(Batch { lane, level, items, aside, is_last, until, is_halted: false });
        Some(Action::Send { line: at, batch })
    }

    fn settle(&mut self, receipt: Receipt, outcome: Outcome) {
        self.settle_because(receipt, outcome, None);
    }

    fn settle_because(&mut self, receipt: Receipt, outcome: Outcome, why: Option<Arc<str>>) {
        self.out.push_back(Action::Settle { receipt, outcome, why });
    }

    /// What was not sent, or of which nobody knows whether it was.
    fn put_back(&mut self, now: Time, item: &Item, why: Option<Arc<str>>, outcome: Outcome) {
        let counts = self.counts.of(now, &item.lane);
        match outcome {
            Outcome::Release => counts.put_back += 1,
            _ => counts.failed += 1,
        }
        self.settle_because(item.receipt, outcome, why);
    }

    // ---- what came of it ----

    /// A line is connected.
    pub fn connected(&mut self, at: usize) {
        self.lines[at].link = Link::Up;
    }

    /// Something is wrong with the endpoint itself, or is to be said of what was sent all the same: it is the last error.
    pub fn note(&mut self, now: Time, why: Arc<str>) {
        self.last_error = Some((now, why));
    }

    /// A line could not be connected.
    pub fn not_connected(&mut self, now: Time, at: usize, why: Arc<str>) {
        self.note(now, why);
        let line = &mut self.lines[at];
        line.failures = line.failures.saturating_add(1);
        line.link = Link::Down(self.jitter.after(now, self.terms.reconnect.wait_ms(line.failures)));
    }

    /// Messages of one lane are leased for a line; none: whoever was asked waits no longer.
    pub fn leased(&mut self, now: Time, at: usize, items: Vec<Item>) {
        let line = &mut self.lines[at];
        let is_expected = line.ask.take().is_some() && line.is_up() && self.mode == Mode::Runs;
        let is_shut =
            items.first().is_some_and(|item| self.breakers.shut(now).any(|lane| *lane == item.lane));
        if is_expected && !is_shut {
            line.next = items;
            return;
        }
        for item in items {
            self.put_back(now, &item, None, Outcome::Release);
        }
    }

    /// Nothing can be leased for a line: the endpoint is down for a while.
    pub fn not_leased(&mut self, now: Time, at: usize, why: Arc<str>) {
        self.lines[at].ask = None;
        self.out.push_back(Action::Disconnect { line: at });
        self.lose(now, at, why, 0);
    }

    /// A message that is being sent was answered.
    pub fn answered(&mut self, now: Time, at: usize, receipt: &Receipt, answer: &Answer) {
        let line = &mut self.lines[at];
        let Some(batch) = line.batch.as_mut() else { return };
        let Some(item) = batch.take(receipt) else { return };
        let aside = batch.aside.take();
        if !matches!(answer, Answer::Failed { .. }) {
            line.failures = 0;
        }
        if *answer == Answer::Expired {
            self.suspects.forget(&item);
        } else {
            self.suspects.answered(&item);
            // The receiver is back, for the more urgent ones first.
            std::mem::take(&mut self.left_alone).iter().for_each(|lane| self.breakers.accepted(lane));
        }
        let counts = self.counts.of(now, &item.lane);
        counts.in_flight -= 1;
        match answer {
            Answer::Accepted { bytes } => {
                self.counts.sent(now, &item.lane, *bytes);
                self.allowance.charge_more(bytes.saturating_sub(item.bytes));
                self.breakers.accepted(&item.lane);
            }
            Answer::Failed { busy_ms, why } => {
                match busy_ms {
                    Some(ms) => {
                        counts.put_back += 1;
                        self.breakers.busy(now, &item.lane, *ms);
                    }
                    None => {
                        counts.failed += 1;
                        self.breakers.failed(now, &item.lane);
                    }
                }
                self.last_error = Some((now, Arc::clone(why)));
            }
            Answer::Refused { why } => {
                counts.refused += 1;
                self.breakers.accepted(&item.lane);
                self.last_error = Some((now, Arc::clone(why)));
            }
            Answer::Expired => {
                counts.expired += 1;
                self.allowance.give_back(item.bytes);
            }
        }
        let why = match answer {
            Answer::Failed { busy_ms: None, why } | Answer::Refused { why } => Some(Arc::clone(why)),
            _ => None,
        };
        self.settle_because(item.receipt, outcome(answer, &item, &self.terms.retry), why);
        if let Some(aside) = aside {
            let (ms, why) = self.suspects.convict(&aside, &self.terms.retry);
            self.put_back(now, &aside, why, Outcome::Nack { delay_ms: Some(ms) });
        }
    }

    /// What was being sent has come to its end; or, without a batch, the line has.
    pub fn finished(&mut self, now: Time, at: usize, end: End) {
        match end {
            End::Done => {
                let Some(batch) = self.lines[at].batch.take() else { return };
                self.breakers.tried(&batch.lane);
                for item in &batch.items {
                    self.counts.of(now, &item.lane).in_flight -= 1;
                    self.allowance.give_back(item.bytes);
                    self.put_back(now, item, None, Outcome::Release);
                }
                if let Some(aside) = &batch.aside {
                    self.put_back(now, aside, None, Outcome::Release);
                }
            }
            End::Lost { why, on_their_way } => self.lose(now, at, why, on_their_way),
            End::Gone { why } => {
                self.lose(now, at, why, 0);
                self.pause();
            }
        }
    }

    /// A line is down. What was under way is put back; the first attempt to connect again is at once.
    fn lose(&mut self, now: Time, at: usize, why: Arc<str>, on_their_way: usize) {
        self.last_error = Some((now, Arc::clone(&why)));
        let line = &mut self.lines[at];
        let wait_ms = if line.failures == 0 { 0 } else { self.terms.reconnect.wait_ms(line.failures) };
        line.failures = line.failures.saturating_add(1);
        line.link = Link::Down(self.jitter.after(now, wait_ms));
        if line.ask.take().is_some() {
            self.out.push_back(Action::GiveUp { line: at });
        }
        let (batch, next) = (line.batch.take(), std::mem::take(&mut line.next));
        if let Some(batch) = batch {
            self.breakers.tried(&batch.lane);
            self.lose_batch(now, at, batch, &why, on_their_way);
        }
        for item in next {
            self.put_back(now, &item, None, Outcome::Release);
        }
    }

    /// Puts back the batch of a line that is lost, but for a message that is found out.
    fn lose_batch(&mut self, now: Time, at: usize, batch: Batch, why: &Arc<str>, on_their_way: usize) {
        let Batch { lane, items, aside, is_last, .. } = batch;
        let alone = on_their_way == 1 && aside.is_none();
        for (nth, item) in items.iter().enumerate() {
            self.counts.of(now, &item.lane).in_flight -= 1;
            let verdict = match nth {
                0 if alone => {
                    let waits = [&self.terms.retry, &self.terms.reconnect];
                    self.suspects.lost_at(item, is_last, why, waits)
                }
                _ if nth < on_their_way && aside.is_none() => {
                    self.suspects.lost_among(item, why);
                    Verdict::PutBack
                }
                _ => Verdict::PutBack,
            };
            match verdict {
                Verdict::PutBack => self.put_back(now, item, None, Outcome::Release),
                Verdict::LeaveAlone(ms) => {
                    self.put_back(now, item, None, Outcome::Release);
                    self.leave_alone(now, at, &lane, ms);
                }
                Verdict::Aside(ms) => {
                    self.put_back(now, item, Some(Arc::clone(why)), Outcome::Nack { delay_ms: Some(ms) });
                    // Its neighbours go at once.
                    self.begin_anew(now, at);
                }
            }
        }
        if let Some(aside) = aside {
            self.put_back(now, &aside, None, Outcome::Release);
            let ms = self.suspects.lost_at_probe(&aside, &self.terms.reconnect);
            self.leave_alone(now, at, &lane, ms);
        }
    }

    /// A lane waits for the receiver; others are tried at once.
    fn leave_alone(&mut self, now: Time, at: usize, lane: &Arc<str>, ms: u64) {
        self.breakers.busy(now, lane, ms);
        self.left_alone.insert(Arc::clone(lane));
        self.begin_anew(now, at);
    }

    /// A line that is down is tried at once.
    fn begin_anew(&mut self, now: Time, at: usize) {
        self.lines[at].failures = 0;
        self.lines[at].link = Link::Down(now);
    }

    // ---- what people do ----

    /// Nothing new is sent until it is resumed: also not what is left of a batch.
    pub fn pause(&mut self) {
        self.mode = Mode::Paused;
    }

    /// It sends again, as if nothing had failed.
    pub fn resume(&mut self, now: Time) {
        self.mode = Mode::Runs;
        self.breakers.reset();
        for line in &mut self.lines {
            line.failures = 0;
            if let Link::Down(at) = &mut line.link {
                *at = now;
            }
        }
    }

    /// What is under way is finished, and nothing else begun.
    pub fn stop(&mut self) {
        self.mode = Mode::Stops;
    }

    /// Whether everything is at rest after [`Forwarder::stop`] or [`Forwarder::pause`].
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let is_at_rest = |line: &Line| matches!(line.link, Link::Down(_)) && line.is_idle();
        self.out.is_empty() && self.lines.iter().all(is_at_rest)
    }

    // ---- budgets, and what is seen ----

    /// The day, since 1970 by UTC, and the bytes of it that went: what outlives a restart.
    #[must_use]
    pub fn budget(&self) -> (u64, u64) {
        self.allowance.used()
    }

    /// So much of a day went before.
    pub fn restore_budget(&mut self, day: u64, used: u64) {
        self.allowance.restore(day, used);
    }

    /// It as it stands.
    pub fn view(&mut self, now: Time) -> ForwarderView {
        let breakers = self.counts.lanes().filter_map(|lane| {
            let breaker = self.breakers.get(lane)?;
            let open_until = breaker.until.filter(|until| *until > now);
            Some((Arc::clone(lane), BreakerView { failures: breaker.failures, open_until }))
        });
        let breakers = breakers.collect();
        let state = self.state(now);
        let waits = matches!(state, State::Down | State::Waiting);
        let Limits { daily_bytes, reserve_bytes, .. } = *self.allowance.limits();
        let used_bytes = self.budget().1;
        ForwarderView {
            state,
            connections: self.lines.iter().filter(|line| line.is_up()).count(),
            next_attempt: waits.then(|| self.wakes_at(now)).and_then(Time::some),
            last_error: self.last_error.clone(),
            lanes: self.counts.view(now),
            breakers,
            budget: (daily_bytes > 0).then_some(BudgetView { used_bytes, daily_bytes, reserve_bytes }),
        }
    }

    fn state(&mut self, now: Time) -> State {
        let any = |is: fn(&Line) -> bool| self.lines.iter().any(is);
        let is_sending = any(|line| line.batch.is_some());
        match self.mode {
            Mode::Paused | Mode::Stops => State::Paused,
            Mode::Runs if is_sending => State::Sending,
            Mode::Runs if any(Line::is_up) => match self.allowance.leave(now) {
                Leave::From(_) => State::Waiting,
                _ => State::Idle,
            },
            Mode::Runs if any(|line| matches!(line.link, Link::Connecting(_))) => State::Connecting,
            Mode::Runs => State::Down,
        }
    }
}
