//! Stories: what is asked of a broker as one line of text, what it did as another.
//!
//! ```text
//! publish a:5 b:5 c:9 · lease · nack c · lease        →  c · c(2)
//! ```
//!
//! Steps stand between `·`. One that says nothing leaves no trace; a refusal is `no: its-code`. The queue `q` is there from
//! the start, with the settings the story begins with. Every step is watched ([`Watch`]).
//!
//! | step | does |
//! |---|---|
//! | `publish a:5 b c:9,ttl=500,delay=100,key=k,weight=2,id=x,bytes=7,to=x/rk` | publishes; an id of its own only with `id=` |
//! | `publish a,copies=q:0:500+r:-+s:own` | as routes would have it: queue, level, time to live |
//! | `publish? a:5` | the same, and says `a@position/position in priority` |
//! | `lease`, `lease 3 for=1000 wait=500 bytes=9 as=p least=5 except=9/7 one=` | pulls; says what it got, later when it waits |
//! | `consume w window=2 urgent=7+1 first=1` | starts a consumer that stays; its messages show as `w:a`; also `shared=1`, `exclusive`, `no-ack` |
//! | `get`, `get no-ack` | gets one message, and says how many are ready after it |
//! | `leave w` · `took w 2` · `window 1 size=3` | a consumer goes without its leases; has read; a shared window |
//! | `by s STEP` · `end s` · `put-back` | a step of a session; its end; some more of what it held is put back |
//! | `cancel w` · `ack a b` · `nack a delay=9` · `release a` · `reject a` · `extend a for=5` | by the latest receipt; `a#1`: by the first |
//! | `+500ms` | time passes |
//! | `reprioritise a 9` · `remove a` · `purge dead` · `replay a to=9` | `all` for all that can be |
//! | `[publish a ; ack b]` | one transaction |
//! | `declare r {…}`, `declare r exclusive {…}` | also `transient`, `auto-delete`, `args=x`; `same`: as it is, or not at all; `check r` |
//! | `settings {…}` · `delete r` · `in r` | another queue; new settings for this one; its end; look at it |
//! | `exchange x fanout` · `drop x` · `bind x r key` · `bind x >y key` | topology; `>y` is an exchange |
//! | `set a=1 -b`, `set? a=1` · `metadata` | sets and removes, the second says by how many facts; what is set. `*9` is nine bytes |
//! | `vhost v queues=2 about=x tag=y` · `drop-vhost v` · `at v` · `vhosts` | makes one or changes it; its end; all that follows is asked there; how many queues are where |
//! | `policy p ^q first=1 to=queues "max-length":2` · `unpolicy p` | also `operator`, `unoperator`; `rules`: what is other than declared, and why |
//! | `restart` | the consumers are gone and the facts are folded into a new broker |
//! | `finish` · `finish-late` · `want-back` · `record` · `work` | see `work.rs` |
//! | `queues` · `left` · `lanes` · `order` · `show a` · `deaths a` · `position a` | what is to be seen |

mod work;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use expect_test::Expect;
use overtake_lane::{
    Address, ApplyTo, Asker, Binding, BrowseOrder, Command, Consume, ConsumerId, Destination, Effect,
    ExchangeKind, ExchangeSettings, Existing, Get, Given, HeaderValue, Headers, Identity, LaneChoice,
    LeaseTerm, MessageView, MetadataEntry, Options, Outcome, Pattern, Place, Policy, PolicyKind, Priority,
    Publish, Published, Pull, QueueId, Receipt, Refusal, Reply, Route, RouteCopy, Seq, SessionId, Settings,
    Status, Step, Time, Urgency, UrgentCredit, VhostId, VhostSettings, Which, WindowId,
};

use crate::watch::{Watch, browse};

/// Runs a story on a queue with these settings (JSON, with or without the outer braces) and compares what it said.
#[track_caller]
pub(crate) fn check(settings: &str, story: &str, expect: Expect) {
    check_with(Options::default(), settings, story, expect);
}

/// [`check`] on a broker that was told something.
#[track_caller]
pub(crate) fn check_with(options: Options, settings: &str, story: &str, expect: Expect) {
    let told = tell(options, settings, story, None);
    // What is spilled behaves the same.
    for keep in 0..2 {
        assert_eq!(tell(options, settings, story, Some(keep)), told, "spilled but for {keep}");
    }
    expect.assert_eq(&told);
}

/// What a story says that begins with these settings.
pub(crate) fn tell_story(settings: &str, story: &str) -> String {
    tell(Options::default(), settings, story, None)
}

