//! Publishing: where copies go, and all of them or none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use overtake_engine::core::Answer;
use overtake_engine::{Content, Failure, NewMessage, PublishedCopy, ROUTES_EXCHANGE, Refused, Target};
use overtake_lane::{
    Address, Asker, Copy, Outcome, Overflow, Part, Place, PlaceNumber, Publish, QueueId, Receipt, Refusal,
    public_id,
};
use tokio::time::Instant;

use super::House;
use super::hosted::{Hosted, deadline, failure};
use crate::functions::{
    Abort, Admission, Admit, Admitted, AtFault, Commit, Decide, Decision, Leasing, Offer, Parts, Prepare,
    Transact,
};
use crate::places::{Given, together};

/// Most messages of one call.
const BATCH_MAX: usize = 200;
/// Most bytes of content that are published in one step.
const TRANSACTION_BYTES_MAX: usize = 32 << 20;
/// When the end of a transaction over several places is overdue, ms.
const OVERDUE_MS: u64 = 30_000;

/// A message as its publisher means it.
struct Letter {
    publish: Publish,
    content: Bytes,
}

/// What each place admitted, in the order in which it was asked to.
type Told = BTreeMap<(QueueId, PlaceNumber), Vec<Option<Admitted>>>;

/// A copy of a message, and where it goes.
#[derive(Clone)]
struct Routed {
    hosted: Arc<Hosted>,
    place: PlaceNumber,
    admission: Admission,
}

/// Whose turn it is at each queue in one step: what comes together stays together, as far as it may go anywhere.
type Turns = BTreeMap<QueueId, u64>;

/// Messages for one place, and which of all those are.
struct Batch {
    hosted: Arc<Hosted>,
    at: Vec<usize>,
    messages: Vec<Admission>,
}

/// What a place does of a transaction, and which parts of the whole those are.
struct Share {
    hosted: Arc<Hosted>,
    parts: Parts,
    publishes: Vec<usize>,
    settlements: Vec<usize>,
}

impl Share {
    /// A fault of this share as one of the whole.
    fn fault(&self, fault: AtFault) -> Refused {
        let part = match fault.part {
            Part::Publish(at) => self.publishes.get(at).map(|at| Part::Publish(*at)),
            Part::Settlement(at) => self.settlements.get(at).map(|at| Part::Settlement(*at)),
        };
        Refused { refusal: fault.why.0, part }
    }
}

impl House {
    /// Puts a message into the words of the model.
    fn letter(&self, asker: Asker, message: NewMessage) -> Letter {
        let NewMessage { to, sender, priority, id, origin, key, key_weight, ttl_ms, delay_ms, mut content } =
            message;
        content.ttl_ms = ttl_ms;
        if content.route.keys.is_empty() {
            content.route = to.route();
        }
        let bytes = u32::try_from(content.size()).unwrap_or(u32::MAX);
        let mut written = Vec::with_capacity(content.size() + 64);
        content.encode(&mut written);
        let to = match to {
            Target::Queue(name) => Address::Queue(name),
            Target::Exchange { name, routing_key, more_keys, mandatory } if *name == *ROUTES_EXCHANGE => {
                let paths = [&routing_key].into_iter().chain(&more_keys).map(|path| &**path);
                let said = (&content, &sender, self.now());
                Address::Copies { copies: self.routes().copies(asker.vhost, paths, said), mandatory }
            }
            Target::Exchange { name, routing_key, more_keys, mandatory } => {
                let marks = Arc::<Content>::new(content);
                Address::Exchange { name, routing_key, more_keys, marks, mandatory }
            }
        };
        let (id, origin, key) = (id.map(Into::into), origin.map(Box::new), key.map(Into::into));
        let place = Place::default();
        let publish = Publish {
            to,
            priority,
            id,
            origin,
            key,
            key_weight,
            ttl_ms,
            base_ttl_ms: None,
            delay_ms,
            bytes,
            place,
        };
        Letter { publish, content: written.into() }
    }

