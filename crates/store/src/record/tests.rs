//! Facts, drawn, written and read back.

use std::sync::Arc;

use overtake_lane::{
    ATTEMPTS_MAX, Attempt, Attempts, Binding, Death, DeathReason, Deaths, Definition, Destination, Ending,
    ExchangeKind, Extras, HashOn, HeaderValue, HeadersMatch, Message, Original, Place, PolicyValue, Priority,
    Record, Report, Route, State, VhostSettings, Work,
};
use proptest::prelude::*;

use super::*;

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![any::<u64>().prop_map(Time), Just(Time::NEVER)]
}

fn originals() -> impl Strategy<Value = Original> {
    prop_oneof![Just(Original::Missing), Just(Original::Name), any::<i32>().prop_map(Original::Number)]
}

fn routes() -> impl Strategy<Value = Route> {
    ("\\PC{0,9}", prop::collection::vec("\\PC{0,9}", 0..3)).prop_map(|(exchange, keys)| Route {
        exchange: exchange.into(),
        keys: keys.into_iter().map(Arc::from).collect(),
    })
}

fn one_death() -> impl Strategy<Value = Death> {
    let reasons = prop_oneof![
        Just(DeathReason::Rejected),
        Just(DeathReason::DeliveryLimit),
        Just(DeathReason::Expired),
        Just(DeathReason::Maxlen),
        Just(DeathReason::Timeout)
    ];
    let ttl_ms = prop::option::of(0..u64::MAX);
    (reasons, "\\PC{0,9}", "\\PC{0,9}", any::<[u64; 2]>(), any::<[u32; 2]>(), routes(), ttl_ms).prop_map(
        |(reason, queue, lane, [first_at, at], [times, count], route, ttl_ms)| Death {
            reason,
            queue: queue.into(),
            lane: lane.into(),
            first_at: Time(first_at),
            at: Time(at),
            times,
            count,
            route,
            ttl_ms,
        },
    )
}

fn deaths() -> impl Strategy<Value = Arc<Deaths>> {
    let list = prop::collection::vec(one_death(), 1..4);
    (list, any::<prop::sample::Index>(), routes(), routes()).prop_map(|(list, first, from, route)| {
        let first = first.index(list.len());
        Arc::new(Deaths::new(list, first, from, route).expect("drawn to be one"))
    })
}

fn work() -> impl Strategy<Value = Work> {
    (any::<u64>(), time(), any::<bool>()).prop_map(|(started, ends, is_cancelled)| Work {
        started: Time(started),
        ends,
        is_cancelled,
    })
}

fn endings() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Completed),
        Just(Ending::Failed),
        Just(Ending::Timeout),
        Just(Ending::Cancelled),
        Just(Ending::LeaseExpired)
    ]
}

fn report() -> impl Strategy<Value = Report> {
    let said = || prop::option::of("\\PC{0,9}");
    (prop::option::of(any::<i32>()), said(), said()).prop_map(|(exit_code, error, output)| Report {
        exit_code,
        error: error.map(Into::into),
        output: output.map(Into::into),
    })
}

fn attempts() -> impl Strategy<Value = Arc<Attempts>> {
    let one = (endings(), time(), any::<u64>(), report()).prop_map(|(ending, started, finished, report)| {
        Attempt { ending, started: started.some(), finished: Time(finished), report }
    });
    (prop::collection::vec(one, 1..=ATTEMPTS_MAX), any::<u32>())
        .prop_map(|(kept, forgotten)| Arc::new(Attempts::new(kept, forgotten).expect("few and short")))
}

fn record() -> impl Strategy<Value = Arc<Record>> {
    let times = (any::<u64>(), time(), any::<u64>());
    (endings(), "\\PC{0,9}", "\\PC{0,9}", times, any::<u32>(), report()).prop_map(
        |(ending, queue, lane, (queued, started, finished), attempts, report)| {
            Arc::new(Record {
                ending,
                queue: queue.into(),
                lane: lane.into(),
                queued: Time(queued),
                started: started.some(),
                finished: Time(finished),
                attempts,
                report,
            })
        },
    )
}