/// Runs a story and compares the position of every message with where it comes in the order of browsing.
#[track_caller]
pub(crate) fn check_positions(settings: &str, story: &str) {
    for keep in [None, Some(0), Some(1)] {
        check_positions_of(settings, story, keep);
    }
}

fn check_positions_of(settings: &str, story: &str, keep: Option<usize>) {
    let mut stage = Stage::new(Options::default());
    if let Some(keep) = keep {
        stage.watch.spill(keep);
    }
    stage.declare("q", settings);
    for step in story.split('·') {
        stage.act(step.trim());
        let broker = &stage.watch.broker;
        let order = browse(broker, VhostId::DEFAULT, "q", BrowseOrder::Dispatch);
        let ready = order.iter().filter(|view| view.status == Status::Ready);
        for (at, view) in ready.clone().enumerate() {
            let own = ready.clone().take(at).filter(|other| other.lane == view.lane).count() as u64;
            let (_, position, in_priority) =
                broker.message(VhostId::DEFAULT, "q", &view.id).expect("it is there");
            assert_eq!((position, in_priority), (Some(at as u64), Some(own)), "{settings}: {view:?}");
        }
    }
}

/// November 2026.
pub(crate) const START: Time = Time(1_793_500_000_000);

fn tell(options: Options, settings: &str, story: &str, keep: Option<usize>) -> String {
    let mut stage = Stage::new(options);
    if let Some(keep) = keep {
        stage.watch.spill(keep);
    }
    stage.declare("q", settings);
    stage.said.clear();
    for step in story.split('·') {
        stage.act(step.trim());
    }
    stage.said.join(" · ")
}

/// `queue:level:ttl`; the level is a number, `-` for none, `own` for the message's.
fn copy(text: &str) -> RouteCopy {
    let mut parts = text.split(':');
    let queue = parts.next().expect("a queue").into();
    let urgency = match parts.next().unwrap_or("-") {
        "own" => Urgency::Own,
        level => Urgency::Level(level.parse().ok()),
    };
    RouteCopy { queue, urgency, ttl_ms: parts.next().map(|ttl| ttl.parse().expect("ms")) }
}

struct Stage {
    watch: Watch,
    queue: Arc<str>,
    said: Vec<String>,
    places: BTreeMap<Place, String>,
    /// By name, in the order they were given.
    receipts: BTreeMap<String, Vec<Receipt>>,
    consumers: BTreeMap<String, ConsumerId>,
    /// Who asks, and where.
    asker: Asker,
    /// Every virtual host there ever was.
    vhosts: BTreeMap<String, VhostId>,
    next: u64,
}

/// The words of a step: those alone, and those of the form `key=value`.
struct Words<'a> {
    plain: Vec<&'a str>,
    keys: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn of(text: impl Iterator<Item = &'a str>) -> Self {
        let (keyed, plain): (Vec<_>, Vec<_>) = text.partition(|word| word.contains('='));
        Self { plain, keys: keyed.iter().filter_map(|word| word.split_once('=')).collect() }
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.keys.get(key).map(|value| value.parse().unwrap_or_else(|_| panic!("{key}={value} is no number")))
    }
}

impl Stage {
    fn new(options: Options) -> Self {
        Self {
            watch: Watch::new(options, START),
            queue: "q".into(),
            said: Vec::new(),
            places: BTreeMap::new(),
            receipts: BTreeMap::new(),
            consumers: BTreeMap::new(),
            asker: Asker::default(),
            vhosts: BTreeMap::from([("/".to_owned(), VhostId::DEFAULT)]),
            next: 1,
        }
    }