    /// Where the copies of a message go; `turns` are those of the queues that others of the same step went to.
    async fn route(&self, asker: Asker, letter: Letter, turns: &mut Turns) -> Result<Vec<Routed>, Failure> {
        let Letter { publish, content } = letter;
        let copies = self.definitions.with(|broker| broker.copies(asker, &publish))?;
        let mut routed = Vec::with_capacity(copies.len());
        for Copy { queue, priority, original, ttl_ms, delay_ms } in copies {
            let hosted = self.hosted(queue).await?;
            let admission = Admission {
                priority,
                original,
                id: publish.id.clone(),
                origin: publish.origin.clone(),
                key: publish.key.clone(),
                key_weight: publish.key_weight,
                ttl_ms,
                // What the queue says is in it already.
                base_ttl_ms: Some(0),
                delay_ms,
                bytes: publish.bytes,
                content: content.clone(),
                at: (!hosted.is_whole()).then(|| self.comes_at()),
                arrival: None,
            };
            let turn = *turns.entry(queue).or_insert_with(|| hosted.next_turn());
            let place = hosted.place_of(&admission, turn);
            if hosted.places().is_full(place) {
                return Err(Refusal::StoreFull.into());
            }
            routed.push(Routed { place, hosted, admission });
        }
        Ok(routed)
    }

