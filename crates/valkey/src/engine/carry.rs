//! What has left its queue is carried to where it goes: dead letters to another queue or an exchange, and records of what has ended to a history.
//!
//! A message that leaves is kept at its place until it is said there what became of it. Whoever sees it carries it: the place it comes to remembers where it is from and takes it once, so a process that
//! dies half-way, and two that carry the same, do no harm.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use overtake_engine::{Content, Failure};
use overtake_lane::{
    Attempts, Death, DeathReason, Deaths, Letter, Marks, Message, Onward, Original, PlaceNumber, Priority,
    QueueId, Record, Refusal, Route,
};

use super::House;
use super::hosted::Hosted;
use super::see::read;
use crate::functions::{Admission, Admit, Arrival, Fate, Leaver, Leaving, Left, Provenance, Sweep};
use crate::places::together;

/// Messages that are carried at once.
const CARRIED_MAX: u32 = 100;

/// A message under way.
struct Load<'l> {
    leaver: &'l Leaver,
    from: Provenance,
    /// Its priority where it goes, and what was given, where that is not what the message has.
    priority: Option<(Priority, Original)>,
    message: Message,
    content: Vec<u8>,
}

impl House {
    /// Carries what has left the places that are served here, as far as that is known.
    pub(super) async fn carry_all(&self) {
        if self.tally.left.load(Ordering::Relaxed) == 0 {
            return;
        }
        for hosted in self.all_hosted() {
            if let Err(why) = self.carry_of(&hosted).await {
                tracing::debug!(queue = %hosted.name, %why, "what has left it is not where it goes yet");
            }
        }
    }

    /// Looks at all places that are served here, and at who takes from them, and carries what has left them.
    pub(super) async fn sweep(&self) {
        self.on_floor(|floor, now, after| floor.tick(now, after));
        let hosted = self.all_hosted();
        // What cannot be looked at now is looked at again soon.
        drop(together(hosted.iter().map(|hosted| hosted.ask_all(&Sweep))).await);
        for hosted in &hosted {
            self.expire_unused(hosted).await;
        }
        self.carry_all().await;
        together(hosted.iter().map(|hosted| hosted.settled_down())).await;
    }

    /// Carries what has left the places of a queue.
    pub(super) async fn carry_of(&self, hosted: &Arc<Hosted>) -> Result<(), Failure> {
        self.carry_from(hosted).await.map(drop)
    }

    /// The same. Answers how many stayed.
    pub(super) async fn carry_from(&self, hosted: &Arc<Hosted>) -> Result<u64, Failure> {
        let _turn = hosted.carrying.lock().await;
        let mut stayed = 0;
        for place in hosted.places().left() {
            loop {
                let leavers = hosted.ask(place, &Leaving { limit: CARRIED_MAX }).await?;
                if leavers.is_empty() {
                    break;
                }
                let mut fates = Vec::with_capacity(leavers.len());
                for leaver in &leavers {
                    let fate = self.carry(hosted, place, leaver).await?;
                    stayed += u64::from(fate == Fate::Stays && leaver.goes_home);
                    fates.push((leaver.number, fate));
                }
                hosted.ask(place, &Left { fates }).await?;
            }
        }
        Ok(stayed)
    }

    async fn carry(&self, hosted: &Hosted, place: PlaceNumber, leaver: &Leaver) -> Result<Fate, Failure> {
        let content = leaver.shown.content.clone().unwrap_or_default();
        let said = read(&content)?;
        let mut message = leaver.shown.stored.message.clone();
        fill_in(&mut message, &said);
        if leaver.goes_home {
            return self.carry_home(hosted, place, leaver, message, content).await;
        }
        let letter = Letter { route: said.route.clone(), ttl_ms: said.ttl_ms, marks: said as Arc<dyn Marks> };
        let way =
            self.definitions.with(|broker| broker.onward_of(hosted.queue, &message, leaver.died, letter));
        let Some((onward, history)) = way else { return Ok(Fate::Gone) };
        let from = Provenance { queue: hosted.queue, place, number: leaver.number };
        let mut load = Load { leaver, from, priority: None, message, content };
        let deaths = load.message.deaths().cloned();
        let recorded = match (history, &leaver.record) {
            (Some(history), Some(record)) => {
                let record = Some(record.clone());
                self.bring(history, &load, true, deaths.clone(), record).await?.then_some(history)
            }
            _ => None,
        };
        if leaver.died.is_none() {
            return Ok(Fate::Moved);
        }
        let record = match recorded {
            Some(_) => leaver.record.clone(),
            None => load.message.record().map(|record| Record::clone(record)),
        };
        // A message that was never begun, and of which nothing is kept, has made no attempt.
        let unkept = leaver.record.as_ref().filter(|record| recorded.is_none() && record.started.is_some());
        if let Some(record) = unkept {
            load.message.try_again(record);
        }
        let fate = match onward {
            Onward::Gone => Fate::Gone,
            Onward::Stays => Fate::Stays,
            Onward::Goes(queues, route) => {
                let deaths = deaths.and_then(|deaths| {
                    let list = deaths.iter().cloned().collect();
                    Deaths::new(list, deaths.first_at(), deaths.from().clone(), route)
                });
                let mut fate = Fate::Stays;
                for queue in queues {
                    load.priority = self
                        .definitions
                        .with(|broker| broker.priority_in(hosted.queue, queue, &load.message));
                    let is_there = recorded == Some(queue)
                        || self.bring(queue, &load, false, deaths.clone(), record.clone()).await?;
                    if is_there {
                        fate = Fate::Moved;
                    }
                }
                fate
            }
        };
        Ok(if fate == Fate::Stays && recorded.is_some() { Fate::Moved } else { fate })
    }

