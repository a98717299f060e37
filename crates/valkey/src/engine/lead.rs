//! Work of which one process at a time does it.
//!
//! ```text
//!   wish ─▶ asked for ─┬─▶ us ── every 2 s: goes on ──▶ us        no answer for 4.5 s: unknown, and nobody here does it any more
//!                      └─▶ another ── every 2 s, and whenever some was given back: asked for
//! ```
//!
//! The servers let another process begin 6 s after the last time that this one said that it goes on, by their clock. This process counts from before it asked, and less: so it has ended
//! before another begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use overtake_engine::{Leader, Leadership};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::House;
use crate::functions::{LEADERS, Lead, Led, Process};
use crate::places::together;

/// So long after it was asked for another process may have it, by the clock of the servers, ms.
const LEAD_MS: u64 = 6_000;
/// So long after it was asked for this process does it no more.
const OURS: Duration = Duration::from_millis(LEAD_MS * 3 / 4);
/// How often it is asked for.
const RENEW: Duration = Duration::from_secs(2);
/// How often, where the servers did not answer.
const RETRY: Duration = Duration::from_millis(500);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// So much is asked for in one call.
const AT_ONCE: usize = 128;

/// What this process wishes to do.
#[derive(Default)]
pub(super) struct Leads {
    all: Mutex<Wishes>,
    /// There is a new wish, or one less.
    changed: Notify,
}

#[derive(Default)]
struct Wishes {
    works: BTreeMap<Arc<str>, Work>,
    /// Nobody wishes to do it any more, and it is not given back yet.
    left: Vec<Arc<str>>,
}

struct Work {
    wishes: usize,
    leader: watch::Sender<Leader>,
    /// Until when this process may do it.
    until: Option<Instant>,
}

/// A wish, until it is dropped.
struct Wish {
    leads: Arc<Leads>,
    work: Arc<str>,
}

impl Drop for Wish {
    fn drop(&mut self) {
        let mut all = self.leads.lock();
        let Some(work) = all.works.get_mut(&self.work) else { return };
        work.wishes -= 1;
        if work.wishes == 0 {
            let gone = all.works.remove(&self.work);
            if gone.is_some_and(|work| work.until.is_some()) {
                all.left.push(Arc::clone(&self.work));
            }
            drop(all);
            self.leads.changed.notify_one();
        }
    }
}

impl Work {
    fn tell(&self, leader: Leader) {
        self.leader.send_if_modified(|told| {
            let is_news = *told != leader;
            *told = leader;
            is_news
        });
    }

    /// Takes an answer to what was asked for then.
    fn heard(&mut self, us: &Process, asked_at: Instant, led: Led) {
        let is_us = led.process == *us;
        self.until = is_us.then(|| asked_at + OURS);
        let broker: Arc<str> = led.process.short().into();
        self.tell(match is_us {
            true => Leader::Us { fence: led.fence, broker: Some(broker) },
            false => Leader::Other { broker },
        });
    }

    /// Whether it was this process's until now, and is no more.
    fn ends(&mut self, now: Instant) -> bool {
        let is_over = self.until.is_some_and(|until| until <= now);
        if is_over {
            self.until = None;
            self.tell(Leader::Unknown);
        }
        is_over
    }
}

impl Leads {
    fn lock(&self) -> MutexGuard<'_, Wishes> {
        self.all.lock().expect("nobody panics with it")
    }

    /// A wish to do this work.
    pub(super) fn wish(self: &Arc<Self>, work: &str) -> Leadership {
        let work: Arc<str> = work.into();
        let mut all = self.lock();
        all.left.retain(|left| *left != work);
        let there = all.works.entry(Arc::clone(&work)).or_insert_with(|| Work {
            wishes: 0,
            leader: watch::Sender::new(Leader::Unknown),
            until: None,
        });
        there.wishes += 1;
        let leader = there.leader.subscribe();
        drop(all);
        self.changed.notify_one();
        Leadership::new(leader, Wish { leads: Arc::clone(self), work })
    }

    /// What this process does is no longer its own: to be given back.
    pub(super) fn end_all(&self) -> Vec<Arc<str>> {
        let mut all = self.lock();
        let mut ours = std::mem::take(&mut all.left);
        for (name, work) in &mut all.works {
            if work.until.take().is_some() {
                ours.push(Arc::clone(name));
            }
            work.tell(Leader::Unknown);
        }
        ours
    }

    /// Ends what is over. Answers whether something was.
    fn end_overdue(&self) -> bool {
        let now = Instant::now();
        self.lock().works.values_mut().filter_map(|work| work.ends(now).then_some(())).count() > 0
    }

    /// When something is over that is not asked for again until then.
    fn ends_at(&self) -> Option<Instant> {
        self.lock().works.values().filter_map(|work| work.until).min()
    }

    /// Does something, and ends what is over meanwhile.
    async fn while_ours<T>(&self, what: impl Future<Output = T>) -> T {
        tokio::pin!(what);
        loop {
            let ends_at = self.ends_at();
            let ends = async {
                match ends_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = ends => if self.end_overdue() {
                    tracing::warn!("the servers do not answer: schedules, endpoints and sources stop here, so that another broker may go on with them");
                },
                done = &mut what => return done,
            }
        }
    }
}