    /// Publishes messages, each for itself, in this order as far as they go to the same queues. Answers how many copies of each there are now.
    pub(super) async fn publish_each(
        &self,
        asker: Asker,
        messages: Vec<NewMessage>,
    ) -> Vec<Result<Answer, Failure>> {
        let mut answers: Vec<Option<Result<Answer, Failure>>> = vec![None; messages.len()];
        let mut batch: Vec<(usize, Routed)> = Vec::new();
        let mut turns = Turns::new();
        for (at, message) in messages.into_iter().enumerate() {
            match self.route(asker, self.letter(asker, message), &mut turns).await {
                Err(why) => answers[at] = Some(Err(why)),
                Ok(mut copies) if copies.len() == 1 && !copies[0].is_offered(self) => {
                    batch.extend(copies.pop().map(|copy| (at, copy)));
                }
                Ok(mut copies) if copies.len() == 1 => {
                    self.admit(std::mem::take(&mut batch), &mut answers).await;
                    let copy = copies.pop().expect("there is one");
                    answers[at] = Some(self.offer(copy).await.map(|_| Answer::Count(1)));
                }
                Ok(copies) => {
                    self.admit(std::mem::take(&mut batch), &mut answers).await;
                    let done = self.publish_copies(copies, false).await;
                    answers[at] = Some(done.map(|(kept, _)| Answer::Count(kept.len() as u64)));
                }
            }
        }
        self.admit(batch, &mut answers).await;
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(unsaid("it was not done")))).collect()
    }

    /// Admits copies of messages that have one each.
    async fn admit(&self, batch: Vec<(usize, Routed)>, answers: &mut [Option<Result<Answer, Failure>>]) {
        let mut by_place: BTreeMap<(QueueId, PlaceNumber), Batch> = BTreeMap::new();
        for (at, Routed { hosted, place, admission }) in batch {
            let queue = hosted.queue;
            let new = || Batch { hosted, at: Vec::new(), messages: Vec::new() };
            let there = by_place.entry((queue, place)).or_insert_with(new);
            there.at.push(at);
            there.messages.push(admission);
        }
        let calls = by_place.into_iter().map(|((_, place), Batch { hosted, at, mut messages })| async move {
            let mut told = Vec::with_capacity(messages.len());
            while !messages.is_empty() {
                let rest = messages.split_off(messages.len().min(BATCH_MAX));
                let admit = Admit { messages: std::mem::replace(&mut messages, rest), tells: false };
                let asked = admit.messages.len();
                match hosted.ask(place, &admit).await {
                    Ok(each) => told.extend(each.into_iter().map(|one| match one {
                        Ok(_) => Ok(Answer::Count(1)),
                        Err(declined) => Err(Failure::from(declined.0)),
                    })),
                    Err(why) => told.extend(std::iter::repeat_n(Err(why), asked)),
                }
            }
            (at, told)
        });
        for (at, told) in together(calls).await {
            for (at, told) in at.into_iter().zip(told) {
                answers[at] = Some(told);
            }
        }
    }

    /// Publishes and settles, all or none.
    pub(super) async fn transact(
        &self,
        asker: Asker,
        messages: Vec<NewMessage>,
        settlements: Vec<(Receipt, Outcome)>,
    ) -> Result<Answer, Failure> {
        check_size(&messages)?;
        let is_one = messages.len() == 1 && settlements.is_empty();
        let mut routed = Vec::with_capacity(messages.len());
        let mut turns = Turns::new();
        for (at, message) in messages.into_iter().enumerate() {
            let copies = self.route(asker, self.letter(asker, message), &mut turns).await;
            let at_fault = |failure| part_of(failure, Part::Publish(at));
            routed.extend(copies.map_err(at_fault)?.into_iter().map(|copy| (at, copy)));
        }
        if is_one && routed.len() == 1 {
            let (_, copy) = routed.pop().expect("there is one");
            let done = self.publish_alone(copy).await;
            return done.map(Answer::Copies).map_err(|failure| part_of(failure, Part::Publish(0)));
        }
        if is_one {
            let copies = routed.into_iter().map(|(_, copy)| copy).collect();
            let done = self.publish_copies(copies, true).await;
            let (kept, told) = done.map_err(|failure| part_of(failure, Part::Publish(0)))?;
            return Ok(Answer::Copies(copies_told(kept.iter().map(|copy| (0, copy)), told)));
        }
        let order: Vec<(usize, Routed)> = routed.iter().map(|(at, copy)| (*at, copy.bare())).collect();
        let mut all = shares(routed);
        let mut seen = std::collections::BTreeSet::new();
        for (at, (receipt, outcome)) in settlements.iter().enumerate() {
            let stale = || Refused { refusal: Refusal::StaleReceipt, part: Some(Part::Settlement(at)) };
            if !seen.insert(*receipt) {
                return Err(Failure::Refused(stale()));
            }
            let hosted = self.here(asker, receipt.queue).await?.ok_or_else(|| Failure::Refused(stale()))?;
            let (place, seq) = hosted.find(receipt.seq).ok_or_else(|| Failure::Refused(stale()))?;
            let share = all.entry((hosted.queue, place)).or_insert_with(|| Share::of(hosted));
            share.parts.settlements.push((*outcome, seq, receipt.lease));
            share.settlements.push(at);
        }
        let told = self.transact_shares(all, true).await?;
        self.is_settled(settlements.into_iter().map(|(receipt, _)| receipt));
        Ok(Answer::Copies(copies_told(order.iter().map(|(at, copy)| (*at, copy)), told)))
    }

    /// Publishes the copies of one message. A queue that is full and evicts leaves its copy out and keeps the message from no
    /// other; a message that no queue keeps is refused. Answers the copies that are kept, and what their places admitted.
    async fn publish_copies(&self, copies: Vec<Routed>, tells: bool) -> Result<(Vec<Routed>, Told), Failure> {
        let mut kept = copies;
        loop {
            let copies = kept.iter().map(|copy| (0, copy.clone()));
            match self.try_shares(shares(copies), tells).await {
                Ok(told) => return Ok((kept.iter().map(Routed::bare).collect(), told)),
                Err((
                    Some((queue, place)),
                    Failure::Refused(Refused { refusal: Refusal::QueueFull, .. }),
                )) if kept.len() > 1
                    && kept.iter().any(|copy| copy.is_at(queue, place) && copy.is_evicted_in_vain()) =>
                {
                    kept.retain(|copy| !copy.is_at(queue, place));
                }
                Err((_, why)) => return Err(why),
            }
        }
    }

    /// Publishes the only copy of a message.
    async fn publish_alone(&self, copy: Routed) -> Result<Vec<PublishedCopy>, Failure> {
        let (hosted, place) = (Arc::clone(&copy.hosted), copy.place);
        let bare = Admission { content: Bytes::new(), ..copy.admission.clone() };
        let admitted = if copy.is_offered(self) {
            self.offer(copy).await?
        } else {
            let admit = Admit { messages: vec![copy.admission], tells: hosted.is_whole() };
            let told = hosted.ask(place, &admit).await?.into_iter().next();
            told.ok_or_else(|| unsaid("the place answers nothing"))?
                .map_err(|declined| Failure::from(declined.0))?
        };
        let Some(admitted) = admitted else { return Ok(Vec::new()) };
        let mut published = copy_of(0, &hosted, place, &bare, &admitted);
        if admitted.duplicate
            && let Some(there) = self.view_at(&hosted, published.seq).await?
        {
            published.priority = there.priority;
        }
        Ok(vec![published])
    }

    /// Publishes a message that is over at once to somebody of this process who takes it, if its turn comes.
    async fn offer(&self, copy: Routed) -> Result<Option<Admitted>, Failure> {
        let Routed { hosted, place, admission } = copy;
        let _turn = hosted.turn.lock().await;
        let wants = self.floor().wants(hosted.queue);
        let Some(want) = wants.first() else {
            let admit = Admit { messages: vec![admission], tells: false };
            let told = hosted.ask(place, &admit).await?.into_iter().next();
            let told = told.ok_or_else(|| unsaid("the place answers nothing"))?;
            return told.map_err(|declined| Failure::from(declined.0));
        };
        let Leasing { term_ms, holder, choice, .. } = self.leasing(&hosted, want);
        let _under_way = hosted.under_way.begin();
        let asked = Instant::now();
        let offer = Offer { term_ms, holder, floor: choice.floor, message: admission };
        let (admitted, shown) = hosted.ask(place, &offer).await?;
        let given = shown.into_iter().map(|shown| Given { place, shown }).collect();
        let gifts = self.gifts(&hosted, given)?;
        self.hand(&hosted, &gifts, want.terms, asked);
        admitted.map_err(|declined| Failure::from(declined.0))
    }

    /// Does the shares of a transaction, all or none. Answers what each place admitted.
    async fn transact_shares(
        &self,
        shares: BTreeMap<(QueueId, PlaceNumber), Share>,
        tells: bool,
    ) -> Result<Told, Failure> {
        self.try_shares(shares, tells).await.map_err(|(_, why)| why)
    }

    /// As [`Self::transact_shares`]; a failure names the place that refused, if it was one.
    async fn try_shares(
        &self,
        mut shares: BTreeMap<(QueueId, PlaceNumber), Share>,
        tells: bool,
    ) -> Result<Told, (Option<(QueueId, PlaceNumber)>, Failure)> {
        let nowhere = |why: Failure| (None, why);
        if shares.len() <= 1 {
            let Some((at, mut share)) = shares.pop_first() else { return Ok(BTreeMap::new()) };
            let parts = std::mem::take(&mut share.parts);
            let tells = tells && share.hosted.is_whole();
            let told = share.hosted.ask(at.1, &Transact { parts, tells }).await.map_err(nowhere)?;
            return match told {
                Ok(admitted) => Ok(BTreeMap::from([(at, admitted)])),
                Err(fault) => Err((Some(at), Failure::Refused(share.fault(fault)))),
            };
        }
        let name = format!("{}-{}", self.caller, self.transactions.fetch_add(1, Ordering::Relaxed));
        let prepared = together(shares.iter_mut().map(|(at, share)| {
            let parts = std::mem::take(&mut share.parts);
            let prepare = Prepare { name: name.clone(), within_ms: OVERDUE_MS, parts };
            let (share, at) = (&*share, *at);
            async move {
                let prepared = share.hosted.ask(at.1, &prepare).await.map_err(|why| (None, why))?;
                prepared.map_err(|fault| (Some(at), Failure::Refused(share.fault(fault))))
            }
        }))
        .await;
        // Of several parts that cannot be done the first is named.
        let fault = prepared.into_iter().filter_map(Result::err).min_by_key(|(_, failure)| match failure {
            Failure::Refused(Refused { part: Some(Part::Publish(at)), .. }) => (0, *at),
            Failure::Refused(Refused { part: Some(Part::Settlement(at)), .. }) => (1, *at),
            _ => (2, 0),
        });
        let decision = match fault {
            None => self.decide(&name, Decision::Commit).await.map_err(nowhere)?,
            Some(why) => {
                // What was prepared ends now; if not, when that is overdue.
                if self.decide(&name, Decision::Abort).await.is_ok() {
                    let abort = Abort { name };
                    together(shares.iter().map(|((_, place), share)| share.hosted.ask(*place, &abort))).await;
                }
                return Err(why);
            }
        };
        if decision == Decision::Abort {
            let why = "the servers took too long; it was given up";
            return Err(nowhere(Failure::Unavailable(why.into())));
        }
        let commit = |share: &Share| Commit { name: name.clone(), tells: tells && share.hosted.is_whole() };
        let done = together(shares.iter().map(|((_, place), share)| {
            let commit = commit(share);
            async move { share.hosted.ask(*place, &commit).await }
        }))
        .await;
        let admitted = shares.keys().copied().zip(done);
        admitted.map(|(at, admitted)| Ok((at, admitted?))).collect::<Result<_, Failure>>().map_err(nowhere)
    }

    async fn decide(&self, name: &str, decision: Decision) -> Result<Decision, Failure> {
        let call = Decide { name: name.to_owned(), decision }.call();
        let value = self.cluster.call(deadline(), call).await.map_err(|error| failure(error.into()))?;
        Decide::read(&value).map_err(|error| Failure::Unavailable(error.to_string().into()))
    }

    /// Ends transactions at a place whose end is overdue, because whoever began them is gone.
    pub(super) async fn end_overdue(&self, hosted: &Hosted) -> Result<(), Failure> {
        for place in 0..hosted.places().count() {
            for name in hosted.ask(place, &crate::functions::Overdue).await? {
                match self.decide(&name, Decision::Abort).await? {
                    Decision::Commit => drop(hosted.ask(place, &Commit { name, tells: false }).await?),
                    Decision::Abort => hosted.ask(place, &Abort { name }).await?,
                }
            }
        }
        Ok(())
    }
}

