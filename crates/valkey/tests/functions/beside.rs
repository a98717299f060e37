//! The queues beside the one of the twin: where its dead letters go, and its history. What leaves is carried there by what a broker would do.
//!
//! Nothing happens there by itself, so nobody has to say when it is asked.

use overtake_lane::{
    Attempts, Command, DeadLetterTo, DeathReason, Deaths, Ending, Message, QueueId, Record, Route, Seq,
    Settings, Status, Step, VhostId,
};
use overtake_valkey::functions::{
    Admission, Admit, Arrival, Asked, Call, Configure, Configured, Declined, Fate, Leaver, Leaving, Left,
    Provenance, Purge, Said, Terms, Told, Where,
};

use crate::twin::{QUEUE, Twin};

/// For dead letters.
pub(crate) const DEAD: &str = "dead";
/// The history.
pub(crate) const PAST: &str = "past";
const BESIDE: [(&str, &str); 2] = [(DEAD, "{2:0}"), (PAST, "{3:0}")];

fn base_of(name: &str) -> Option<&'static str> {
    BESIDE.iter().find(|(known, _)| *known == name).map(|(_, base)| *base)
}

impl Twin {
    pub(crate) fn beside(&self) -> [(&'static str, &'static str); 2] {
        BESIDE
    }

    pub(crate) fn add_beside(&mut self, settings: [Settings; 2]) {
        for ((name, base), settings) in BESIDE.into_iter().zip(settings) {
            let terms = Terms::new(name.into(), &settings, 0, 0);
            let made = self
                .call_beside(
                    base,
                    &Configure { version: 1, terms: &terms.json(), said: Said::Declared, queue: &[] },
                )
                .1;
            assert_eq!(made, Ok(Configured { is_new: true, version: 1 }));
            self.broker(Command::declare(name.into(), Box::new(settings))).0.expect("declared");
        }
    }

    pub(crate) fn call_beside<A: Asked>(&mut self, base: &str, ask: &A) -> (Option<Where>, A::Answer) {
        let told = self.told(base, ask, Call { of: "", caller: "mover", number: None });
        let Told::Done { heads, what, .. } = told else { panic!("it is there") };
        (heads.first().map(|head| Where::new(head.level, head.seq)), what)
    }

    pub(crate) fn purge_beside(&mut self, name: &str, status: Option<Status>) {
        self.catch_up();
        self.move_all();
        let base = base_of(name).expect("it is beside");
        self.call_beside(base, &Purge { status, limit: 10_000 });
        self.broker(Command::Purge { queue: name.into(), status, expect: None }).0.expect("purged");
    }

    /// Whether something may leave the queue that comes to stay.
    pub(crate) fn leaves(&self) -> bool {
        let Settings { dead_letter, history, .. } = &self.settings;
        history.is_some() || matches!(dead_letter, DeadLetterTo::Queue(_) | DeadLetterTo::Exchange { .. })
    }

    /// Carries all that leaves to where it goes.
    pub(crate) fn move_all(&mut self) {
        while self.leaving {
            let leavers = self.call(&Leaving { limit: 2 }, None);
            self.broker.tick(self.now, &mut Step::default());
            let fates: Vec<(u64, Fate)> =
                leavers.iter().map(|leaver| (leaver.number, self.carry(leaver))).collect();
            // Said again it changes nothing.
            for _ in 0..2 {
                self.call(&Left { fates: fates.clone() }, None);
                self.broker.tick(self.now, &mut Step::default());
            }
        }
    }

    fn carry(&mut self, leaver: &Leaver) -> Fate {
        let message = &leaver.shown.stored.message;
        let history = self.settings.history.clone().filter(|name| base_of(name).is_some());
        let Some(reason) = leaver.died else {
            if let (Some(history), Some(record)) = (history, &leaver.record) {
                self.bring(&history, leaver, true, message.deaths().cloned(), Some(record.clone()));
            }
            return Fate::Moved;
        };
        let deaths = message.deaths().expect("it died");
        let is_round = |queue: &str| is_round(message, deaths, reason, queue);
        let history = history.filter(|name| !is_spent(deaths) && !is_round(name));
        let recorded = history.filter(|name| {
            leaver.record.as_ref().is_some_and(|record| {
                self.bring(name, leaver, true, Some(deaths.clone()), Some(record.clone()))
            })
        });
        let record = match &recorded {
            Some(_) => leaver.record.clone(),
            None => message.record().map(|record| Record::clone(record)),
        };
        let mut tried = leaver.clone();
        if let Some(record) =
            leaver.record.as_ref().filter(|record| recorded.is_none() && record.started.is_some())
        {
            tried.shown.stored.message.try_again(record);
        }
        let fate = match self.target(reason) {
            None => Fate::Gone,
            Some(_) if is_spent(deaths) => Fate::Stays,
            Some(target) if base_of(&target).is_none() => Fate::Stays,
            Some(target) if is_round(&target) => Fate::Gone,
            Some(target) if Some(&target) == recorded.as_ref() => Fate::Moved,
            Some(target) => {
                let (list, first) = (deaths.iter().cloned().collect(), deaths.first_at());
                let deaths = Deaths::new(list, first, deaths.from().clone(), Route::by("", &*target));
                if self.bring(&target, &tried, false, deaths, record) { Fate::Moved } else { Fate::Stays }
            }
        };
        if fate == Fate::Stays && recorded.is_some() { Fate::Moved } else { fate }
    }

