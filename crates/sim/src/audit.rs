//! All that stands in a broker at one moment, as a recovery would have to find it.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    Attempt, Broker, CLOCK_KEY, Deaths, Fact, Message, Order, QueueId, Record, Report, Route, Scheme, Seq,
    State, Time, VhostId, VhostSettings,
};

use crate::keys::speaks_of_keys;
use crate::rng::mix;

/// The messages and the topology of a broker. Places are not durable and count for nothing here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    pub(crate) queues: BTreeMap<QueueId, Seen>,
    pub(crate) vhosts: BTreeMap<VhostId, Arc<str>>,
    /// One number for all of it, but for how often messages were leased.
    pub(crate) digest: u64,
}

/// One queue.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) vhost: VhostId,
    pub(crate) name: Arc<str>,
    pub(crate) next_seq: Seq,
    /// In the order of their sequences. What a consumer that stays holds counts as ready.
    pub(crate) messages: Vec<Message>,
    /// Some of them wait to move to other lanes.
    pub(crate) is_moving: bool,
    /// What its settings say of lanes, and whether keys count.
    lanes: (Scheme, Order, bool),
}

impl Seen {
    pub(crate) fn find(&self, seq: Seq) -> Option<&Message> {
        self.messages.binary_search_by_key(&seq, |message| message.seq).ok().map(|at| &self.messages[at])
    }
}

impl Audit {
    pub(crate) fn of(broker: &Broker) -> Self {
        let mut queues = BTreeMap::new();
        let mut digest = 0;
        for fact in broker.topology_facts().into_iter().filter(|fact| !is_clock(fact)) {
            digest = mix(digest ^ hash_topology(&fact));
            if let Fact::QueueStored { queue, vhost, name, next_seq, .. } = fact {
                let view = broker.view(Time(0), vhost, &name).expect("it is there");
                let is_moving = view.lanes.iter().any(|lane| lane.moving > 0);
                let settings = view.effective_settings();
                let lanes = (settings.scheme, settings.order.clone(), speaks_of_keys(settings));
                let messages = Vec::new();
                queues.insert(queue, Seen { vhost, name, next_seq, messages, is_moving, lanes });
            }
        }
        for fact in broker.message_facts() {
            let Fact::Stored { queue, message } = fact else { unreachable!("messages are stored") };
            digest = mix(digest ^ hash_message(queue, &message));
            queues.get_mut(&queue).expect("a message is in a queue").messages.push(message);
        }
        let vhosts = broker.vhosts().map(|view| (view.vhost, view.name)).collect();
        Self { queues, vhosts, digest }
    }

    /// The queue of this name in a virtual host.
    pub(crate) fn named(&self, vhost: VhostId, name: &str) -> Option<(QueueId, &Seen)> {
        let mut all = self.queues.iter();
        let (id, seen) = all.find(|(_, seen)| seen.vhost == vhost && *seen.name == *name)?;
        Some((*id, seen))
    }

    /// Whether messages of a queue wait to move to other lanes: what it leases then is the first of those that have moved.
    pub(crate) fn is_moving(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(|seen| seen.is_moving)
    }

    /// Whether messages of a queue may have moved to other lanes between this moment and that one.
    pub(crate) fn may_move(&self, queue: QueueId, after: &Self) -> bool {
        let lanes = |audit: &Self| audit.queues.get(&queue).map(|seen| seen.lanes.clone());
        self.is_moving(queue) || after.is_moving(queue) || lanes(self) != lanes(after)
    }

