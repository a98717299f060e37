//! Queues whose messages are kept elsewhere: who takes, who holds, and what goes back.
//!
//! | step | does |
//! |---|---|
//! | `put a:5 b:9` | there are messages, where they are kept; `a:5:20` has 20 bytes |
//! | `consume w window=2 urgent=7+1 shared=1 first=1 exclusive no-ack` · `took w 2` · `window 3` | consumers of one session; the window they may share |
//! | `pull p max=3 bytes=9 for=50 wait=90 least=5 except=4/3 one` | a pull; without `for` its leases end with its session |
//! | `get g` · `get g no-ack` | a get |
//! | `done a` · `cancel w` · `leave w` · `end` | a lease ended where it is kept; somebody is gone; the session is over |
//! | `+50ms` · `in r` · `settings {…}` · `own r` · `drop r` | time; another queue; new settings; one of the session's own; its end |
//! | `who a` · `wants` | who holds it; what would be taken |

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use overtake_lane::{
    Asker, Broker, Command, Consume, ConsumerId, Effect, Get, LaneChoice, LeaseId, LeaseTerm, Options,
    Priority, Pull, QueueId, Receipt, Refusal, Seq, SessionId, Settings, Step, Terms, Time, UrgentCredit,
    Want, WindowId,
};

use crate::elsewhere::{Elsewhere, follow, remote};
use crate::story::START;

const SESSION: SessionId = SessionId(1);
const WINDOW: WindowId = WindowId { session: SESSION, number: 1 };

#[track_caller]
fn check(settings: &str, story: &str, expect: Expect) {
    let mut stage = Stage::new(settings);
    story.split('·').for_each(|step| stage.act(step.trim()));
    expect.assert_eq(&stage.said.join(" · "));
}

struct Stage {
    now: Time,
    broker: Broker,
    queues: Vec<(String, Elsewhere)>,
    at: usize,
    messages: BTreeMap<(QueueId, Seq), String>,
    receipts: BTreeMap<String, Receipt>,
    takers: BTreeMap<String, ConsumerId>,
    said: Vec<String>,
}

fn settings_of(json: &str) -> Settings {
    serde_json::from_str(&format!("{{{json}}}")).expect(json)
}

