//! Looking without changing.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_engine::core::Answer;
use overtake_engine::{
    Browse, BrowsedMessage, Content, Failure, Filter, Held, Page, PageCursor, QueuePage, Select, fitting,
};
use overtake_lane::{
    Asker, BrowseOrder, Cursor, LaneView, Look, MessageView, Order, PlaceNumber, QueueView, Receipt, Refusal,
    Seq, Settings, Status, Time, WAIT_BOUNDS_MS, WaitView,
};

use super::House;
use super::carry::fill_in_deaths;
use super::hosted::Hosted;
use super::image::{IMAGED, Image};
use super::search::{Search, Sought, Walked};
use crate::functions::{Seen, Standing, Terms, View, Which};

/// Gauges of a lane that count messages.
const STANDING: [&str; 4] = ["ready", "delayed", "leased", "dead"];
const ALL: [Status; 4] = [Status::Ready, Status::Delayed, Status::Leased, Status::Dead];

impl House {
    /// A queue as it is now.
    pub(super) async fn queue_view(&self, asker: Asker, name: &str) -> Result<QueueView, Failure> {
        let view = self.definitions.with(|broker| broker.view(Time(0), asker.vhost, name))?;
        self.filled(view).await
    }

    /// Queues of a virtual host, by name.
    pub(super) async fn queue_views(
        &self,
        asker: Asker,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueuePage, Failure> {
        let (views, is_more) = self.definitions.with(|broker| {
            let mut views = broker.views(Time(0), asker.vhost, after)?;
            let page: Vec<QueueView> = views.by_ref().take(limit).collect();
            Ok::<_, Refusal>((page, views.next().is_some()))
        })?;
        let last = views.last().map(|view| Arc::clone(&view.name)).filter(|_| is_more);
        let mut queues = Vec::with_capacity(views.len());
        for view in views {
            match self.filled(view).await {
                Ok(view) => queues.push(view),
                // It went meanwhile.
                Err(Failure::Refused(refused)) if refused.refusal == Refusal::NoSuchQueue => {}
                Err(why) => return Err(why),
            }
        }
        Ok(QueuePage { queues, next: last })
    }

    /// What is in its places, and who takes from it.
    async fn filled(&self, mut view: QueueView) -> Result<QueueView, Failure> {
        let hosted = self.hosted(view.queue).await?;
        hosted.settled_down().await;
        let seen = hosted.ask_all(&View).await?;
        let others = seen.first().map_or(0, |first| first.consumers_of_others);
        let now = self.now();
        let settings = view.effective_settings().clone();
        let mut lanes: BTreeMap<i32, LaneView> =
            view.lanes.into_iter().map(|lane| (lane.level, lane)).collect();
        let (terms, mut firsts) = (hosted.places().terms(), Vec::new());
        view.active_at = seen.iter().map(|seen| seen.active_at).max().unwrap_or_default();
        for (place, seen) in (0..).zip(seen) {
            let known = |seq| hosted.known_as(place, seq);
            firsts.push((known(seen.first_seq), known(seen.last_seq.next())));
            add(&mut lanes, &settings, now, &with_left(seen, &terms));
        }
        view.lanes = lanes.into_values().rev().collect();
        view.first_seq = firsts.iter().map(|(first, _)| *first).min().unwrap_or(Seq(1));
        view.next_seq = firsts.iter().map(|(_, next)| *next).max().unwrap_or(Seq(1));
        (view.consumers, view.waiting) = self.takers(view.queue);
        view.consumers += others;
        Ok(view)
    }

    /// Messages that are ready in a queue.
    pub(super) async fn ready(&self, hosted: &Hosted) -> Result<u64, Failure> {
        let seen = hosted.ask_all(&View).await?;
        Ok(seen.iter().flat_map(|seen| seen.lanes.values()).map(|lane| gauge(lane, "ready")).sum())
    }

    /// Messages in a queue, however they stand.
    pub(super) async fn depth(&self, hosted: &Hosted) -> Result<u64, Failure> {
        let seen = hosted.ask_all(&View).await?;
        let of = |lane| STANDING.iter().map(|what| gauge(lane, what)).sum::<u64>();
        Ok(seen.iter().flat_map(|seen| seen.lanes.values()).map(of).sum())
    }

    /// Messages that a filter takes.
    pub(super) async fn browse(&self, asker: Asker, queue: &str, browse: &Browse) -> Result<Page, Failure> {
        let search = self.search(asker, queue, &browse.filter).await?;
        let Found { image, messages, next, looked_at } = match browse.order {
            BrowseOrder::Dispatch => in_dispatch_order(&search, browse).await?,
            BrowseOrder::Published | BrowseOrder::Newest => by_sequence(&search, browse).await?,
        };
        let looks = browse.looks.map(|looks| looks.saturating_sub(looked_at as usize));
        let total = if browse.with_total { search.total(looks).await? } else { None };
        let mut shown = Vec::with_capacity(messages.len());
        for mut message in messages {
            // What has gone meanwhile is not shown.
            if let Some(content) = self.content(&image, message.seq).await? {
                fill_in_deaths(&mut message.deaths, &content);
                let held = self.held_of(&image, message.seq);
                shown.push(BrowsedMessage {
                    message,
                    content,
                    held,
                    position: None,
                    position_in_priority: None,
                });
            }
        }
        let in_queue = self.depth(&image.hosted).await?;
        Ok(Page { messages: shown, next, total, looked_at, in_queue })
    }

    /// One message, by its id.
    pub(super) async fn message(&self, asker: Asker, queue: &str, id: &str) -> Result<Answer, Failure> {
        let filter = Filter::default();
        let search = self.search(asker, queue, &filter).await?;
        let (image, (position, position_in_priority)) = search.one(id).await?;
        let (mut message, ..) = image.broker.message(IMAGED, &image.hosted.name, id)?;
        let content = self.content(&image, message.seq).await?.ok_or(Refusal::NoSuchMessage)?;
        fill_in_deaths(&mut message.deaths, &content);
        let held = self.held_of(&image, message.seq);
        Ok(Answer::Message(Box::new(BrowsedMessage {
            message,
            content,
            held,
            position,
            position_in_priority,
        })))
    }

    /// The messages that are meant, by place; an id is looked for in all of them.
    pub(super) async fn choose(
        &self,
        asker: Asker,
        queue: &str,
        select: Select,
    ) -> Result<(Arc<Hosted>, Vec<(PlaceNumber, Which)>), Failure> {
        match select {
            Select::Id(id) => {
                let filter = Filter::default();
                let search = self.search(asker, queue, &filter).await?;
                let hosted = &search.hosted;
                let by_seq = match overtake_lane::seq_of_public_id(&id) {
                    None => search.displaced(&id).await?,
                    Some(seq) => Some(hosted.find(seq).ok_or(Refusal::NoSuchMessage)?),
                };
                let here = match by_seq {
                    None => (0..hosted.places().count())
                        .map(|place| (place, Which::Id(id.as_str().into())))
                        .collect(),
                    Some((place, seq)) => {
                        vec![(place, Which::Id(overtake_lane::public_id(None, seq).into()))]
                    }
                };
                Ok((search.hosted, here))
            }
            Select::Counted { filter, expect } => {
                let chosen = Box::pin(self.choose(asker, queue, Select::Matching(filter))).await?;
                let of = |which: &Which| if let Which::Seqs(seqs) = which { seqs.len() as u64 } else { 1 };
                match chosen.1.iter().map(|(_, which)| of(which)).sum() {
                    count if count == expect => Ok(chosen),
                    count => Err(Refusal::CountDiffers { count }.into()),
                }
            }
            Select::Matching(filter) => {
                let search = self.search(asker, queue, &filter).await?;
                let which = search.seqs().await?.into_iter().filter(|(_, seqs)| !seqs.is_empty());
                let which = which.map(|(place, seqs)| (place, Which::Seqs(seqs)));
                Ok((search.hosted, which.collect()))
            }
        }
    }

    /// A message that is known by this sequence; `None`: it is gone.
    pub(super) async fn view_at(&self, hosted: &Hosted, seq: Seq) -> Result<Option<MessageView>, Failure> {
        let Some((place, seq)) = hosted.find(seq) else { return Ok(None) };
        let after = seq.0.checked_sub(1).map(Seq);
        let page = Standing { newest: false, after, limit: 1, with_content: false, statuses: ALL.to_vec() };
        let shown = hosted.ask(place, &page).await?;
        let it = shown.into_iter().map(|shown| shown.stored.message).find(|message| message.seq == seq);
        Ok(it.and_then(|message| self.definitions.with(|broker| broker.view_of(hosted.queue, &message))))
    }

    fn held_of(&self, image: &Image, seq: Seq) -> Option<Held> {
        let (lease, _) = image.broker.lease_of(IMAGED, &image.hosted.name, seq)?;
        let receipt = Receipt { queue: image.hosted.queue, seq, lease };
        Some(Held { receipt: Some(receipt), ..self.held(&receipt).unwrap_or_default() })
    }

    /// What a message of an image says; `None`: it is gone.
    async fn content(&self, image: &Image, seq: Seq) -> Result<Option<Arc<Content>>, Failure> {
        if let Some(content) = image.contents.get(&seq) {
            return Ok(Some(Arc::clone(content)));
        }
        let Some((place, seq)) = image.hosted.find(seq) else { return Ok(None) };
        let after = seq.0.checked_sub(1).map(Seq);
        let page = Standing { newest: false, after, limit: 1, with_content: true, statuses: ALL.to_vec() };
        let shown = image.hosted.ask(place, &page).await?;
        let it = shown.into_iter().find(|shown| shown.stored.message.seq == seq);
        it.and_then(|shown| shown.content).map(|content| read(&content)).transpose()
    }
}

/// The messages of a page.
struct Found {
    image: Image,
    messages: Vec<MessageView>,
    next: Option<PageCursor>,
    looked_at: u64,
}

async fn in_dispatch_order(search: &Search<'_>, browse: &Browse) -> Result<Found, Failure> {
    let Walked { seen, next, looked_at } = search.walk(browse).await?;
    let image = search.image(seen.iter().cloned())?;
    let messages = seen.iter().filter_map(|one| image.broker.view_of(image.hosted.queue, &one.message));
    let messages = messages.collect();
    Ok(Found { image, messages, next, looked_at })
}

async fn by_sequence(search: &Search<'_>, browse: &Browse) -> Result<Found, Failure> {
    let Sought { image, looked_at, end } = search.page(browse).await?;
    let Look { mut messages, next, .. } = image.find(browse)?;
    let after = |cursor: Cursor| PageCursor::After(Seq(cursor.0));
    let mut next = next.map(after).or(end.map(PageCursor::After));
    let fits = fitting(messages.iter().map(|(_, message)| u64::from(message.bytes)));
    if fits < messages.len() {
        messages.truncate(fits);
        next = messages.last().map(|(cursor, _)| after(*cursor));
    }
    let messages = messages.into_iter().map(|(_, message)| message).collect();
    Ok(Found { image, messages, next, looked_at })
}

/// What a place keeps of what a message says.
pub(super) fn read(content: &[u8]) -> Result<Arc<Content>, Failure> {
    let content = Content::decode(content);
    content.map(Arc::new).ok_or_else(|| Failure::Unavailable("a message makes no sense".into()))
}

fn gauge(lane: &BTreeMap<String, u64>, what: &str) -> u64 {
    lane.get(what).copied().unwrap_or(0)
}

/// What a place says of its lanes where some of them are being left: their numbers are added to those of a lane of now that has the same name, else they have their
/// old name until they are empty.
fn with_left(mut seen: Seen, terms: &Terms) -> Seen {
    for (level, name) in std::mem::take(&mut seen.left) {
        let Some(mut gauges) = seen.lanes.remove(&level) else { continue };
        let oldest = seen.oldest.remove(&level);
        let now = terms.level_of_lane(&name);
        let moving = STANDING.iter().map(|what| gauge(&gauges, what)).sum();
        if now.is_none() && moving == 0 {
            continue;
        }
        gauges.insert("moving".to_owned(), moving);
        let at = now.unwrap_or(level);
        let lane = seen.lanes.entry(at).or_default();
        gauges.into_iter().for_each(|(what, count)| *lane.entry(what).or_default() += count);
        if let Some(since) = oldest {
            seen.oldest.entry(at).and_modify(|other| *other = since.min(*other)).or_insert(since);
        }
        if now.is_none() {
            seen.left.insert(level, name);
        }
    }
    seen
}

/// What a place says of its lanes, added to those of others.
fn add(lanes: &mut BTreeMap<i32, LaneView>, settings: &Settings, now: Time, seen: &Seen) {
    for (level, gauges) in &seen.lanes {
        let name = seen.left.get(level).map(String::as_str);
        let lane = lanes.entry(*level).or_insert_with(|| lane_at(settings, *level, name));
        let of = |what| gauge(gauges, what);
        lane.ready += of("ready");
        lane.delayed += of("delayed");
        lane.leased += of("leased");
        lane.dead += of("dead");
        lane.moving += of("moving");
        lane.bytes += of("bytes");
        lane.ready_bytes += of("ready_bytes");
        lane.leased_bytes += of("leased_bytes");
        lane.published += of("published");
        lane.delivered += of("delivered");
        lane.settled += of("settled");
        lane.redelivered += of("redelivered");
        lane.inversions += of("inversions");
        lane.expired += of("expired");
        lane.evicted += of("evicted");
        lane.removed += of("removed");
        lane.moved += of("moved");
        lane.dead_lettered += of("dead_lettered");
        let age = seen.oldest.get(level).map_or(0, |since| now.since(*since));
        lane.oldest_age_ms = lane.oldest_age_ms.max(age);
        let WaitView { buckets, count, sum_ms } = &mut lane.wait;
        if buckets.is_empty() {
            *buckets = WAIT_BOUNDS_MS.iter().map(|bound| (*bound, 0)).collect();
        }
        let mut so_far = 0;
        for (at, (_, bucket)) in buckets.iter_mut().enumerate() {
            so_far += gauge(gauges, &format!("wait_{}", at + 1));
            *bucket += so_far;
        }
        *count += of("waits");
        *sum_ms += of("waited_ms");
    }
}

/// A lane with nothing in it; with this name, if it has one that settings do not tell.
fn lane_at(settings: &Settings, level: i32, name: Option<&str>) -> LaneView {
    let name: Arc<str> = match &settings.order {
        _ if name.is_some() => name.unwrap_or_default().into(),
        Order::Priority => settings.scheme.name(overtake_lane::Priority(level)).as_ref().into(),
        _ => level.to_string().into(),
    };
    let max_active = settings.lanes.get(&*name).map_or(0, |lane| lane.max_active);
    LaneView { lane: name, level, max_active, ..LaneView::default() }
}