    pub(crate) fn find(&self, queue: QueueId, seq: Seq) -> Option<&Message> {
        self.queues.get(&queue)?.find(seq)
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = (QueueId, &Message)> {
        self.queues.iter().flat_map(|(id, seen)| seen.messages.iter().map(move |message| (*id, message)))
    }

    /// Bytes of content.
    pub(crate) fn bytes(&self) -> u64 {
        self.messages().map(|(_, message)| u64::from(message.bytes)).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.values().map(|seen| seen.messages.len()).sum()
    }
}

/// Whether it is what the broker notes of its clock: an engine that opens a store may note it anew, whatever its log says.
pub(crate) fn is_clock(fact: &Fact) -> bool {
    matches!(fact, Fact::MetadataStored { key, .. } if **key == *CLOCK_KEY)
}

/// Whether two messages are the same, but for their places and counts.
pub(crate) fn same(a: &Message, b: &Message) -> bool {
    hash_message(QueueId(0), a) == hash_message(QueueId(0), b)
}

fn hash_message(queue: QueueId, message: &Message) -> u64 {
    let Message { seq, priority, original, since, expires, bytes, state, extras, .. } = message;
    let (kind, a, b) = match state {
        State::Ready => (0, 0, 0),
        State::Delayed { due } => (1, due.0, 0),
        State::Leased { lease, deadline } => (2, lease.0, deadline.0),
        State::Dead => (3, 0, 0),
    };
    let original = match original {
        overtake_lane::Original::Missing => 1 << 40,
        overtake_lane::Original::Number(number) => *number as u32 as u64,
        overtake_lane::Original::Name => 1 << 41,
    };
    let mut hash = 0;
    for word in [
        u64::from(queue.0),
        seq.0,
        priority.0 as u32 as u64,
        original,
        since.0,
        expires.0,
        u64::from(*bytes),
        kind,
        a,
        b,
    ] {
        hash = mix(hash ^ word);
    }
    if let Some(extras) = extras {
        hash = hash_text(hash, extras.id.as_deref().unwrap_or("-"));
        hash = hash_text(hash, extras.key.as_deref().unwrap_or("-"));
        hash = mix(hash ^ u64::from(extras.key_weight.unwrap_or(0)));
        hash = extras.deaths.iter().fold(hash, |hash, deaths| hash_deaths(hash, deaths));
        if let Some(work) = &extras.work {
            hash = mix(hash ^ work.started.0 ^ u64::from(work.is_cancelled) << 60);
            hash = mix(hash ^ work.ends.0);
        }
        hash = extras.record.iter().fold(hash, |hash, record| hash_record(hash, record));
        let attempts = extras.attempts.iter().flat_map(|attempts| attempts.iter());
        hash = attempts.fold(hash, |hash, attempt| {
            let Attempt { ending, started, finished, report } = attempt;
            let begun = started.map_or(0, |started| started.0 + 1);
            hash_report(mix(hash_text(hash, ending.word()) ^ begun ^ finished.0 << 20), report)
        });
    }
    hash
}

fn hash_record(hash: u64, record: &Record) -> u64 {
    let Record { ending, queue, lane, queued, started, finished, attempts, report } = record;
    let mut hash = hash_text(hash_text(hash_text(hash, ending.word()), queue), lane);
    let started = started.map_or(0, |started| started.0 + 1);
    for word in [queued.0, started, finished.0, u64::from(*attempts)] {
        hash = mix(hash ^ word);
    }
    hash_report(hash, report)
}

fn hash_report(hash: u64, report: &Report) -> u64 {
    let code = report.exit_code.map_or(1 << 40, |code| u64::from(code.unsigned_abs()));
    let said = [&report.error, &report.output].map(|said| said.as_deref().unwrap_or("-"));
    said.iter().fold(mix(hash ^ code), |hash, said| hash_text(hash, said))
}

fn hash_deaths(hash: u64, deaths: &Deaths) -> u64 {
    let routes = hash_route(hash_route(hash, deaths.from()), deaths.route());
    let first = mix(routes ^ deaths.first_at() as u64);
    deaths.iter().fold(first, |hash, death| {
        let names = hash_text(hash_text(hash, &death.queue), &death.lane);
        let times = mix(names ^ death.first_at.0 ^ u64::from(death.times) << 44);
        let when = mix(times ^ death.at.0 ^ (death.reason as u64) << 60);
        hash_route(mix(when ^ death.ttl_ms.map_or(0, |ms| ms + 1)), &death.route)
    })
}

fn hash_route(hash: u64, route: &Route) -> u64 {
    route.keys.iter().fold(hash_text(hash, &route.exchange), |hash, key| hash_text(hash, key))
}

fn hash_topology(fact: &Fact) -> u64 {
    match fact {
        Fact::VhostStored { vhost, name, settings } => {
            let VhostSettings { description, tags, max_queues, max_connections } = &**settings;
            let texts =
                tags.iter().fold(hash_text(hash_text(5, name), description), |h, tag| hash_text(h, tag));
            let most = |most: &Option<u64>| most.map_or(0, |most| most + 1);
            mix(texts ^ u64::from(vhost.0) ^ most(max_queues) << 20 ^ most(max_connections) << 40)
        }
        Fact::QueueStored { queue, vhost, name, next_seq, settings, identity } => {
            let is = [identity.durable, identity.exclusive, identity.auto_delete].map(u64::from);
            let is = is.iter().fold(identity.arguments.len() as u64, |hash, bit| hash << 1 | bit);
            let hash = mix(settings.expires_ms ^ is << 32);
            let hash =
                hash_text(mix(u64::from(queue.0)) ^ next_seq.0 ^ hash ^ u64::from(vhost.0) << 48, name);
            let Some(dead_letter) = name_of(&settings.dead_letter) else { return hash };
            hash_text(hash ^ settings.max_length ^ u64::from(settings.max_active) << 32, dead_letter)
        }
        Fact::ExchangeStored { vhost, name, .. } => hash_text(1 ^ u64::from(vhost.0) << 8, name),
        Fact::PolicyStored { vhost, kind, name, policy } => {
            let hash = hash_text(6 ^ u64::from(vhost.0) << 8 ^ (*kind as u64) << 40, name);
            mix(hash_text(hash, policy.pattern.as_str()) ^ policy.priority as u64)
        }
        Fact::MetadataStored { key, value } => hash_bytes(hash_text(4, key), value),
        Fact::Bound { vhost, binding } => {
            let hash = hash_text(2 ^ u64::from(vhost.0) << 8, &binding.exchange);
            hash_text(hash_text(hash, binding.to.name()), &binding.routing_key)
        }
        _ => 3,
    }
}

fn name_of(to: &overtake_lane::DeadLetterTo) -> Option<&str> {
    match to {
        overtake_lane::DeadLetterTo::Queue(name) | overtake_lane::DeadLetterTo::Exchange { name, .. } => {
            Some(name)
        }
        overtake_lane::DeadLetterTo::Keep => Some("keep"),
        overtake_lane::DeadLetterTo::Drop => Some("drop"),
    }
}

fn hash_text(hash: u64, text: &str) -> u64 {
    hash_bytes(hash, text.as_bytes())
}

fn hash_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash ^ u64::from_le_bytes(word) ^ (chunk.len() as u64) << 56);
    }
    mix(hash ^ bytes.len() as u64)
}