fn messages() -> impl Strategy<Value = Message> {
    let states = prop_oneof![
        Just(State::Ready),
        Just(State::Dead),
        any::<u64>().prop_map(|due| State::Delayed { due: Time(due) }),
        (any::<u64>(), time())
            .prop_map(|(lease, deadline)| State::Leased { lease: LeaseId(lease), deadline }),
    ];
    let texts =
        (prop::option::of("\\PC{0,9}"), prop::option::of("\\PC{0,9}"), prop::option::of(1..=1_000_u32));
    let going_on = prop::option::of(work().prop_map(Box::new));
    let made = prop::option::of(attempts());
    let extras = (texts, prop::option::of(deaths()), going_on, prop::option::of(record()), made).prop_map(
        |((id, key, key_weight), deaths, work, record, attempts)| {
            let (id, key) = (id.map(Into::into), key.map(Into::into));
            let extras = Extras { id, key, key_weight, deaths, work, record, attempts };
            (extras != Extras::default()).then(|| Box::new(extras))
        },
    );
    let numbers = (any::<u64>(), any::<i32>(), any::<u64>(), any::<u32>(), any::<u32>());
    (numbers, originals(), time(), states, extras).prop_map(
        |((seq, priority, since, bytes, count), original, expires, state, extras)| Message {
            seq: Seq(seq),
            priority: Priority(priority),
            original,
            since: Time(since),
            expires,
            bytes,
            count,
            place: Place::default(),
            state,
            extras,
        },
    )
}

fn runs() -> impl Strategy<Value = RunRecord> {
    let numbers = (any::<u64>(), any::<i32>(), any::<[u32; 3]>(), any::<u64>());
    (numbers, time(), any::<[u64; 2]>(), taken(), any::<bool>()).prop_map(
        |((run, priority, [count, ids, deaths], bytes), expires, [first, last], (next, holes), is_mixed)| {
            RunRecord {
                run: RunId(run),
                priority: Priority(priority),
                count,
                ids,
                deaths,
                bytes,
                expires,
                first: Seq(first),
                last: Seq(last),
                next,
                holes,
                is_mixed,
            }
        },
    )
}

/// Few anywhere, or some of those that follow each other.
fn taken_of(next: u32, holes: impl IntoIterator<Item = u32>) -> (u32, Ordinals) {
    (next, holes.into_iter().filter(|hole| *hole > next).collect())
}

fn taken() -> impl Strategy<Value = (u32, Ordinals)> {
    let dense = prop::collection::vec(any::<bool>(), 0..200)
        .prop_map(|bits| (0..).zip(bits).filter_map(|(at, bit)| bit.then_some(at)).collect::<Vec<u32>>());
    let sparse = prop::collection::vec(any::<u32>(), 0..5);
    let next = prop_oneof![0..9_u32, any::<u32>(), Just(u32::MAX)];
    let from = prop_oneof![3 => Just(0), 1 => Just(u32::MAX - 300)];
    prop_oneof![
        (0..9_u32, from, dense)
            .prop_map(|(next, from, holes)| taken_of(next + from, holes.into_iter().map(|hole| hole + from))),
        (next, sparse).prop_map(|(next, holes)| taken_of(next, holes)),
    ]
}

fn identities() -> impl Strategy<Value = Identity> {
    let other = (any::<[bool; 3]>(), prop::collection::vec(any::<u8>(), 0..5)).prop_map(|(is, arguments)| {
        let [durable, exclusive, auto_delete] = is;
        Identity { durable, exclusive, auto_delete, arguments: arguments.into() }
    });
    prop_oneof![Just(Identity::default()), other]
}

fn kinds() -> impl Strategy<Value = PolicyKind> {
    prop_oneof![Just(PolicyKind::User), Just(PolicyKind::Operator)]
}

fn policies() -> impl Strategy<Value = Box<Policy>> {
    let apply_to = prop_oneof![Just(ApplyTo::Queues), Just(ApplyTo::Exchanges), Just(ApplyTo::All)];
    let definition = (prop::option::of(0..i64::MAX as u64), prop::option::of("\\PC{0,9}"), any::<i64>());
    ("[a-z^$|.]{0,9}", any::<i32>(), apply_to, definition).prop_map(
        |(pattern, priority, apply_to, (max_length, dead_letter_exchange, batch))| {
            let kept = [("ha-sync-batch-size".to_owned(), PolicyValue::Number(batch))].into();
            let definition = Definition { max_length, dead_letter_exchange, kept, ..Definition::default() };
            let pattern = Pattern::new(&pattern).expect("letters and signs are one");
            Box::new(Policy { pattern, definition, priority, apply_to })
        },
    )
}