    /// Carries what was a dead letter or a record to where it came from. What is not taken there stays.
    async fn carry_home(
        &self,
        hosted: &Hosted,
        place: PlaceNumber,
        leaver: &Leaver,
        mut message: Message,
        content: Vec<u8>,
    ) -> Result<Fate, Failure> {
        if let Some(record) = message.record().cloned() {
            message.try_again(&record);
        }
        let home = message
            .home()
            .and_then(|home| self.definitions.with(|broker| broker.id_of(hosted.vhost, home).ok()));
        let Some(home) = home else { return Ok(Fate::Stays) };
        let deaths = message.deaths().and_then(|deaths| {
            let (list, from) = (deaths.iter().cloned().collect(), deaths.from());
            Deaths::new(list, deaths.first_at(), from.clone(), from.clone())
        });
        let from = Provenance { queue: hosted.queue, place, number: leaver.number };
        let priority = self.definitions.with(|broker| broker.priority_at_home(hosted.queue, home, &message));
        let load = Load { leaver, from, priority, message, content };
        let is_taken = self.bring(home, &load, false, deaths, None).await?;
        Ok(if is_taken { Fate::Moved } else { Fate::Stays })
    }

    /// Whether a queue takes it. What its place answers once it answers always.
    async fn bring(
        &self,
        queue: QueueId,
        load: &Load<'_>,
        is_record: bool,
        deaths: Option<Deaths>,
        record: Option<Record>,
    ) -> Result<bool, Failure> {
        let Load { leaver, from, priority, message, content } = load;
        let hosted = match self.hosted(queue).await {
            Err(Failure::Refused(refused)) if refused.refusal == Refusal::NoSuchQueue => return Ok(false),
            hosted => hosted?,
        };
        let arrival = Arrival {
            from: *from,
            since: leaver.at,
            is_evicted: leaver.died == Some(DeathReason::Maxlen),
            is_record,
            deaths,
            record,
            attempts: message.attempts().map(|attempts| Attempts::clone(attempts)),
        };
        let (priority, original) = priority.unwrap_or((message.priority, message.original));
        let admission = Admission {
            priority,
            original,
            id: message.id().map(Into::into),
            origin: None,
            key: message.key().map(Into::into),
            key_weight: message.key_weight(),
            ttl_ms: None,
            base_ttl_ms: None,
            delay_ms: 0,
            bytes: message.bytes,
            content: content.clone().into(),
            at: None,
            arrival: Some(Box::new(arrival)),
        };
        let place = hosted.place_of(&admission, from.number);
        let admit = Admit { messages: vec![admission], tells: false };
        let told = hosted.ask(place, &admit).await?;
        Ok(told.first().is_some_and(Result::is_ok))
    }
}

/// A place leaves out of deaths what the content says: how the message was published, and its own time to live, which it had until it died first.
pub(super) fn fill_in(message: &mut Message, content: &Content) {
    if let Some(extras) = &mut message.extras {
        fill_in_deaths(&mut extras.deaths, content);
    }
}

/// As [`fill_in`].
pub(super) fn fill_in_deaths(all: &mut Option<Arc<Deaths>>, content: &Content) {
    let Some(deaths) = &all else { return };
    let filled =
        |route: &Route| if *route == Route::default() { content.route.clone() } else { route.clone() };
    let death = |(at, death): (usize, &Death)| Death {
        route: filled(&death.route),
        ttl_ms: content.ttl_ms.filter(|_| at == deaths.first_at()),
        ..death.clone()
    };
    let list: Vec<Death> = deaths.iter().enumerate().map(death).collect();
    let whole = Deaths::new(list, deaths.first_at(), filled(deaths.from()), filled(deaths.route()));
    *all = whole.map(Arc::new);
}

/// Carries what leaves a queue by itself, as long as it is hosted. (Boxed, since what it carries may be the first to go to a queue, which is then hosted, too.)
pub(super) fn keep_carrying(
    house: Weak<House>,
    hosted: Weak<Hosted>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        loop {
            let Some(here) = hosted.upgrade() else { return };
            let mut ended = here.ended();
            tokio::select! {
                () = here.places().until_left() => {}
                () = ended.wait() => return,
            }
            let Some(house) = house.upgrade() else { return };
            if let Err(why) = house.carry_of(&here).await {
                tracing::debug!(queue = %here.name, %why, "what has left it is not where it goes yet");
            }
        }
    })
}