impl House {
    /// Asks for everything that is wished for, and gives back what is not. Answers whether the servers answered.
    async fn lead_again(&self) -> bool {
        let (works, left) = {
            let mut all = self.leads.lock();
            (all.works.keys().cloned().collect::<Vec<_>>(), std::mem::take(&mut all.left))
        };
        let asks = works.chunks(AT_ONCE).map(|works| self.ask_to_lead(works.to_vec()));
        let (given_back, answered) = tokio::join!(self.give_back_work(left), together(asks));
        given_back && answered.into_iter().all(|is_answered| is_answered)
    }

    async fn ask_to_lead(&self, works: Vec<Arc<str>>) -> bool {
        let asked_at = Instant::now();
        let lead = Lead { process: self.process.clone(), ms: LEAD_MS, works };
        let answer = self.cluster.call(asked_at + PATIENCE, lead.call()).await;
        let led = match answer.map_err(|error| error.to_string()).map(|value| Lead::read(&value)) {
            Ok(Ok(led)) => led,
            Ok(Err(malformed)) => return unanswered(&malformed.to_string()),
            Err(why) => return unanswered(&why),
        };
        // Whoever begins knows what was written down by whoever ended.
        if self.is_new_here(&lead.works, &led) {
            match tokio::time::timeout(PATIENCE, self.definitions.follow()).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => return unanswered(&why.to_string()),
                Err(_) => return unanswered("definitions are not read in time"),
            }
        }
        let mut all = self.leads.lock();
        for (name, led) in lead.works.iter().zip(led) {
            match all.works.get_mut(name) {
                Some(work) => work.heard(&self.process, asked_at, led),
                // Nobody wishes for it any more.
                None if led.process == self.process => all.left.push(Arc::clone(name)),
                None => {}
            }
        }
        if !all.left.is_empty() {
            self.leads.changed.notify_one();
        }
        true
    }

    /// Whether this process leads some of it now that it did not lead.
    fn is_new_here(&self, works: &[Arc<str>], led: &[Led]) -> bool {
        let all = self.leads.lock();
        works.iter().zip(led).any(|(name, led)| {
            led.process == self.process && all.works.get(name).is_some_and(|work| work.until.is_none())
        })
    }

    /// Others may begin with this work at once. Answers whether the servers answered: else it ends by itself.
    pub(super) async fn give_back_work(&self, works: Vec<Arc<str>>) -> bool {
        let mut is_done = true;
        for works in works.chunks(AT_ONCE) {
            let back = Lead { process: self.process.clone(), ms: 0, works: works.to_vec() };
            is_done &= self.cluster.call(Instant::now() + PATIENCE, back.call()).await.is_ok();
        }
        is_done
    }
}

fn unanswered(why: &str) -> bool {
    tracing::debug!(why, "it is not known who does what only one broker does");
    false
}

/// Asks again and again for what is wished for.
pub(super) async fn keep_leading(house: Weak<House>) {
    let Some((cluster, leads)) =
        house.upgrade().map(|house| (Arc::clone(&house.cluster), Arc::clone(&house.leads)))
    else {
        return;
    };
    let mut heard = cluster.subscribe(LEADERS.into()).await;
    drop(cluster);
    loop {
        let Some(at_work) = house.upgrade() else { return };
        let is_answered = leads.while_ours(at_work.lead_again()).await;
        drop(at_work);
        let next = Instant::now() + if is_answered { RENEW } else { RETRY };
        let asked_for = async {
            tokio::select! {
                () = leads.changed.notified() => true,
                heard = heard.next() => heard.is_some(),
                () = tokio::time::sleep_until(next) => true,
            }
        };
        if !leads.while_ours(asked_for).await {
            return;
        }
    }
}