fn key<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn number<T: std::str::FromStr>(words: &[&str], name: &str) -> Option<T> {
    key(words, name).map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

impl Stage {
    fn new(settings: &str) -> Self {
        let mut stage = Self {
            now: START,
            broker: Broker::new(Options::default()),
            queues: Vec::new(),
            at: 0,
            messages: BTreeMap::new(),
            receipts: BTreeMap::new(),
            takers: BTreeMap::new(),
            said: Vec::new(),
        };
        for name in ["q", "r"] {
            stage.declare(name, &settings_of(settings), None);
        }
        stage
    }

    fn declare(&mut self, name: &str, settings: &Settings, owner: Option<SessionId>) {
        let at = self.queues.iter().position(|(other, _)| other == name).unwrap_or(self.queues.len());
        if at == self.queues.len() {
            self.queues.push((name.to_owned(), Elsewhere::default()));
        }
        let mut step = Step::default();
        remote(&mut self.broker, self.now, QueueId(at as u32), name, settings, owner, &mut step);
        self.follow(step);
    }

    fn act(&mut self, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (id, queue) = (QueueId(self.at as u32), self.queues[self.at].0.as_str().into());
        let name = words.get(1).copied().unwrap_or_default();
        let consumer = self.takers.get(name).copied().unwrap_or(ConsumerId(self.takers.len() as u64 + 1));
        let mut step = Step::default();
        match words[0] {
            "put" => words[1..].iter().for_each(|message| self.put(message)),
            "consume" | "pull" | "get" => {
                self.takers.insert(name.to_owned(), consumer);
                match words[0] {
                    "consume" => self.ask(Command::Consume(consume(&words, consumer, queue)), &mut step),
                    "pull" => {
                        let until = self.now.after(number(&words, "wait").unwrap_or(1_000));
                        self.ask(Command::Pull(pull(&words, consumer, queue, until)), &mut step);
                    }
                    _ => self.get(&Get { consumer, queue, no_ack: words.contains(&"no-ack") }, &mut step),
                }
            }
            "took" => {
                let messages = words[2].parse().expect("how many were read");
                self.ask(Command::Took { consumer, messages }, &mut step);
            }
            "window" => {
                let size = name.parse().expect("a size");
                self.ask(Command::SetWindow { window: WINDOW, size, joining: Vec::new() }, &mut step);
            }
            "done" => {
                let receipt = self.receipts[name];
                self.queues[receipt.queue.0 as usize].1.end(&receipt, None);
                let was_held = self.broker.settled(self.now, &receipt, &mut step);
                self.said.extend((!was_held).then(|| "not held".to_owned()));
            }
            "cancel" => self.ask(Command::Cancel { consumer }, &mut step),
            "leave" => self.ask(Command::Leave { consumer }, &mut step),
            "end" => self.ask(Command::EndSession { session: SESSION }, &mut step),
            "in" => self.at = self.queues.iter().position(|(other, _)| other == name).expect(name),
            "settings" => {
                self.declare(&queue, &settings_of(text.strip_prefix("settings").expect("a verb")), None);
            }
            "own" => self.declare(name, &Settings::default(), Some(SESSION)),
            "drop" => assert!(self.broker.end_remote(self.now, id, &mut step), "it was there"),
            "who" => {
                let holder = self.broker.holder_of(&self.receipts[name]);
                self.said.push(holder.map_or("nobody".to_owned(), |holder| self.taker(holder)));
            }
            "wants" => {
                let wants = self.broker.wants(id);
                self.said.push(wants.iter().map(say_want).collect::<Vec<_>>().join(", "));
            }
            wait => {
                let ms = wait.strip_prefix('+').and_then(|rest| rest.strip_suffix("ms")).expect(wait);
                self.now = self.now.after(ms.parse().expect("milliseconds"));
                for (_, kept) in &mut self.queues {
                    kept.tick(self.now);
                }
                self.broker.tick(self.now, &mut step);
            }
        }
        self.follow(step);
    }

    fn ask(&mut self, command: Command, step: &mut Step) {
        if let Err(refusal) = self.broker.apply_by(self.now, Asker::connected(SESSION), command, step) {
            self.said.push(format!("no: {}", refusal.code()));
        }
    }

    fn put(&mut self, message: &str) {
        let mut parts = message.split(':');
        let name = parts.next().expect("a name");
        let mut number = |default| parts.next().map_or(default, |part| part.parse().expect("a number"));
        let (priority, bytes) = (number(4), number(0));
        let seq = self.queues[self.at].1.publish(self.now, priority, bytes as u32);
        self.messages.insert((QueueId(self.at as u32), seq), name.to_owned());
    }

    fn get(&mut self, get: &Get, step: &mut Step) {
        let terms = if get.no_ack { Terms::Settled } else { Terms::Held };
        let want = Want { max: 1, max_bytes: 0, terms, choice: LaneChoice::default() };
        let Some(message) = self.queues[self.at].1.lease(self.now, &want).pop() else { return };
        let asker = Asker::connected(SESSION);
        self.broker.hand_to(self.now, asker, get, message, step).expect("it is handed");
    }

    /// Until nothing more happens: what one queue gives back may be room for another.
    fn follow(&mut self, mut step: Step) {
        loop {
            for (at, (_, kept)) in self.queues.iter_mut().enumerate() {
                follow(&mut self.broker, self.now, QueueId(at as u32), kept, &mut step);
            }
            if step.effects.is_empty() {
                return self.check_held();
            }
            let said: Vec<String> = step.effects.iter().filter_map(|effect| self.say(effect)).collect();
            self.said.push(said.join(" "));
            step.clear();
        }
    }

    /// What is leased to be held is held by somebody, unless its queue is gone.
    fn check_held(&self) {
        for (at, (_, kept)) in self.queues.iter().enumerate() {
            let is_there = self.broker.name(QueueId(at as u32)).is_some();
            for (receipt, terms) in kept.leased(QueueId(at as u32)) {
                let is_held = self.broker.holder_of(&receipt).is_some();
                assert_eq!(is_held, is_there && terms == Terms::Held, "{receipt:?}");
            }
        }
    }

    fn say(&mut self, effect: &Effect) -> Option<String> {
        let message = |receipt: &Receipt| self.messages[&(receipt.queue, receipt.seq)].clone();
        Some(match effect {
            Effect::Deliver(delivery) => {
                let name = message(&delivery.receipt);
                self.receipts.insert(name.clone(), delivery.receipt);
                let again = if delivery.count > 1 { format!("({})", delivery.count) } else { String::new() };
                format!("{}:{name}{again}", self.taker(delivery.consumer))
            }
            Effect::Returned { receipt, why } => format!("{} is back, {why:?}", message(receipt)),
            Effect::TimedOut { consumer, .. } => format!("{} timed out", self.taker(*consumer)),
            Effect::Cancelled { consumer } => format!("{} cancelled", self.taker(*consumer)),
            Effect::Served { consumer } => format!("{} served", self.taker(*consumer)),
            Effect::Released(_) | Effect::Shared(_) | Effect::Forgotten { .. } => return None,
        })
    }

    fn taker(&self, id: ConsumerId) -> String {
        self.takers.iter().find(|(_, other)| **other == id).expect("somebody is named").0.clone()
    }
}

fn consume(words: &[&str], consumer: ConsumerId, queue: std::sync::Arc<str>) -> Consume {
    let urgent = key(words, "urgent").and_then(|urgent| urgent.split_once('+'));
    let urgent = urgent.map(|(at, extra)| UrgentCredit {
        at: Priority(at.parse().expect("a priority")),
        extra: extra.parse().expect("how many"),
    });
    Consume {
        window: number(words, "window"),
        shared: key(words, "shared").map(|_| WINDOW),
        urgent,
        priority: number(words, "first").unwrap_or(0),
        exclusive: words.contains(&"exclusive"),
        no_ack: words.contains(&"no-ack"),
        ..Consume::new(consumer, queue)
    }
}

fn pull(words: &[&str], consumer: ConsumerId, queue: std::sync::Arc<str>, until: Time) -> Pull {
    let except = key(words, "except").map(|names| names.split('/').map(Into::into).collect());
    Pull {
        consumer,
        queue,
        max: number(words, "max").unwrap_or(1),
        max_bytes: number(words, "bytes").unwrap_or(0),
        term: number(words, "for").map_or(LeaseTerm::Session, LeaseTerm::Ms),
        lanes: LaneChoice {
            at_least: Priority(number(words, "least").unwrap_or(i32::MIN)),
            except: except.unwrap_or_default(),
            one: words.contains(&"one"),
        },
        until,
    }
}

/// `2 Held from 7 not 4/3 of one lane, 9 bytes`.
fn say_want(want: &Want) -> String {
    let Want { max, max_bytes, terms, choice: LaneChoice { at_least, except, one } } = want;
    let mut said = format!("{max} {terms:?}");
    said += &if *at_least == Priority(i32::MIN) { String::new() } else { format!(" from {}", at_least.0) };
    said += &if except.is_empty() { String::new() } else { format!(" not {}", except.join("/")) };
    said += if *one { " of one lane" } else { "" };
    said + &if *max_bytes == 0 { String::new() } else { format!(" {max_bytes} bytes") }
}

#[test]
fn a_consumer_holds_as_many_as_its_window_and_gets_more_when_one_is_settled() {
    check(
        "",
        "consume w window=2 · put a b c · who b · done a · who a · wants",
        expect!["w:a w:b · w · w:c · nobody · "],
    );
}

#[test]
fn consumers_take_turns_and_the_more_important_comes_first() {
    check(
        "",
        "put a b c d e · consume v window=2 · consume w window=2 · consume x window=1 first=1",
        expect!["v:a v:b · w:c w:d · x:e"],
    );
    check(
        "",
        "consume v window=2 · consume w window=2 · consume x window=1 first=1 · put a b c d e f",
        expect!["x:a v:b w:c v:d w:e"],
    );
}

#[test]
fn urgent_credit_is_for_urgent_messages_only() {
    check(
        "",
        "consume w window=1 urgent=7+1 · put a:5 · wants · put b:6 · put c:9 · wants · done a",
        expect!["w:a · 1 Held from 7 · w:c · "],
    );
}

/// Whoever goes before others and finds nothing leaves them their part of the window.
#[test]
fn one_who_waits_for_more_urgent_messages_does_not_stand_in_the_way() {
    check(
        "",
        "window 1 · consume v window=1 shared=1 urgent=3+2 · put a · consume w window=1 shared=1 urgent=8+2 · put b:5 · wants · put c:5",
        expect!["v:a · v:b · 1 Held from 8, 1 Held from 3 · v:c"],
    );
}

#[test]
fn a_window_is_shared_over_queues() {
    check(
        "",
        "window 2 · consume v shared=1 · in r · consume w shared=1 · put a b c · in q · put d · wants · done a · drop q",
        expect!["w:a w:b ·  · v:d · v cancelled w:c"],
    );
}

#[test]
fn what_is_not_acknowledged_is_given_for_good_up_to_what_is_not_read() {
    check(
        "",
        "consume w window=2 no-ack · put a b c · who a · took w 1 · wants",
        expect!["w:a w:b · nobody · w:c · "],
    );
}

#[test]
fn a_pull_takes_from_its_lanes_up_to_its_bytes_and_is_over() {
    check("", "put a:9:5 b:8:5 c:7:5 · pull p max=3 bytes=10 · who a", expect!["p:a p:b p served · p"]);
    check(
        "",
        "put a:9 b:8 c:4 d:3 · pull p max=3 least=4 except=9 for=50 · who b · +50ms · get g",
        expect!["p:b p:c p served · nobody · g:a"],
    );
    check("", "put a:9 b:8 · pull p max=2 one · pull o max=2 for=0", expect!["p:a p served · o:b o served"]);
    check(
        "",
        "pull p max=3 bytes=9 least=5 except=4/3 one · pull o max=2 for=7 · pull n max=2 for=7 · wants",
        expect!["3 Held from 5 not 4/3 of one lane 9 bytes, 4 Ms(7)"],
    );
}

#[test]
fn what_takers_of_one_message_each_want_is_asked_for_together() {
    check(
        "",
        "pull p max=1 bytes=9 for=7 · pull o max=1 bytes=5 for=7 one · pull n max=1 for=7 · pull m max=2 bytes=9 for=7 · wants · put a:5:20 b:9:20 c:7:20",
        expect!["3 Ms(7), 2 Ms(7) 9 bytes · p:b o:c n:a p served o served n served"],
    );
}

#[test]
fn a_pull_gives_up_when_it_has_waited_long_enough() {
    check("", "pull p wait=50 · +49ms · +1ms · put a · wants", expect!["p served · "]);
}

#[test]
fn who_holds_something_for_too_long_gives_it_back_and_takes_nothing_more() {
    check(
        r#""consumer_timeout_ms":50"#,
        "consume w window=1 · put a · +50ms · consume v · cancel w",
        expect!["w:a · w timed out a is back, Expired · v:a(2)"],
    );
}

#[test]
fn what_a_session_holds_goes_back_when_it_ends() {
    check(
        "",
        "put a b c d e · consume w window=1 · pull p · get g · pull o for=90 · end · get h",
        expect![
            "w:a · p:b p served · g:c · o:d o served · w cancelled a is back, Lost b is back, Lost c is back, Lost · h:a(2)"
        ],
    );
}

#[test]
fn one_who_is_cancelled_gives_back_and_one_who_leaves_keeps() {
    check(
        "",
        "put a b · consume w window=1 · consume v window=1 · leave w · cancel v · who a · done a · who a",
        expect!["w:a · v:b · b is back, Lost · w · nobody"],
    );
}

#[test]
fn of_consumers_one_alone_is_active_if_it_says_so() {
    check(
        r#""single_active_consumer":true"#,
        r#"put a b c · consume v window=1 · consume w window=1 · cancel v · settings · consume x window=1 · settings "single_active_consumer":true · wants"#,
        expect!["v:a · a is back, Lost w:a(2) · x:b · "],
    );
    check("", "consume v exclusive · consume w · cancel v · consume w", expect!["no: consumer-exclusive"]);
}

#[test]
fn a_get_holds_what_it_got_until_that_is_settled() {
    check(
        "",
        "put a b · get g · who a · get h no-ack · who b · done a · who a",
        expect!["g:a · g · h:b · nobody · nobody"],
    );
}

#[test]
fn when_the_queue_is_gone_so_are_its_takers_and_nothing_goes_back() {
    check(
        "",
        "put a · consume w · pull p · drop q · who a",
        expect!["w:a · w cancelled p cancelled · nobody"],
    );
    check("", "own s · in s · put a · consume w · end", expect!["w:a · w cancelled a is back, Lost"]);
}

#[test]
fn what_is_held_stands_in_the_lanes_of_now() {
    check(
        "",
        r#"put a:9 b:1 · consume w · settings "order":"fifo" · done a · cancel w"#,
        expect!["w:a w:b · b is back, Lost"],
    );
}

#[test]
fn what_nobody_takes_any_more_is_answered_and_not_kept() {
    let mut stage = Stage::new("");
    stage.act("consume w window=3");
    let mut kept = Elsewhere::default();
    for seq in [7, 7, 8, 9] {
        kept.store(START, Seq(seq), 4, 0);
    }
    let mut hand = |terms: Terms, leased: Vec<_>| {
        let untaken = stage.broker.hand(START, QueueId(0), leased, terms, &mut Step::default());
        untaken.to_vec()
    };
    let want = Want { max: 9, max_bytes: 0, terms: Terms::Held, choice: LaneChoice::default() };
    let leased = kept.lease(START, &want);
    assert_eq!(hand(Terms::Settled, leased.clone()), [0, 1, 2, 3], "nobody takes on these terms");
    assert_eq!(hand(Terms::Held, leased[..1].to_vec()), [0_usize; 0]);
    assert_eq!(
        hand(Terms::Held, leased.clone()),
        [0, 3],
        "one is held already, and for one there is no room"
    );
    let receipt = |at: usize| Receipt { queue: QueueId(0), seq: leased[at].0.seq, lease: leased[at].1 };
    let holders = [0, 1, 2, 3].map(|at| stage.broker.holder_of(&receipt(at)));
    let w = Some(ConsumerId(1));
    assert_eq!(holders, [w, w, w, None], "two have the same sequence, from different places");
    assert_eq!(stage.broker.hand(START, QueueId(9), leased, Terms::Held, &mut Step::default()).len(), 4);
}

#[test]
fn a_command_that_settles_knows_nothing_of_what_is_kept_elsewhere() {
    let mut stage = Stage::new("");
    stage.act("put a");
    stage.act("consume w");
    let receipts = vec![stage.receipts["a"]];
    let settle = Command::Settle { receipts: receipts.clone(), outcome: overtake_lane::Outcome::Ack };
    let reply = stage.broker.apply(START, settle, &mut Step::default());
    let stale = std::iter::once(Err(Refusal::StaleReceipt)).collect();
    assert_eq!(reply, Ok(overtake_lane::Reply::Each(stale)));
    let other = Receipt { lease: LeaseId(99), ..receipts[0] };
    assert!(!stage.broker.settled(START, &other, &mut Step::default()));
    assert!(stage.broker.settled(START, &receipts[0], &mut Step::default()));
}

#[test]
fn consumers_who_have_it_on_other_terms_take_turns() {
    check(
        "",
        "consume v window=3 · consume w window=2 no-ack · wants · put a b c d e f",
        expect!["1 Held, 1 Settled, 1 Held, 1 Settled, 1 Held · v:a w:b v:c w:d v:e"],
    );
}
