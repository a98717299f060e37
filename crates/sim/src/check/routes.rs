//! *Kept*, of routes: those hold that were set last, whole, after every crash, too, and go with their virtual host. *Routed*: what is
//! published into them goes into the queues that they say, once into each, as urgent as they say.

use std::collections::{BTreeMap, VecDeque};

use overtake_engine::core::{Answer, Core, Out, Request};
use overtake_engine::{NewMessage, PublishedCopy, Refused};
use overtake_lane::{Asker, Broker, Message, Part, QueueId, Refusal, Scheme, Settings, Time, VhostId};
use overtake_routes::Manifest;

use crate::book::{Book, asked_by};
use crate::check::route_counts::RouteCounts;
use crate::check::{Step, route};
use crate::failure::{Checked, Promise, broken, hold};
use crate::routed::{Copy, Urgency, copies, endpoint, is_mandatory, is_routed};

/// The routes of virtual hosts; one that is not among them has none.
type All = BTreeMap<VhostId, Manifest>;

/// What a step does to them.
#[derive(Clone, Debug)]
enum Change {
    Sets(VhostId, Manifest),
    /// A virtual host goes, and its routes with it.
    Drops(VhostId),
}

impl Change {
    fn apply(&self, all: &mut All) {
        match self {
            Self::Sets(vhost, manifest) if *manifest == Manifest::default() => drop(all.remove(vhost)),
            Self::Sets(vhost, manifest) => drop(all.insert(*vhost, manifest.clone())),
            Self::Drops(vhost) => drop(all.remove(vhost)),
        }
    }
}