    fn act(&mut self, step: &str) {
        if let Some(inner) = step.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return self.transact(inner);
        }
        if let Some(ms) = step.strip_prefix('+') {
            let ms = ms.strip_suffix("ms").unwrap_or_else(|| panic!("`{step}` needs its unit"));
            let step = self.watch.wait(ms.parse().expect("milliseconds"));
            return self.tell_effects(&step);
        }
        if let Some(rest) = step.strip_prefix("by ") {
            let (name, step) = rest.split_once(' ').expect("by SESSION STEP");
            self.asker.session = Some(session(name));
            self.act(step);
            self.asker.session = None;
            return;
        }
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let words = Words::of(rest.split_whitespace());
        let queue = Arc::clone(&self.queue);
        match verb {
            "publish" | "publish?" => {
                rest.split_whitespace().for_each(|message| self.publish(message, verb.len() > 7))
            }
            "lease" => self.lease(&words),
            "consume" => self.consume(&words),
            "cancel" => {
                let consumer = self.consumers[words.plain[0]];
                self.watch.forget(consumer);
                self.run(Command::Cancel { consumer });
            }
            "leave" => self.run(Command::Leave { consumer: self.consumers[words.plain[0]] }),
            "took" => {
                let messages = words.plain[1].parse().expect("how many were read");
                self.run(Command::Took { consumer: self.consumers[words.plain[0]], messages });
            }
            "window" => {
                let window = window(words.plain[0]);
                let size = words.number("size").expect("size=") as u32;
                let joining = words.plain[1..].iter().map(|name| self.consumers[*name]).collect();
                self.run(Command::SetWindow { window, size, joining });
            }
            "get" => {
                let consumer = self.name_consumer("");
                self.run(Command::Get(Get { consumer, queue, no_ack: words.plain.contains(&"no-ack") }));
            }
            "put-back" => {
                let mut step = Step::default();
                self.watch.broker.put_back(self.watch.now, &mut step);
                self.watch.see(&step);
                self.tell_effects(&step);
            }
            "end" => self.run(Command::EndSession { session: session(words.plain[0]) }),
            "check" => self.run(Command::CheckQueue { name: words.plain[0].into() }),
            "ack" | "nack" | "release" | "reject" | "timeout" => {
                let receipts = words.plain.iter().map(|name| self.receipt(name)).collect();
                self.run(Command::Settle { receipts, outcome: outcome(verb, &words) });
            }
            "finish" => self.finish(&words),
            "finish-late" => self.finish_late(&words),
            "want-back" => self.want_back(words.plain[0]),
            "record" => self.say_record(words.plain[0]),
            "work" => self.say_work(words.plain[0]),
            "extend" => {
                let receipts = words.plain.iter().map(|name| self.receipt(name)).collect();
                self.run(Command::Extend { receipts, visibility_ms: words.number("for").expect("for=") });
            }
            "reprioritise" => {
                let priority: Given = words.plain[1].parse().expect("never fails");
                self.run(Command::Reprioritise { queue, which: self.which(words.plain[0]), priority });
            }
            "remove" => self.run(Command::Remove { queue, which: self.which(words.plain[0]) }),
            "purge" => {
                let status = words.plain.first().map(|word| status(word));
                self.run(Command::Purge { queue, status, expect: None });
            }
            "replay" => {
                let promote = words.keys.get("to").map(|word| word.parse().expect("never fails"));
                self.run(Command::Replay { queue, which: self.which(words.plain[0]), promote });
            }
            "declare" => {
                let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                let (how, settings) = rest.split_at(rest.find(['{', '"']).unwrap_or(rest.len()));
                self.declare_as(name, &Words::of(how.split_whitespace()), settings);
            }
            "settings" => self.declare(&queue, rest),
            "delete" => self.run(Command::DeleteQueue {
                name: words.plain[0].into(),
                if_empty: words.plain.contains(&"if-empty"),
                if_unused: words.plain.contains(&"if-unused"),
            }),
            "in" => self.queue = rest.into(),
            "exchange" => {
                let settings = Box::new(exchange(&words));
                self.run(Command::DeclareExchange { name: words.plain[0].into(), settings })
            }
            "drop" => self.run(Command::DeleteExchange {
                name: words.plain[0].into(),
                if_unused: words.plain.contains(&"if-unused"),
            }),
            "bind" => self.run(Command::Bind(Box::new(binding(&words)))),
            "unbind" => self.run(Command::Unbind(Box::new(binding(&words)))),
            "vhost" => {
                let settings = Box::new(vhost_settings(&words));
                self.run(Command::DeclareVhost { name: words.plain[0].into(), settings });
                if let Ok(view) = self.watch.broker.vhost(words.plain[0]) {
                    self.vhosts.insert(view.name.to_string(), view.vhost);
                }
            }
            "drop-vhost" => self.run(Command::DeleteVhost { name: words.plain[0].into() }),
            "at" => self.asker.vhost = self.vhosts[words.plain[0]],
            "vhosts" => self.say_vhosts(),
            "set" | "set?" => self.set(rest, verb.len() > 3),
            "metadata" => self.say_metadata(),
            "policy" => self.set_policy(PolicyKind::User, rest),
            "operator" => self.set_policy(PolicyKind::Operator, rest),
            "unpolicy" => self.run(Command::RemovePolicy { kind: PolicyKind::User, name: rest.into() }),
            "unoperator" => self.run(Command::RemovePolicy { kind: PolicyKind::Operator, name: rest.into() }),
            "rules" => self.say_rules(),
            "hold" | "go" => {
                let step = self.watch.hold(verb == "hold");
                self.tell_effects(&step);
            }
            "restart" => {
                let step = self.watch.restart();
                self.consumers.clear();
                self.tell_effects(&step);
            }
            "left" => self.say_left(),
            "queues" => self.say_queues(),
            "lanes" => self.say_lanes(),
            "order" => self.say_order(BrowseOrder::Dispatch),
            "published" => self.say_order(BrowseOrder::Published),
            "newest" => self.say_order(BrowseOrder::Newest),
            "position" => self.say_position(words.plain[0]),
            "show" => self.show(words.plain[0]),
            "deaths" => self.say_deaths(words.plain[0]),
            other => panic!("no such step: {other}"),
        }
    }

    // ---- asking ----

    fn ask(&mut self, command: Command) -> (Result<Reply, Refusal>, Step) {
        let asker = self.asker;
        if asker == Asker::default() {
            return self.watch.apply(command);
        }
        self.watch.apply(Command::By { asker, command: Box::new(command) })
    }

    fn run(&mut self, command: Command) {
        let (reply, step) = self.ask(command);
        let got = if let Ok(Reply::Got(ready)) = &reply { Some(*ready) } else { None };
        match reply {
            Err(refusal) => self.said.push(no(refusal)),
            Ok(Reply::Each(results)) => {
                self.said.extend(results.into_iter().filter_map(Result::err).map(no));
            }
            Ok(Reply::Declared { made: true, .. }) => self.said.push("made".to_owned()),
            Ok(_) => {}
        }
        self.tell_effects(&step);
        self.tell_got(got);
    }

    fn set(&mut self, entries: &str, is_counted: bool) {
        let entries = entries.split_whitespace().map(entry).collect();
        let (reply, step) = self.watch.apply(Command::SetMetadata { entries });
        if let Err(refusal) = reply {
            self.said.push(no(refusal));
        }
        if is_counted {
            self.said.push(format!("{} facts", step.facts.len()));
        }
    }

    fn set_policy(&mut self, kind: PolicyKind, text: &str) {
        let (head, definition) = text.split_once('"').expect("a definition");
        let words = Words::of(head.split_whitespace());
        let definition = format!("{{\"{definition}}}");
        let policy = Policy {
            pattern: Pattern::new(words.plain[1]).expect("a pattern"),
            definition: serde_json::from_str(&definition)
                .unwrap_or_else(|error| panic!("{definition}: {error}")),
            priority: words.number("first").unwrap_or(0) as i32,
            apply_to: match words.keys.get("to").copied() {
                Some("queues") => ApplyTo::Queues,
                Some("exchanges") => ApplyTo::Exchanges,
                _ => ApplyTo::All,
            },
        };
        self.run(Command::SetPolicy { kind, name: words.plain[0].into(), policy: Box::new(policy) });
    }

    /// By which policies, the settings that hold and are other ones than it was declared with, and what has no effect.
    fn say_rules(&mut self) {
        let view = self.watch.broker.view(self.watch.now, self.asker.vhost, &self.queue);
        let view = view.expect("the queue is there");
        let named = [("by", &view.policy), ("and", &view.operator_policy)];
        let mut said: Vec<String> =
            named.iter().filter_map(|(word, name)| Some(format!("{word} {}", name.as_ref()?))).collect();
        let json = |settings: &Settings| serde_json::to_value(settings).expect("settings are JSON");
        let (own, holds) = (json(&view.settings), json(view.effective_settings()));
        let other = holds.as_object().expect("settings are an object").iter();
        let other = other.filter(|(key, value)| own.get(key) != Some(value));
        said.extend(other.map(|(key, value)| format!("{key}={}", value.to_string().replace('"', ""))));
        said.extend(view.without_effect.iter().map(|key| format!("not {key}")));
        self.said.push(if said.is_empty() { "as declared".to_owned() } else { said.join(" ") });
    }

    fn say_metadata(&mut self) {
        let value = |value: &[u8]| match value.len() {
            len @ 20.. => format!("*{len}"),
            _ => String::from_utf8_lossy(value).into_owned(),
        };
        let all = self.watch.broker.metadata().map(|(key, bytes)| format!("{key}={}", value(bytes)));
        self.said.push(all.collect::<Vec<_>>().join(" "));
    }

    /// How many messages are ready after the one that was got.
    fn tell_got(&mut self, got: Option<Option<u64>>) {
        let said = got.map(|ready| ready.map_or("nothing".to_owned(), |ready| format!("{ready} after")));
        self.said.extend(said);
    }

    fn declare(&mut self, name: &str, settings: &str) {
        self.declare_as(name, &Words::of(std::iter::empty()), settings);
    }

    fn declare_as(&mut self, name: &str, how: &Words<'_>, settings: &str) {
        let settings = settings.trim();
        let json = if settings.starts_with('{') { settings.to_owned() } else { format!("{{{settings}}}") };
        let settings: Settings =
            serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
        settings.validate().unwrap_or_else(|bad| panic!("{json}: {bad}"));
        let is = |word| how.plain.contains(&word);
        let identity = Identity {
            durable: !is("transient"),
            exclusive: is("exclusive"),
            auto_delete: is("auto-delete"),
            arguments: how.keys.get("args").map_or(Arc::from([]), |text| text.as_bytes().into()),
        };
        let existing = if is("same") { Existing::Same } else { Existing::Update };
        self.run(Command::DeclareQueue {
            name: name.into(),
            settings: Box::new(settings),
            identity,
            existing,
        });
    }

    fn message(&mut self, text: &str) -> (String, Publish) {
        let mut parts = text.split(',');
        let head = parts.next().expect("a first part");
        let (name, priority) = head.split_once(':').unwrap_or((head, ""));
        let words = Words::of(parts);
        let place = Place(self.places.len() as u64 + 1);
        self.places.insert(place, name.to_owned());
        let mandatory = words.plain.contains(&"mandatory");
        let to = match words.keys.get("to") {
            _ if words.keys.contains_key("copies") => {
                let copies = words.keys["copies"].split('+').map(copy).collect();
                Address::Copies { copies, mandatory }
            }
            None => Address::Queue(Arc::clone(&self.queue)),
            Some(to) => {
                let (exchange, keys) = to.split_once('/').unwrap_or((to, ""));
                let mut keys = keys.split('+').map(Arc::from);
                let header =
                    words.keys.get("header").map(|name| ((*name).to_owned(), HeaderValue::Bool(true)));
                let delay = words.number("x-delay");
                let delay = delay.map(|ms| ("x-delay".to_owned(), HeaderValue::Int(ms as i64)));
                let marks: Headers = header.into_iter().chain(delay).collect();
                let (name, routing_key) = (exchange.into(), keys.next().expect("split gives one at least"));
                let (more_keys, marks) = (keys.collect(), Arc::new(marks));
                Address::Exchange { name, routing_key, more_keys, marks, mandatory }
            }
        };
        let publish = Publish {
            to,
            priority: priority.parse().expect("never fails"),
            id: words.keys.get("id").map(|id| (*id).into()),
            origin: None,
            key: words.keys.get("key").map(|key| (*key).into()),
            key_weight: words.number("weight").map(|weight| weight as u32),
            ttl_ms: words.number("ttl"),
            base_ttl_ms: None,
            delay_ms: words.number("delay").unwrap_or(0),
            bytes: words.number("bytes").unwrap_or(1) as u32,
            place,
        };
        (name.to_owned(), publish)
    }

    fn publish(&mut self, text: &str, tell: bool) {
        let (name, publish) = self.message(text);
        let (reply, step) = self.ask(Command::Publish(publish));
        match reply {
            Err(refusal) => self.said.push(no(refusal)),
            Ok(Reply::Published(copies)) => {
                for copy in copies.iter().filter(|copy| tell || copy.duplicate) {
                    self.said.push(position(&name, copy));
                }
            }
            Ok(other) => panic!("a publish answered {other:?}"),
        }
        self.tell_effects(&step);
    }

    fn transact(&mut self, inner: &str) {
        let (mut publishes, mut settlements) = (Vec::new(), Vec::new());
        for part in inner.split(';') {
            let (verb, rest) = part.trim().split_once(' ').expect("a verb and what it is about");
            let words = Words::of(rest.split_whitespace());
            match verb {
                "publish" => publishes.extend(rest.split_whitespace().map(|message| self.message(message).1)),
                _ => {
                    let outcome = outcome(verb, &words);
                    settlements.extend(words.plain.iter().map(|name| (self.receipt(name), outcome)));
                }
            }
        }
        self.run(Command::Transact { publishes, settlements });
    }

    fn name_consumer(&mut self, name: &str) -> ConsumerId {
        let consumer = ConsumerId(self.next);
        self.next += 1;
        self.consumers.insert(name.to_owned(), consumer);
        consumer
    }

    fn lease(&mut self, words: &Words<'_>) {
        let name = words.keys.get("as").copied().unwrap_or("");
        let pull = Pull {
            consumer: self.name_consumer(name),
            queue: Arc::clone(&self.queue),
            max: words.plain.first().map_or(1, |max| max.parse().expect("how many to lease")),
            max_bytes: words.number("bytes").unwrap_or(0),
            term: lease_term(words),
            lanes: lane_choice(words),
            until: self.watch.now.after(words.number("wait").unwrap_or(0)),
        };
        self.run(Command::Pull(pull));
    }

    fn consume(&mut self, words: &Words<'_>) {
        let urgent = words.keys.get("urgent").map(|urgent| {
            let (at, extra) = urgent.split_once('+').expect("urgent=PRIORITY+EXTRA");
            UrgentCredit {
                at: Priority(at.parse().expect("a priority")),
                extra: extra.parse().expect("a number"),
            }
        });
        let consume = Consume {
            consumer: self.name_consumer(words.plain[0]),
            queue: Arc::clone(&self.queue),
            window: words.number("window").map(|window| window as u32),
            shared: words.keys.get("shared").map(|number| window(number)),
            urgent,
            priority: words.number("first").unwrap_or(0) as i32,
            feed: None,
            exclusive: words.plain.contains(&"exclusive"),
            no_ack: words.plain.contains(&"no-ack"),
        };
        self.run(Command::Consume(consume));
    }

    fn receipt(&self, name: &str) -> Receipt {
        let (name, nth) =
            name.split_once('#').map_or((name, None), |(name, nth)| (name, nth.parse::<usize>().ok()));
        let nobody = Receipt { queue: QueueId(0), seq: Seq(0), lease: overtake_lane::LeaseId(0) };
        let Some(receipts) = self.receipts.get(name) else { return nobody };
        nth.map_or(receipts[receipts.len() - 1], |nth| receipts[nth - 1])
    }

    fn which(&self, name: &str) -> Which {
        if name == "all" {
            return Which::All;
        }
        if name.contains('+') {
            return Which::Seqs(
                name.split('+').filter_map(|name| self.find(name)).map(|view| view.seq).collect(),
            );
        }
        Which::Id(self.find(name).map_or(name.into(), |view| view.id.into()))
    }

    fn find(&self, name: &str) -> Option<MessageView> {
        let all = browse(&self.watch.broker, self.asker.vhost, &self.queue, BrowseOrder::Published);
        all.into_iter().find(|view| self.places[&self.watch.first_place(view.place)] == name)
    }

    // ---- saying ----

    fn tell_effects(&mut self, step: &Step) {
        let mut got: Vec<String> = Vec::new();
        for effect in &step.effects {
            match effect {
                Effect::Deliver(delivery) => {
                    let name = self.places[&self.watch.first_place(delivery.place)].clone();
                    let who = self.consumers.iter().find(|(_, id)| **id == delivery.consumer);
                    let who = who.map_or("", |(who, _)| who.as_str());
                    let mut word = if who.is_empty() { name.clone() } else { format!("{who}:{name}") };
                    if delivery.count > 1 {
                        write!(word, "({})", delivery.count).expect("a string takes all");
                    }
                    got.push(word);
                    self.receipts.entry(name).or_default().push(delivery.receipt);
                }
                Effect::Served { consumer } if !delivered(step, *consumer) => got.push("nothing".to_owned()),
                Effect::Cancelled { .. } => got.push("cancelled".to_owned()),
                Effect::TimedOut { consumer, .. } => {
                    let who = self.consumers.iter().find(|(who, id)| *id == consumer && !who.is_empty());
                    got.push(format!("{} timed out", who.map_or("a get", |(who, _)| who.as_str())));
                }
                Effect::Served { .. }
                | Effect::Returned { .. }
                | Effect::Released(_)
                | Effect::Shared(_)
                | Effect::Forgotten { .. } => {}
            }
        }
        if !got.is_empty() {
            self.said.push(got.join(" "));
        }
    }

    fn say_queues(&mut self) {
        let views = self.watch.broker.views(self.watch.now, self.asker.vhost, None);
        self.said.push(match views {
            Err(refusal) => no(refusal),
            Ok(views) => views.map(|view| view.name.to_string()).collect::<Vec<_>>().join(" "),
        });
    }

    /// `/:1 v:2 about x, tag y, queues 5`.
    fn say_vhosts(&mut self) {
        let all = self.watch.broker.vhosts().map(|view| {
            let VhostSettings { description, tags, max_queues, max_connections } = view.settings;
            let words = [
                (!description.is_empty()).then(|| format!("about {description}")),
                (!tags.is_empty()).then(|| format!("tag {}", tags.join("+"))),
                max_queues.map(|most| format!("queues {most}")),
                max_connections.map(|most| format!("connections {most}")),
            ];
            let words: Vec<String> = words.into_iter().flatten().collect();
            let space = if words.is_empty() { "" } else { " " };
            format!("{}:{}{space}{}", view.name, view.queues, words.join(", "))
        });
        self.said.push(all.collect::<Vec<_>>().join(" "));
    }

    fn say_left(&mut self) {
        let all = browse(&self.watch.broker, self.asker.vhost, &self.queue, BrowseOrder::Dispatch);
        let groups =
            [Status::Ready, Status::Delayed, Status::Leased, Status::Dead].into_iter().filter_map(|status| {
                let names = all
                    .iter()
                    .filter(|view| view.status == status)
                    .map(|view| self.places[&self.watch.first_place(view.place)].as_str());
                let names: Vec<&str> = names.collect();
                (!names.is_empty())
                    .then(|| format!("{} {}", format!("{status:?}").to_lowercase(), names.join(" ")))
            });
        let left = groups.collect::<Vec<_>>().join(", ");
        self.said.push(if left.is_empty() { "empty".to_owned() } else { left });
    }

    fn say_order(&mut self, order: BrowseOrder) {
        let all = browse(&self.watch.broker, self.asker.vhost, &self.queue, order);
        self.said.push(
            all.iter()
                .map(|view| self.places[&self.watch.first_place(view.place)].as_str())
                .collect::<Vec<_>>()
                .join(" "),
        );
    }

    fn say_lanes(&mut self) {
        let view = self
            .watch
            .broker
            .view(self.watch.now, self.asker.vhost, &self.queue)
            .expect("the queue is there");
        let lanes = view.lanes.iter().map(|lane| {
            let counts = [
                ("ready", lane.ready),
                ("delayed", lane.delayed),
                ("leased", lane.leased),
                ("dead", lane.dead),
                ("bytes", lane.bytes),
                ("oldest", lane.oldest_age_ms),
                ("published", lane.published),
                ("delivered", lane.delivered),
                ("redelivered", lane.redelivered),
                ("inversions", lane.inversions),
                ("settled", lane.settled),
                ("expired", lane.expired),
                ("evicted", lane.evicted),
                ("removed", lane.removed),
                ("moved", lane.moved),
                ("dead-lettered", lane.dead_lettered),
                ("waited", lane.wait.sum_ms),
            ];
            let told =
                counts.iter().filter(|(_, count)| *count > 0).map(|(word, count)| format!("{count} {word}"));
            format!("{}: {}", lane.lane, told.collect::<Vec<_>>().join(" "))
        });
        self.said.push(lanes.collect::<Vec<_>>().join(", "));
    }

    fn say_position(&mut self, name: &str) {
        let id = self.find(name).map_or(name.to_owned(), |view| view.id);
        let said = match self.watch.broker.message(self.asker.vhost, &self.queue, &id) {
            Err(refusal) => no(refusal),
            Ok((_, position, in_priority)) => format!("{name}@{}/{}", number(position), number(in_priority)),
        };
        self.said.push(said);
    }

    fn show(&mut self, name: &str) {
        let Some(view) = self.find(name) else { return self.said.push(format!("no {name}")) };
        let mut text = format!("{name} {} is {:?}", view.priority, view.status).to_lowercase();
        write!(text, " in {}, leased {}x", view.lane, view.count).expect("a string takes all");
        for (word, time) in [("expires", view.expires), ("due", view.due), ("deadline", view.deadline)] {
            if let Some(time) = time {
                write!(text, ", {word} in {}ms", time.since(self.watch.now)).expect("a string takes all");
            }
        }
        if let Some(death) = view.death() {
            let ago = self.watch.now.since(death.at);
            write!(
                text,
                ", died {:?} in {}/{} after {}, {ago}ms ago",
                death.reason, death.queue, death.lane, death.count
            )
            .expect("a string takes all");
        }
        self.said.push(text);
    }

    /// Every death, the newest first, then the way it came: `s expired x/k · q rejected twice x/k,l ttl 5, came by y/m`.
    fn say_deaths(&mut self, name: &str) {
        let Some(view) = self.find(name) else { return self.said.push(format!("no {name}")) };
        let Some(deaths) = view.deaths else { return self.said.push(format!("{name} never died")) };
        let way = |route: &Route| format!("{}/{}", route.exchange, route.keys.join(","));
        let died = deaths.iter().enumerate().map(|(at, death)| {
            let mut text =
                format!("{} {:?} by {}", death.queue, death.reason, way(&death.route)).to_lowercase();
            if death.times > 1 {
                write!(text, " {}x", death.times).expect("a string takes all");
            }
            if let Some(ttl_ms) = death.ttl_ms {
                write!(text, " ttl {ttl_ms}").expect("a string takes all");
            }
            if at == deaths.first_at() {
                text.push_str(" first");
            }
            text
        });
        let mut text = died.collect::<Vec<_>>().join(", ");
        write!(text, ", last by {}, now by {}", way(deaths.from()), way(deaths.route()))
            .expect("a string takes all");
        self.said.push(text);
    }
}