fn facts() -> impl Strategy<Value = Fact> {
    let queue = || any::<u32>().prop_map(QueueId);
    let seq = || any::<u64>().prop_map(Seq);
    let name = || "\\PC{0,9}".prop_map(Arc::<str>::from);
    let arguments = || prop::collection::vec(any::<u8>(), 0..9);
    let to = prop_oneof![name().prop_map(Destination::Queue), name().prop_map(Destination::Exchange)];
    let binding = (name(), to, "[a-z.]{0,9}", arguments()).prop_map(|(exchange, to, key, arguments)| {
        Box::new(Binding {
            headers: vec![("a".into(), HeaderValue::Text("b".into())), ("c".into(), HeaderValue::Void)],
            matching: HeadersMatch::AnyWithX,
            arguments,
            ..Binding::new(&exchange, to, &key)
        })
    });
    let exchange = (any::<[bool; 4]>(), prop::option::of(name()), arguments()).prop_map(
        |([durable, auto_delete, internal, delayed], alternate, arguments)| {
            let hash_on = if delayed { HashOn::Header("h".into()) } else { HashOn::RoutingKey };
            let kind = ExchangeKind::ConsistentHash;
            let flags =
                ExchangeSettings { durable, auto_delete, internal, delayed, ..ExchangeSettings::new(kind) };
            Box::new(ExchangeSettings { alternate, hash_on, arguments, ..flags })
        },
    );
    let vhost = || prop_oneof![Just(VhostId::DEFAULT), any::<u32>().prop_map(VhostId)];
    let most = || prop::option::of(any::<u64>());
    let said = (".{0,9}", prop::collection::vec(".{0,5}", 0..3), most(), most()).prop_map(
        |(description, tags, max_queues, max_connections)| {
            Box::new(VhostSettings { description, tags, max_queues, max_connections })
        },
    );
    prop_oneof![
        (vhost(), name(), said).prop_map(|(vhost, name, settings)| Fact::VhostStored {
            vhost,
            name,
            settings
        }),
        vhost().prop_map(|vhost| Fact::VhostDeleted { vhost }),
        (queue(), vhost(), name(), seq(), identities()).prop_map(
            |(queue, vhost, name, next_seq, identity)| {
                Fact::QueueStored { queue, vhost, name, settings: Box::default(), identity, next_seq }
            }
        ),
        queue().prop_map(|queue| Fact::QueueDeleted { queue }),
        (vhost(), name(), exchange).prop_map(|(vhost, name, settings)| Fact::ExchangeStored {
            vhost,
            name,
            settings
        }),
        (vhost(), name()).prop_map(|(vhost, name)| Fact::ExchangeDeleted { vhost, name }),
        (vhost(), binding.clone()).prop_map(|(vhost, binding)| Fact::Bound { vhost, binding }),
        (vhost(), binding).prop_map(|(vhost, binding)| Fact::Unbound { vhost, binding }),
        (name(), prop::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(key, value)| Fact::MetadataStored { key, value: value.into() }),
        name().prop_map(|key| Fact::MetadataRemoved { key }),
        (vhost(), kinds(), name(), policies()).prop_map(|(vhost, kind, name, policy)| Fact::PolicyStored {
            vhost,
            kind,
            name,
            policy
        }),
        (vhost(), kinds(), name()).prop_map(|(vhost, kind, name)| Fact::PolicyRemoved { vhost, kind, name }),
        (queue(), messages()).prop_map(|(queue, message)| Fact::Stored { queue, message }),
        (queue(), seq(), any::<u64>(), time(), any::<u32>(), prop::option::of(work())).prop_map(
            |(queue, seq, lease, deadline, count, work)| {
                Fact::Leased { queue, seq, lease: LeaseId(lease), deadline, count, work }
            }
        ),
        (queue(), seq(), any::<u32>(), time(), prop::option::of(attempts())).prop_map(
            |(queue, seq, count, due, attempts)| Fact::PutBack {
                queue,
                seq,
                count,
                due: due.some(),
                attempts
            }
        ),
        (queue(), seq(), any::<i32>(), originals()).prop_map(|(queue, seq, priority, original)| {
            Fact::Reprioritised { queue, seq, priority: Priority(priority), original }
        }),
        (queue(), seq(), 0..SETTLED.len()).prop_map(|(queue, seq, how)| Fact::Settled {
            queue,
            seq,
            how: SETTLED[how]
        }),
        (queue(), seq(), any::<u32>(), deaths(), prop::option::of(attempts())).prop_map(
            |(queue, seq, count, deaths, attempts)| Fact::Died { queue, seq, count, deaths, attempts }
        ),
        (queue(), seq(), any::<i32>(), originals(), time()).prop_map(
            |(queue, seq, priority, original, expires)| Fact::Replayed {
                queue,
                seq,
                priority: Priority(priority),
                original,
                expires
            }
        ),
        (queue(), any::<u64>()).prop_map(|(queue, run)| Fact::RunFetched { queue, run: RunId(run) }),
        queue().prop_map(|queue| Fact::LanesChanged { queue }),
        (queue(), prop::collection::btree_set(1..u64::MAX, 1..20)).prop_map(|(queue, mut seqs)| {
            let before = Seq(seqs.pop_last().expect("there is one"));
            Fact::Purged { queue, before, kept: seqs.into_iter().map(Seq).collect() }
        }),
        (queue(), any::<u64>(), 0..SETTLED.len()).prop_map(|(queue, run, how)| Fact::RunSettled {
            queue,
            run: RunId(run),
            how: SETTLED[how]
        }),
        (queue(), runs()).prop_map(|(queue, run)| Fact::RunRestated { queue, run: Box::new(run) }),
        (queue(), runs()).prop_map(|(queue, run)| Fact::RunStored { queue, run: Box::new(run) }),
        (queue(), runs(), prop::collection::vec((any::<u64>(), taken()), 0..4)).prop_map(
            |(queue, run, of)| {
                let old = |(run, (next, holes))| Rewritten { run: RunId(run), next, holes };
                Fact::RunsRewritten { queue, run: Box::new(run), of: of.into_iter().map(old).collect() }
            }
        ),
        (queue(), seq(), any::<bool>(), prop::collection::vec((queue(), messages()), 0..3)).prop_map(
            |(from, seq, are_copies, to)| {
                let extras = to.first().filter(|_| are_copies).and_then(|(_, first)| first.extras.clone());
                let copy = |message: Message| match &extras {
                    Some(_) => Message { extras: extras.clone(), ..message },
                    None => message,
                };
                let to = to.into_iter().map(|(queue, message)| Located { queue, message: copy(message) });
                Fact::Moved { from, seq, to: to.collect() }
            }
        ),
    ]
}

