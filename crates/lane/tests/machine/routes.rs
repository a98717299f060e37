//! Exchanges of all kinds that look at each binding for itself, bound at random: what the indices find is what looking at every binding finds, a recovery finds the
//! same, nothing is left of what is deleted, and nothing that is done in one virtual host is seen in another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{
    Asker, Binding, Broker, Command, Destination, Envelope, ExchangeKind, ExchangeSettings, Fact,
    HeaderValue, Headers, HeadersMatch, MetadataEntry, Options, Refusal, Step, Time, Topology, VhostId,
    VhostSettings, VhostView, topic_matches,
};
use proptest::prelude::*;
use proptest::sample::select;

const EXCHANGES: [&str; 5] = ["v", "w", "x", "y", "z"];
const QUEUES: [&str; 3] = ["a", "b", "c"];
const VHOSTS: [&str; 3] = ["/", "s", "t"];

#[derive(Clone, Debug)]
enum Op {
    Declare(&'static str, Box<ExchangeSettings>),
    Delete(&'static str, bool),
    DeleteQueue(&'static str),
    DeclareQueue(&'static str),
    Bind(Box<Binding>),
    Unbind(prop::sample::Index),
    Set(Vec<MetadataEntry>),
    /// All that follows is asked there.
    At(&'static str),
    DeclareVhost(&'static str, VhostSettings),
    DeleteVhost(&'static str),
    Restart,
}

fn settings() -> impl Strategy<Value = Box<ExchangeSettings>> {
    let kinds =
        select(vec![ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers]);
    let alternate = prop_oneof![3 => Just(None), 1 => select(&EXCHANGES[..]).prop_map(Some)];
    let rarely = || prop::bool::weighted(0.2);
    (kinds, rarely(), rarely(), rarely(), alternate).prop_map(
        |(kind, delayed, transient, auto_delete, alternate)| {
            Box::new(ExchangeSettings {
                delayed,
                durable: !transient,
                auto_delete,
                alternate: alternate.map(Arc::from),
                ..ExchangeSettings::new(kind)
            })
        },
    )
}

fn headers() -> impl Strategy<Value = Headers> {
    let values = prop_oneof![Just(HeaderValue::Void), (0..2_i64).prop_map(HeaderValue::Int)];
    prop::collection::btree_map(select(vec!["h", "i", "x-j"]).prop_map(str::to_owned), values, 0..3)
}

fn bindings() -> impl Strategy<Value = Box<Binding>> {
    let to = prop_oneof![
        select(&QUEUES[..]).prop_map(|name| Destination::Queue(name.into())),
        select(&EXCHANGES[..]).prop_map(|name| Destination::Exchange(name.into())),
    ];
    let keys = select(vec!["", "k", "k.l", "k.*", "#", "#.l", "1", "3"]);
    let matching =
        select(vec![HeadersMatch::All, HeadersMatch::Any, HeadersMatch::AllWithX, HeadersMatch::AnyWithX]);
    (select(&EXCHANGES[..]), to, keys, headers(), matching, prop::collection::vec(0..2_u8, 0..2)).prop_map(
        |(exchange, to, key, headers, matching, arguments)| {
            let headers = headers.into_iter().collect();
            Box::new(Binding { headers, matching, arguments, ..Binding::new(exchange, to, key) })
        },
    )
}

/// Few keys, one of which cannot be used.
fn entries() -> impl Strategy<Value = MetadataEntry> {
    let keys = select(vec!["a", "b", "c", ""]);
    (keys, prop::option::of(select(vec!["", "1", "2"]))).prop_map(|(key, value)| MetadataEntry {
        key: key.into(),
        value: value.map(|value| value.as_bytes().into()),
    })
}

fn vhost_settings() -> impl Strategy<Value = VhostSettings> {
    let text =
        || prop_oneof![2 => Just(String::new()), 1 => Just("x".to_owned()), 1 => Just("\n".to_owned())];
    let most = || prop::option::weighted(0.3, 0..4_u64);
    (text(), text(), most(), most()).prop_map(|(description, tag, max_queues, max_connections)| {
        let tags = if tag.is_empty() { Vec::new() } else { vec![tag] };
        VhostSettings { description, tags, max_queues, max_connections }
    })
}

fn ops() -> impl Strategy<Value = Op> {
    let exchange = || select(&EXCHANGES[..]);
    let queue = || select(&QUEUES[..]);
    prop_oneof![
        4 => (exchange(), settings()).prop_map(|(name, settings)| Op::Declare(name, settings)),
        1 => (exchange(), any::<bool>()).prop_map(|(name, if_unused)| Op::Delete(name, if_unused)),
        1 => queue().prop_map(Op::DeleteQueue),
        2 => queue().prop_map(Op::DeclareQueue),
        12 => bindings().prop_map(Op::Bind),
        2 => any::<prop::sample::Index>().prop_map(Op::Unbind),
        2 => prop::collection::vec(entries(), 0..4).prop_map(Op::Set),
        3 => select(&VHOSTS[..]).prop_map(Op::At),
        3 => (select(&VHOSTS[..]), vhost_settings()).prop_map(|(name, settings)| Op::DeclareVhost(name, settings)),
        1 => select(&VHOSTS[..]).prop_map(Op::DeleteVhost),
        1 => Just(Op::Restart),
    ]
}

/// The exchanges as anybody would write them down.
#[derive(Default)]
struct Plain {
    exchanges: BTreeMap<String, (ExchangeSettings, BTreeSet<Binding>)>,
}

impl Plain {
    fn of(topology: &Topology) -> Self {
        let one = |(name, exchange): (&Arc<str>, &overtake_lane::Exchange)| {
            (name.to_string(), (exchange.settings.clone(), exchange.bindings().cloned().collect()))
        };
        Self { exchanges: topology.exchanges().map(one).collect() }
    }

    /// All queues that are reached without waiting, and all that are reached at all.
    fn route(&self, from: &str, letter: &Envelope<'_>) -> (BTreeSet<String>, BTreeSet<String>) {
        let mut reached = BTreeMap::from([(from.to_owned(), self.exchanges[from].0.delayed)]);
        let (mut now, mut ever) = (BTreeSet::new(), BTreeSet::new());
        // Until nothing changes.
        for _ in 0..=2 * self.exchanges.len() {
            for (name, is_late) in reached.clone() {
                for to in self.chosen(&name, letter) {
                    match to {
                        Destination::Queue(queue) => {
                            ever.insert(queue.to_string());
                            if !is_late {
                                now.insert(queue.to_string());
                            }
                        }
                        Destination::Exchange(next) => {
                            if let Some((settings, _)) = self.exchanges.get(&*next) {
                                let late = is_late || settings.delayed;
                                let known = reached.entry(next.to_string()).or_insert(late);
                                *known = *known && late;
                            }
                        }
                    }
                }
            }
        }
        (now, ever)
    }

    fn chosen(&self, name: &str, letter: &Envelope<'_>) -> Vec<Destination> {
        let (settings, bindings) = &self.exchanges[name];
        let takes = |binding: &&Binding| match settings.kind {
            ExchangeKind::Direct => letter.keys.contains(&&*binding.routing_key),
            ExchangeKind::Fanout => true,
            ExchangeKind::Topic => letter.keys.iter().any(|key| topic_matches(&binding.routing_key, key)),
            ExchangeKind::Headers => has(binding, letter),
            ExchangeKind::ConsistentHash => {
                unreachable!("which one it chooses is the matter of its own tests")
            }
        };
        let chosen: Vec<_> = bindings.iter().filter(takes).map(|binding| binding.to.clone()).collect();
        match &settings.alternate {
            Some(alternate) if chosen.is_empty() => vec![Destination::Exchange(Arc::clone(alternate))],
            _ => chosen,
        }
    }
}

fn has(binding: &Binding, letter: &Envelope<'_>) -> bool {
    let with_x = matches!(binding.matching, HeadersMatch::AllWithX | HeadersMatch::AnyWithX);
    let wanted: Vec<_> =
        binding.headers.iter().filter(|(name, _)| with_x || !name.starts_with("x-")).collect();
    let met = wanted.iter().filter(|(name, value)| {
        letter.marks.header(name).is_some_and(|there| *value == HeaderValue::Void || *there == *value)
    });
    match binding.matching {
        HeadersMatch::All | HeadersMatch::AllWithX => met.count() == wanted.len(),
        HeadersMatch::Any | HeadersMatch::AnyWithX => met.count() > 0,
    }
}

struct World {
    broker: Broker,
    /// Made of nothing but facts.
    folded: Broker,
    /// Where everything is asked.
    vhost: VhostId,
    /// What is said of each virtual host, as anybody would keep it, and the number it had last.
    vhosts: BTreeMap<&'static str, VhostSettings>,
    numbers: BTreeMap<&'static str, VhostId>,
    /// What was set, as anybody would keep it.
    metadata: BTreeMap<Arc<str>, Arc<[u8]>>,
}

impl World {
    fn ask(&mut self, command: Command) -> Result<(), Refusal> {
        let mut step = Step::default();
        let others = |broker: &Broker| -> Vec<(VhostView, String)> {
            let others = broker.vhosts().filter(|view| view.vhost != self.vhost);
            let topology = |id| format!("{:?}", broker.topology(id).expect("it is there"));
            others.map(|view| (view.clone(), topology(view.vhost))).collect()
        };
        let is_inside = !matches!(command, Command::DeclareVhost { .. } | Command::DeleteVhost { .. });
        let before = others(&self.broker);
        let asker = Asker::in_vhost(self.vhost);
        let result = self.broker.apply_by(Time(0), asker, command, &mut step).map(|_| ());
        assert!(!is_inside || others(&self.broker) == before, "nothing of it is seen elsewhere");
        self.fold(&step.facts);
        result
    }

    fn fold(&mut self, facts: &[Fact]) {
        for fact in facts {
            self.folded
                .fold(fact.clone(), &mut Step::default())
                .expect("what is said is about what is there");
        }
        assert_eq!(self.folded.topology_facts(), self.broker.topology_facts());
    }

    fn run(&mut self, op: Op) {
        let _ = match op {
            Op::Declare(name, settings) => self.ask(Command::DeclareExchange { name: name.into(), settings }),
            Op::Delete(name, if_unused) => self.ask(Command::DeleteExchange { name: name.into(), if_unused }),
            Op::DeclareQueue(name) => self.ask(Command::declare(name.into(), Box::default())),
            Op::DeleteQueue(name) => {
                self.ask(Command::DeleteQueue { name: name.into(), if_empty: false, if_unused: false })
            }
            Op::Bind(binding) => self.ask(Command::Bind(binding)),
            Op::Unbind(index) => {
                let here = self.broker.topology(self.vhost);
                let exchanges = here.iter().flat_map(|here| here.exchanges());
                let bound: Vec<Binding> =
                    exchanges.flat_map(|(_, exchange)| exchange.bindings().cloned()).collect();
                if bound.is_empty() {
                    Ok(())
                } else {
                    self.ask(Command::Unbind(Box::new(index.get(&bound).clone())))
                }
            }
            Op::Set(entries) => self.set(entries),
            Op::At(name) => {
                self.vhost = self.numbers[name];
                Ok(())
            }
            Op::DeclareVhost(name, settings) => self.declare_vhost(name, settings),
            Op::DeleteVhost(name) => self.delete_vhost(name),
            Op::Restart => {
                self.restart();
                Ok(())
            }
        };
    }

    fn set(&mut self, entries: Vec<MetadataEntry>) -> Result<(), Refusal> {
        let result = self.ask(Command::SetMetadata { entries: entries.clone() });
        assert_eq!(result.is_ok(), entries.iter().all(|entry| !entry.key.is_empty()));
        for MetadataEntry { key, value } in entries.into_iter().filter(|_| result.is_ok()) {
            match value {
                Some(value) => drop(self.metadata.insert(key, value)),
                None => drop(self.metadata.remove(&key)),
            }
        }
        result
    }

    fn declare_vhost(&mut self, name: &'static str, settings: VhostSettings) -> Result<(), Refusal> {
        let is_sound = !settings.description.contains('\n') && !settings.tags.contains(&"\n".to_owned());
        let declare = Command::DeclareVhost { name: name.into(), settings: Box::new(settings.clone()) };
        self.ask(declare).map_or_else(
            |refusal| assert_eq!((refusal, is_sound), (Refusal::VhostInvalid, false)),
            |()| {
                let vhost = self.broker.vhost(name).expect("it is declared").vhost;
                let is_new = self.vhosts.insert(name, settings).is_none();
                let before = self.numbers.insert(name, vhost).expect("each has one");
                assert_eq!(before != vhost, is_new, "no number is used twice");
            },
        );
        Ok(())
    }

    fn delete_vhost(&mut self, name: &'static str) -> Result<(), Refusal> {
        let expected = match self.vhosts.contains_key(name) {
            _ if name == "/" => Err(Refusal::VhostReserved),
            true => Ok(()),
            false => Err(Refusal::NoSuchVhost),
        };
        assert_eq!(self.ask(Command::DeleteVhost { name: name.into() }), expected);
        if expected.is_ok() {
            self.vhosts.remove(name);
            assert_eq!(self.broker.topology(self.numbers[name]).err(), Some(Refusal::NoSuchVhost));
        }
        expected
    }

    fn check_vhosts(&self) {
        let views: Vec<VhostView> = self.broker.vhosts().collect();
        let said: Vec<(&str, &VhostSettings)> =
            views.iter().map(|view| (&*view.name, &view.settings)).collect();
        assert_eq!(said, self.vhosts.iter().map(|(name, settings)| (*name, settings)).collect::<Vec<_>>());
        for view in views {
            let queues = self.broker.views(Time(0), view.vhost, None).expect("it is there");
            assert_eq!(queues.count() as u64, view.queues, "queues of {}", view.name);
            self.check_bindings(view.vhost);
        }
    }

    fn check_metadata(&self) {
        assert!(self.broker.metadata().eq(&self.metadata), "what was set is there, by key");
        let size = self.broker.metadata_size();
        let (keys, values) = self
            .metadata
            .iter()
            .fold((0, 0), |(keys, values), (key, value)| (keys + key.len(), values + value.len()));
        assert_eq!((size.key_bytes, size.value_bytes), (keys as u64, values as u64));
        assert_eq!(size.entries, self.metadata.len() as u64);
    }

    fn restart(&mut self) {
        let mut step = Step::default();
        self.broker = self.folded.clone();
        self.broker.wake(Time(0), &mut step);
        self.fold(&step.facts);
        let all = || self.broker.vhosts().filter_map(|view| self.broker.topology(view.vhost).ok());
        let durable = |all: &Topology| all.exchanges().all(|(_, exchange)| exchange.settings.durable);
        assert!(all().all(durable), "only what is durable is there after a restart");
    }

    fn check_bindings(&self, vhost: VhostId) {
        let topology = self.broker.topology(vhost).expect("it is there");
        let mut bound: Vec<&Binding> =
            topology.exchanges().flat_map(|(_, exchange)| exchange.bindings()).collect();
        for binding in &bound {
            match &binding.to {
                Destination::Queue(queue) => assert!(self.broker.id_of(vhost, queue).is_ok(), "{binding:?}"),
                Destination::Exchange(exchange) => {
                    assert!(topology.exchange(exchange).is_some(), "{binding:?}")
                }
            }
        }
        let queues = QUEUES.map(|name| Destination::Queue(name.into())).into_iter();
        let ends = queues.chain(EXCHANGES.map(|name| Destination::Exchange(name.into())));
        let ends: Vec<Destination> = ends.collect();
        let mut led: Vec<&Binding> = ends.iter().flat_map(|to| topology.bindings_to(to)).collect();
        bound.sort_unstable();
        led.sort_unstable();
        assert_eq!(bound, led, "what leads somewhere is what is bound");
    }

    fn check_routes(&self, letter: &Envelope<'_>) {
        let Ok(topology) = self.broker.topology(self.vhost) else { return };
        let plain = Plain::of(topology);
        for name in EXCHANGES {
            let Ok(route) = topology.route(name, letter) else {
                assert!(!plain.exchanges.contains_key(name), "{name}");
                continue;
            };
            let (now, ever) = plain.route(name, letter);
            let names = |queues: &BTreeSet<Arc<str>>| queues.iter().map(ToString::to_string).collect();
            assert_eq!(ever, names(&route.queues), "{name} {letter:?}");
            assert_eq!(&ever - &now, names(&route.delayed), "{name} {letter:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn indices_find_what_looking_at_every_binding_finds(
        ops in prop::collection::vec(ops(), 1..60),
        letters in prop::collection::vec((prop::collection::vec(select(vec!["", "k", "k.l", "l", "k.k.l"]), 1..3), headers()), 1..4),
    ) {
        let new = || Broker::new(Options::default());
        let mut world = World {
            broker: new(),
            folded: new(),
            vhost: VhostId::DEFAULT,
            vhosts: BTreeMap::from([("/", VhostSettings::default())]),
            numbers: BTreeMap::from([("/", VhostId::DEFAULT), ("s", VhostId(u32::MAX)), ("t", VhostId(u32::MAX))]),
            metadata: BTreeMap::new(),
        };
        for op in QUEUES.map(Op::DeclareQueue).into_iter().chain(ops) {
            world.run(op);
            world.check_vhosts();
            world.check_metadata();
            for (keys, headers) in &letters {
                world.check_routes(&Envelope { keys, marks: headers });
            }
        }
    }
}