    /// The name of the queue to which it goes; `None`: it is dropped. One that is not there has no dead letters, and they stay.
    fn target(&self, reason: DeathReason) -> Option<String> {
        let Settings { dead_letter, dead_letter_expired, dead_letter_evicted, .. } = &self.settings;
        let is_wanted = match reason {
            DeathReason::Expired => *dead_letter_expired,
            DeathReason::Maxlen => {
                *dead_letter_evicted || self.settings.overflow == overtake_lane::Overflow::RejectDeadLetter
            }
            _ => true,
        };
        match dead_letter {
            _ if !is_wanted => None,
            DeadLetterTo::Drop => None,
            DeadLetterTo::Keep => Some(String::new()),
            DeadLetterTo::Queue(name) => Some(name.clone()),
            DeadLetterTo::Exchange { routing_key, .. } => routing_key.clone(),
        }
    }

    /// Whether a queue takes it. What it answers once it answers always.
    fn bring(
        &mut self,
        to: &str,
        leaver: &Leaver,
        is_record: bool,
        deaths: Option<Deaths>,
        record: Option<Record>,
    ) -> bool {
        let message: &Message = &leaver.shown.stored.message;
        let (priority, original) = if is_record {
            (message.priority, message.original)
        } else {
            let id = |name| self.broker.id_of(VhostId::DEFAULT, name).expect("it is there");
            self.broker.priority_in(id(QUEUE), id(to), message).expect("both are there")
        };
        let admission = Admission {
            priority,
            original,
            id: message.id().map(Into::into),
            key: message.key().map(Into::into),
            key_weight: message.key_weight(),
            ttl_ms: None,
            base_ttl_ms: None,
            delay_ms: 0,
            bytes: message.bytes,
            content: leaver.shown.content.clone().expect("it says something").into(),
            origin: None,
            at: None,
            arrival: Some(Box::new(Arrival {
                from: Provenance { queue: QueueId(1), place: 0, number: leaver.number },
                since: leaver.at,
                is_evicted: leaver.died == Some(DeathReason::Maxlen),
                is_record,
                deaths,
                record,
                attempts: message.attempts().map(|attempts| Attempts::clone(attempts)),
            })),
        };
        let admit = Admit { messages: vec![admission], tells: false };
        let base = base_of(to).expect("it is beside");
        let mut first: Option<Result<Seq, Declined>> = None;
        for _ in 0..2 {
            let [one] = <[_; 1]>::try_from(self.call_beside(base, &admit).1).expect("one answer");
            let again = one.map(|one| {
                let one = one.expect("nobody numbered it");
                assert_eq!(one.duplicate, first.is_some());
                one.seq
            });
            assert!(first.is_none_or(|first| first == again));
            first = Some(again);
        }
        first.is_some_and(|first| first.is_ok())
    }
}

/// Deaths since the last rejection.
fn unrejected(deaths: &Deaths) -> usize {
    deaths.iter().take_while(|death| death.reason != DeathReason::Rejected).count()
}

fn is_spent(deaths: &Deaths) -> bool {
    unrejected(deaths) >= overtake_lane::DEATHS_MAX - 1
}

fn is_round(message: &Message, deaths: &Deaths, reason: DeathReason, queue: &str) -> bool {
    let died_there = deaths.iter().position(|death| &*death.queue == queue);
    let ended_there = message.record().is_some_and(|record| {
        matches!(record.ending, Ending::Completed | Ending::Cancelled) && *record.queue == *queue
    });
    reason != DeathReason::Rejected && (died_there.is_some_and(|at| at < unrejected(deaths)) || ended_there)
}