impl Routed {
    /// The same without what the message says, for what is told of it.
    fn bare(&self) -> Self {
        let admission = Admission { content: Bytes::new(), ..self.admission.clone() };
        Self { place: self.place, hosted: Arc::clone(&self.hosted), admission }
    }

    fn is_at(&self, queue: QueueId, place: PlaceNumber) -> bool {
        (self.hosted.queue, self.place) == (queue, place)
    }

    /// Whether the queue evicts when it is full, and does nothing more with what it evicts. One that would dead-letter or record the
    /// copy refuses the message instead: a place evicts nothing that it has not taken.
    fn is_evicted_in_vain(&self) -> bool {
        let settings = self.hosted.settings();
        settings.overflow == Overflow::Evict && !settings.dead_letter_evicted && settings.history.is_none()
    }

    /// Whether it is over at once, and somebody of this process may take it.
    fn is_offered(&self, house: &House) -> bool {
        let is_at_once = self.admission.ttl_ms == Some(0) && self.admission.delay_ms == 0;
        is_at_once && !house.floor().wants(self.hosted.queue).is_empty()
    }
}

fn unsaid(why: &str) -> Failure {
    Failure::Unavailable(why.into())
}

/// What one transaction may bring, as the embedded store bounds it.
fn check_size(messages: &[NewMessage]) -> Result<(), Failure> {
    let sizes = messages.iter().map(|message| message.content.size());
    if sizes.clone().sum::<usize>() <= TRANSACTION_BYTES_MAX {
        return Ok(());
    }
    let alone = sizes.clone().position(|size| size > TRANSACTION_BYTES_MAX);
    Err(Failure::Refused(Refused { refusal: Refusal::TooLargeAtOnce, part: alone.map(Part::Publish) }))
}