fn delivered(step: &Step, consumer: ConsumerId) -> bool {
    step.effects
        .iter()
        .any(|effect| matches!(effect, Effect::Deliver(delivery) if delivery.consumer == consumer))
}

fn no(refusal: Refusal) -> String {
    format!("no: {}", refusal.code())
}

fn number(position: Option<u64>) -> String {
    position.map_or("-".to_owned(), |position| position.to_string())
}

fn position(name: &str, copy: &Published) -> String {
    let again = if copy.duplicate { " again" } else { "" };
    format!("{name}{again}@{}/{}", number(copy.position), number(copy.position_in_priority))
}

fn outcome(verb: &str, words: &Words<'_>) -> Outcome {
    match verb {
        "ack" => Outcome::Ack,
        "nack" => Outcome::Nack { delay_ms: words.number("delay") },
        "release" => Outcome::Release,
        "reject" => Outcome::Reject,
        "timeout" => Outcome::Timeout,
        other => panic!("{other} settles nothing"),
    }
}

/// Sessions go by one letter.
fn session(name: &str) -> SessionId {
    SessionId(u64::from(name.as_bytes()[0]))
}

/// A window of session `s`.
fn window(number: &str) -> WindowId {
    WindowId { session: session("s"), number: number.parse().expect("the number of a window") }
}