proptest! {
    #[test]
    fn facts_read_back_as_they_were_written(facts in prop::collection::vec((facts(), prop::collection::vec(any::<u8>(), 0..3)), 0..5)) {
        let mut record = Vec::new();
        let mut before: Option<&[u8]> = None;
        for (fact, content) in &facts {
            let content = match fact {
                Fact::Stored { .. } if before == Some(content) => Content::Same,
                Fact::Stored { .. } => Content::Bytes(content),
                _ => Content::None,
            };
            if let Content::Bytes(bytes) = content { before = Some(bytes); }
            encode(fact, content, &mut record);
        }
        let read: Result<Vec<_>, _> = Decoder::new(&record).collect();
        let read = read.expect("what was written makes sense");
        prop_assert_eq!(read.len(), facts.len());
        for ((fact, content), (read_fact, read_content)) in facts.iter().zip(&read) {
            prop_assert_eq!(fact, read_fact);
            if let Some(read_content) = read_content { prop_assert_eq!(&content[..], *read_content); }
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for fact in Decoder::new(&bytes) { drop(fact); }
    }

    #[test]
    fn what_is_taken_of_a_run_costs_a_bit_each_at_most((next, holes) in taken()) {
        let mut record = Vec::new();
        super::taken(&mut record, next, &holes);
        let beyond = holes.last().map_or(0, |last| last - next);
        prop_assert!(record.len() <= beyond.div_ceil(8) as usize + 5 + 1 + 5);
    }

    #[test]
    fn a_settlement_fits_what_was_reserved_for_it(queue in any::<u32>(), seq in any::<u64>()) {
        let mut record = Vec::new();
        encode(&Fact::Settled { queue: QueueId(queue), seq: Seq(seq), how: Settled::Replaced }, Content::None, &mut record);
        prop_assert!(record.len() <= SETTLE_LEN_MAX);
    }
}