/// What was set.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// As of the last change that was confirmed.
    confirmed: All,
    /// Changes that were done since, in order, each under its ticket.
    done: VecDeque<(u64, Change)>,
    /// As of the last change that was done.
    now: All,
    counted: RouteCounts,
    /// How much of what was seen.
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl Routes {
    fn count(&mut self, what: &'static str, more: u64) {
        *self.counts.entry(what).or_default() += more;
    }

    fn of(&self, vhost: VhostId) -> Manifest {
        self.now.get(&vhost).cloned().unwrap_or_default()
    }

    /// After a step: routes that were set and refused are as they were before, and those of a virtual host that is gone are gone.
    /// That those hold which were not refused is seen when somebody looks, publishes, or starts the engine again.
    pub(crate) fn changed(
        &mut self,
        core: &mut Core<u64>,
        ticket: u64,
        request: &Request,
        result: Option<&Result<Answer, Refused>>,
    ) -> Checked {
        let (Asker { vhost, .. }, request) = asked_by(request);
        self.came(vhost, request, result);
        let is_there = |vhost: &VhostId| core.broker().vhost_name(*vhost).is_some();
        let gone: Vec<VhostId> = self.now.keys().filter(|vhost| !is_there(vhost)).copied().collect();
        for vhost in &gone {
            self.does(ticket, Change::Drops(*vhost));
            let left = core.broker().metadata().find(|(key, _)| is_of(key, *vhost));
            hold(left.is_none(), Promise::Gone, || {
                format!("of routes of virtual host {}, which is gone, {left:?} is left", vhost.0)
            })?;
        }
        self.count("gone with their virtual host", gone.len() as u64);
        if let Request::SetRoutes(set) = request {
            let sets = Change::Sets(vhost, set.manifest().clone());
            match result {
                Some(Ok(_)) => {
                    hold(is_there(&vhost), Promise::Kept, || {
                        format!("routes were set in virtual host {}, which is not there", vhost.0)
                    })?;
                    self.does(ticket, sets);
                    return Ok(());
                }
                None => {
                    return broken(Promise::Alive, "routes were set and not answered");
                }
                Some(Err(_)) => self.count("refused to be set", 1),
            }
        } else if gone.is_empty() {
            return Ok(());
        }
        let there = there(core);
        hold(there == self.now, Promise::Kept, || {
            format!("there are the routes {there:?}, set were {:?}", self.now)
        })
    }

    /// What is published is counted, by all the routes there are.
    fn came(&mut self, vhost: VhostId, request: &Request, result: Option<&Result<Answer, Refused>>) {
        let messages = match request {
            Request::Publish { messages, .. } => &messages[..],
            Request::PublishOne(message) => std::slice::from_ref(&**message),
            _ => return,
        };
        let manifest = self.of(vhost);
        for message in messages.iter().filter(|message| is_routed(message)) {
            self.counted.came(vhost, &manifest, message, matches!(result, Some(Ok(_))));
        }
    }

    fn does(&mut self, ticket: u64, change: Change) {
        match &change {
            Change::Sets(vhost, manifest) => self.counted.set(*vhost, &self.of(*vhost), manifest),
            Change::Drops(vhost) => self.counted.dropped(*vhost),
        }
        change.apply(&mut self.now);
        self.count("set", u64::from(matches!(change, Change::Sets(..))));
        self.done.push_back((ticket, change));
    }

    /// A change is confirmed, and with it those before it.
    pub(crate) fn told(&mut self, ticket: u64) {
        if let Some(at) = self.done.iter().rposition(|(done, _)| *done == ticket) {
            for (_, change) in self.done.drain(..=at) {
                change.apply(&mut self.confirmed);
            }
        }
    }

    /// What is there after a crash is what was confirmed, and some that was set then, in order and each whole.
    pub(crate) fn recovered(&mut self, core: &mut Core<u64>) -> Checked {
        let there = there(core);
        let confirmed = self.confirmed.clone();
        let mut done = self.done.drain(..);
        while self.confirmed != there
            && let Some((_, change)) = done.next()
        {
            change.apply(&mut self.confirmed);
        }
        drop(done);
        self.now = self.confirmed.clone();
        self.counted.recovered();
        self.count("found after a start", there.len() as u64);
        hold(self.now == there, Promise::Kept, || {
            format!("after a crash there are the routes {there:?}, confirmed were {confirmed:?}")
        })
    }

    /// Somebody looks.
    pub(crate) fn check_shown(&mut self, step: &Step<'_>) -> Checked {
        let Some(Ok(Answer::Routes(view))) = step.result else { return Ok(()) };
        self.count("looked at", 1);
        let (shown, set) = (view.set.manifest(), self.of(step.vhost));
        hold(*shown == set, Promise::Kept, || {
            format!("virtual host {} shows the routes {shown:?}, set were {set:?}", step.vhost.0)
        })?;
        self.counted.check(step.vhost, view)
    }

    // ---- what is published into them ----

    /// What was answered to whoever published: who gets a copy, that nobody else has one, and that a message of which nobody does is
    /// refused where it must not be lost.
    pub(crate) fn check_published(&mut self, broker: &Broker, step: &Step<'_>) -> Checked {
        let (messages, result) = match (step.request, step.result) {
            (Some(Request::Publish { messages, .. }), Some(result)) => (&messages[..], result),
            (Some(Request::PublishOne(message)), Some(result)) => (std::slice::from_ref(&**message), result),
            _ => return Ok(()),
        };
        for (at, message) in messages.iter().enumerate().filter(|(_, message)| is_routed(message)) {
            let copies = copies(&self.of(step.vhost), message);
            let (there, gone): (Vec<&Copy>, Vec<&Copy>) =
                copies.iter().partition(|copy| broker.id_of(step.vhost, &copy.queue).is_ok());
            match result {
                Ok(answer) => check_taken(broker, step, message, answer, at, &there)?,
                Err(refused) => check_refused(messages.len(), message, *refused, at, &there)?,
            }
            self.count_published(result, &there, gone.len());
        }
        if result.is_err() && messages.iter().any(is_routed) {
            return check_none(step);
        }
        Ok(())
    }

    fn count_published(&mut self, result: &Result<Answer, Refused>, there: &[&Copy], gone: usize) {
        let Ok(_) = result else { return self.count("messages refused", 1) };
        let of = |is: fn(&Copy) -> bool| there.iter().filter(|copy| is(copy)).count() as u64;
        for (what, more) in [
            ("messages", 1),
            ("messages for nobody", u64::from(there.is_empty())),
            ("copies", there.len() as u64),
            ("copies by fallback", of(|copy| copy.is_fallback)),
            ("copies at a level", of(|copy| matches!(copy.urgency, Urgency::Level(Some(_))))),
            ("copies with a time to live", of(|copy| copy.ttl_ms.is_some())),
            ("copies left out", gone as u64),
        ] {
            self.count(what, more);
        }
    }

    /// The copy of a message that a queue was to get; `None`: the message is none for routes.
    pub(crate) fn copy_for(
        &self,
        vhost: VhostId,
        queue: &str,
        message: &NewMessage,
    ) -> Checked<Option<Copy>> {
        if !is_routed(message) {
            return Ok(None);
        }
        let copy = copies(&self.of(vhost), message).into_iter().find(|copy| copy.queue == queue);
        match copy {
            Some(copy) => Ok(Some(copy)),
            None => {
                broken(Promise::Routed, format!("routes put a copy into {queue}, which they do not name"))
            }
        }
    }
}

/// A copy as it stands in its queue is as urgent as its route says.
pub(crate) fn check_urgency(copy: &Copy, settings: &Settings, asked: &NewMessage, is: &Message) -> Checked {
    let expected = copy.priority(settings, &asked.priority);
    hold(expected == Ok(is.priority), Promise::Routed, || {
        format!("a copy in {} is at {:?}, and {expected:?} by {copy:?}", copy.queue, is.priority)
    })
}