fn vhost_settings(words: &Words<'_>) -> VhostSettings {
    VhostSettings {
        description: words.keys.get("about").map_or(String::new(), |word| text(word)),
        tags: words.keys.get("tag").map_or(Vec::new(), |tags| tags.split('+').map(text).collect()),
        max_queues: words.number("queues"),
        max_connections: words.number("connections"),
    }
}

fn status(word: &str) -> Status {
    match word {
        "ready" => Status::Ready,
        "delayed" => Status::Delayed,
        "leased" => Status::Leased,
        "dead" => Status::Dead,
        other => panic!("no status: {other}"),
    }
}

fn exchange(words: &Words<'_>) -> ExchangeSettings {
    ExchangeSettings {
        durable: !words.plain.contains(&"transient"),
        auto_delete: words.plain.contains(&"auto-delete"),
        internal: words.plain.contains(&"internal"),
        delayed: words.plain.contains(&"delayed"),
        alternate: words.keys.get("alternate").map(|name| (*name).into()),
        ..ExchangeSettings::new(kind(words.plain[1]))
    }
}

fn kind(word: &str) -> ExchangeKind {
    match word {
        "direct" => ExchangeKind::Direct,
        "fanout" => ExchangeKind::Fanout,
        "topic" => ExchangeKind::Topic,
        "headers" => ExchangeKind::Headers,
        "hash" => ExchangeKind::ConsistentHash,
        other => panic!("no kind of exchange: {other}"),
    }
}