impl Share {
    fn of(hosted: Arc<Hosted>) -> Self {
        Self { hosted, parts: Parts::default(), publishes: Vec::new(), settlements: Vec::new() }
    }
}

fn shares(copies: impl IntoIterator<Item = (usize, Routed)>) -> BTreeMap<(QueueId, PlaceNumber), Share> {
    let mut all: BTreeMap<(QueueId, PlaceNumber), Share> = BTreeMap::new();
    for (at, Routed { hosted, place, admission }) in copies {
        let share = all.entry((hosted.queue, place)).or_insert_with(|| Share::of(hosted));
        share.parts.messages.push(admission);
        share.publishes.push(at);
    }
    all
}

/// The copies that places admitted, each of the message of this number.
fn copies_told<'r>(copies: impl Iterator<Item = (usize, &'r Routed)>, told: Told) -> Vec<PublishedCopy> {
    let mut told: BTreeMap<_, _> =
        told.into_iter().map(|(place, admitted)| (place, admitted.into_iter())).collect();
    let copies = copies.filter_map(|(publish, Routed { hosted, place, admission })| {
        // One that its producer had numbered, and that was taken before, has no copy.
        let admitted = told.get_mut(&(hosted.queue, *place))?.next()??;
        Some(copy_of(publish, hosted, *place, admission, &admitted))
    });
    copies.collect()
}

fn part_of(failure: Failure, part: Part) -> Failure {
    match failure {
        Failure::Refused(refused) => Failure::Refused(Refused { part: Some(part), ..refused }),
        other => other,
    }
}

fn copy_of(
    publish: usize,
    hosted: &Hosted,
    place: PlaceNumber,
    admission: &Admission,
    admitted: &Admitted,
) -> PublishedCopy {
    let seq = hosted.known_as(place, admitted.seq);
    PublishedCopy {
        publish,
        queue: Arc::clone(&hosted.name),
        id: public_id(admission.id.as_deref(), seq),
        seq,
        priority: hosted.settings().scheme.show(admission.original, admission.priority),
        duplicate: admitted.duplicate,
        position: admitted.position.0,
        position_in_priority: admitted.position.1,
    }
}