/// Queues of endpoints are there once routes are set, and those that were made for them are as is said of them.
pub(crate) fn check_endpoints(broker: &Broker, step: &Step<'_>) -> Checked {
    let (Some(Request::SetRoutes(set)), Some(result)) = (step.request, step.result) else { return Ok(()) };
    let made = Settings { scheme: Scheme::Route, ..Settings::default() };
    for name in set.manifest().routes.iter().filter_map(|route| endpoint(&route.route.sink)) {
        let own = broker.own_settings(step.vhost, name);
        let was_there = step.before.named(step.vhost, name).is_some();
        let is_right = own.map_or(result.is_err(), |own| was_there || *own == made);
        hold(is_right, Promise::Kept, || format!("the endpoint {name} of routes is {own:?}"))?;
    }
    Ok(())
}

impl Book {
    /// Routes were set, or refused half-way: queues of endpoints may be there now that nobody declared.
    pub(crate) fn endpoints_made(&mut self, broker: &Broker, step: &Step<'_>) {
        let Some(Request::SetRoutes(set)) = step.request else { return };
        for name in set.manifest().routes.iter().filter_map(|route| endpoint(&route.route.sink)) {
            let Ok(id) = broker.id_of(step.vhost, name) else { continue };
            let settings = Settings { scheme: Scheme::Route, ..Settings::default() };
            self.finds(id, step.vhost, name.into(), settings);
        }
    }
}

fn check_taken(
    broker: &Broker,
    step: &Step<'_>,
    message: &NewMessage,
    answer: &Answer,
    at: usize,
    there: &[&Copy],
) -> Checked {
    let is_alone = match step.request {
        Some(Request::Publish { messages, settlements }) => messages.len() == 1 && settlements.is_empty(),
        _ => true,
    };
    let mut expected: Vec<&str> = there.iter().map(|copy| &*copy.queue).collect();
    expected.sort_unstable();
    let is_right = match answer {
        Answer::Copies(copies) => {
            let of_it = copies.iter().filter(|copy| copy.publish == at);
            let mut told: Vec<&str> = of_it.map(|copy: &PublishedCopy| &*copy.queue).collect();
            told.sort_unstable();
            told == expected || (is_alone && route::are_all(broker, step, message, &expected, &told))
        }
        Answer::Count(count) => route::is_count(broker, step, message, &expected, *count),
        _ => false,
    };
    hold(is_right, Promise::Routed, || {
        format!("routes make copies of {:?} for {expected:?}, the answer is {answer:?}", message.to)
    })?;
    hold(!expected.is_empty() || !is_mandatory(message), Promise::Routed, || {
        format!("a message to {:?} that nobody gets was taken", message.to)
    })
}

/// What is refused for having no queue has none. Of several messages it is said which.
fn check_refused(
    messages: usize,
    message: &NewMessage,
    refused: Refused,
    at: usize,
    there: &[&Copy],
) -> Checked {
    let Refused { refusal, part } = refused;
    let is_of_it = messages == 1 || part == Some(Part::Publish(at));
    let is_right = match refusal {
        Refusal::Unroutable if is_of_it => is_mandatory(message) && there.is_empty(),
        Refusal::NoSuchQueue | Refusal::NoSuchExchange => !is_of_it,
        _ => true,
    };
    hold(is_right, Promise::Routed, || {
        format!("a message to {:?} is refused as {refusal:?}, routes make {there:?} of it", message.to)
    })
}

/// Of what was refused nothing came, but what its queue keeps of it as a dead letter.
fn check_none(step: &Step<'_>) -> Checked {
    let came: Option<(QueueId, &Message)> = step.arrivals().find(|(_, message)| message.death().is_none());
    hold(came.is_none(), Promise::Routed, || format!("all was refused, and {came:?} came"))
}

/// Whether a key of metadata is of routes, which have them to last.
pub(crate) fn is_of_routes(key: &str) -> bool {
    key.starts_with("routes/")
}

/// Whether it is of those of this virtual host.
fn is_of(key: &str, vhost: VhostId) -> bool {
    is_of_routes(key) && key.split('/').nth(1) == Some(&*vhost.0.to_string())
}

/// The routes of an engine, as whoever asks in each virtual host is shown them.
fn there(core: &mut Core<u64>) -> All {
    let vhosts: Vec<VhostId> = core.broker().vhosts().map(|view| view.vhost).collect();
    for vhost in &vhosts {
        let request = Request::By { asker: Asker::in_vhost(*vhost), request: Box::new(Request::Routes) };
        // So early that no time passes.
        core.handle(Time(0), request, 0);
    }
    let shown = core.take_outs().into_iter().map(|out| match out {
        Out::Answer { result: Ok(Answer::Routes(view)), .. } => view.set.manifest().clone(),
        other => unreachable!("who only looks at routes is shown them, not {other:?}"),
    });
    let all = vhosts.into_iter().zip(shown);
    all.filter(|(_, manifest)| *manifest != Manifest::default()).collect()
}