fn binding(words: &Words<'_>) -> Binding {
    let to = words.plain[1];
    let to = match to.strip_prefix('>') {
        Some(exchange) => Destination::Exchange(exchange.into()),
        None => Destination::Queue(to.into()),
    };
    let header = words.keys.get("header").map(|name| ((*name).to_owned(), HeaderValue::Bool(true)));
    Binding {
        headers: header.into_iter().collect(),
        ..Binding::new(words.plain[0], to, words.plain.get(2).copied().unwrap_or(""))
    }
}

/// `*9` for nine bytes.
fn text(word: &str) -> String {
    match word.strip_prefix('*') {
        Some(len) => "x".repeat(len.parse().expect("a length")),
        None => word.to_owned(),
    }
}

/// `key=value`, `-key`.
fn entry(word: &str) -> MetadataEntry {
    match (word.strip_prefix('-'), word.split_once('=')) {
        (Some(key), _) => MetadataEntry::remove(&text(key)),
        (None, Some((key, value))) => MetadataEntry::set(&text(key), text(value).as_bytes()),
        (None, None) => panic!("`{word}` neither sets nor removes"),
    }
}

/// `for=session`, or so many ms.
fn lease_term(words: &Words<'_>) -> LeaseTerm {
    match words.keys.get("for") {
        Some(&"session") => LeaseTerm::Session,
        _ => words.number("for").map_or(LeaseTerm::OfQueue, LeaseTerm::Ms),
    }
}

fn lane_choice(words: &Words<'_>) -> LaneChoice {
    let at_least = words.keys.get("least").map(|least| Priority(least.parse().expect("a priority")));
    let except = words.keys.get("except").into_iter().flat_map(|names| names.split('/')).map(Arc::from);
    let default = LaneChoice::default();
    LaneChoice {
        at_least: at_least.unwrap_or(default.at_least),
        except: except.collect(),
        one: words.keys.contains_key("one"),
    }
}
