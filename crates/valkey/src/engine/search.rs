//! A search through the messages of a queue, by calls that each look at a bounded number of them. Other calls are done in between.
//!
//! A page in the orders `published` and `newest` needs the first ones of each partition that the filter takes. These are put into an [`Image`], which makes the
//! page. A page in dispatch order is a [walk](Search::walk).

mod streams;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_engine::{Browse, Failure, Filter, PageCursor};
use overtake_lane::{
    Asker, BrowseOrder, Options, Order, PickerKind, Place, PlaceNumber, QueueView, Refusal, Seq, State,
    Status, Time, public_id,
};

use super::House;
use super::hosted::Hosted;
use super::image::{Image, Seen};
use super::see::read;
use crate::functions::{Ahead, Find, LOOKS_MAX, List, Look, Shown, Single, View};
use crate::places::together;
pub(super) use walk::Walked;

/// The statuses in dispatch order.
const STAGES: [Status; 4] = [Status::Leased, Status::Ready, Status::Delayed, Status::Dead];

/// How many messages go before one, in all and in its lane; `None`: that is not known.
type Position = (Option<u64>, Option<u64>);

/// A queue that is searched by a filter.
pub(super) struct Search<'f> {
    options: Options,
    view: QueueView,
    pub(super) hosted: Arc<Hosted>,
    filter: &'f Filter,
    /// The level of the lane that holds all ready messages which the filter takes, if there is one.
    own_lane: Option<i32>,
}

/// Messages that were found.
#[derive(Default)]
struct Found {
    /// Those that the filter takes.
    seen: BTreeMap<Seq, Seen>,
    /// How many messages were looked at.
    looked: u64,
    /// Where the looks ended before the messages did, of those partitions the place that comes first in the order that is asked for.
    end: Option<Seq>,
}

/// What a page is made of.
pub(super) struct Sought {
    /// A queue of which nothing is missing that the page may show.
    pub(super) image: Image,
    /// How many messages were looked at.
    pub(super) looked_at: u64,
    /// Where the page goes on if the image has no more; `None`: there is nothing more.
    pub(super) end: Option<Seq>,
}

impl Found {
    fn join(&mut self, other: Self) {
        // A message that moved meanwhile may be seen twice. The later is right.
        self.seen.extend(other.seen);
        self.looked += other.looked;
    }

    /// Forgets what comes after the end: another partition may have messages before it.
    fn end_at(&mut self, ends: impl Iterator<Item = Seq>, newest: bool) {
        self.end = if newest { ends.max() } else { ends.min() };
        if let Some(end) = self.end {
            self.seen.retain(|seq, _| if newest { *seq >= end } else { *seq <= end });
        }
    }
}

impl House {
    pub(super) async fn search<'f>(
        &self,
        asker: Asker,
        queue: &str,
        filter: &'f Filter,
    ) -> Result<Search<'f>, Failure> {
        let view = self.definitions.with(|broker| broker.view(Time(0), asker.vhost, queue))?;
        let hosted = self.hosted(view.queue).await?;
        hosted.settled_down().await;
        let mut search = Search { options: self.options.broker(), view, hosted, filter, own_lane: None };
        let has_lane_per_priority = search.view.effective_settings().order == Order::Priority;
        let browse = Browse { filter: filter.clone(), ..Browse::default() };
        let priority = search.image([])?.query(&browse)?.priority;
        search.own_lane = priority.map(|priority| priority.0).filter(|_| has_lane_per_priority);
        if search.own_lane.is_some() && search.has_left().await? {
            search.own_lane = None;
        }
        Ok(search)
    }
}

impl Search<'_> {
    pub(super) fn image(&self, messages: impl IntoIterator<Item = Seen>) -> Result<Image, Failure> {
        Image::new(self.options, &self.view, &self.hosted, messages)
    }

    /// Whether messages are in lanes that are being left, whatever their priorities are.
    async fn has_left(&self) -> Result<bool, Failure> {
        Ok(self.hosted.ask_all(&View).await?.iter().any(|seen| !seen.left.is_empty()))
    }

    /// What a page by sequence may show.
    pub(super) async fn page(&self, browse: &Browse) -> Result<Sought, Failure> {
        let found = self.by_sequence(browse).await?;
        let image = self.image(found.seen.into_values())?;
        Ok(Sought { image, looked_at: found.looked, end: found.end })
    }

    /// A queue that has only the message of this id, and how many go before that message, in all and in its lane.
    pub(super) async fn one(&self, id: &str) -> Result<(Image, Position), Failure> {
        let mut found = self.find(id).await?;
        if found.is_none() {
            // A dead letter gives up its id to a message that lives, and has it again when that is gone.
            found = self.find_dead(id).await?.map(|dead| (dead, (None, None)));
        }
        let (seen, position) = found.ok_or(Refusal::NoSuchMessage)?;
        Ok((self.image([seen])?, position))
    }

    async fn find(&self, id: &str) -> Result<Option<(Seen, Position)>, Failure> {
        let by_seq = overtake_lane::seq_of_public_id(id).and_then(|seq| self.hosted.find(seq));
        let of = |place| {
            // A message without an id is called by its sequence as it is known outside of its partition.
            let there = by_seq.filter(|(at, _)| *at == place).map(|(_, seq)| public_id(None, seq));
            async move { self.hosted.ask(place, &Find { id: there.as_deref().unwrap_or(id).into() }).await }
        };
        let mut best: Option<(bool, PlaceNumber, Single)> = None;
        for (place, single) in self.places().zip(together(self.places().map(of)).await) {
            let Some(single) = single? else { continue };
            let is_named = single.shown.stored.message.id() == Some(id);
            if is_named || by_seq.is_some_and(|(at, _)| at == place) {
                let is_dead = single.shown.stored.message.state == State::Dead;
                best = best.filter(|(was_dead, ..)| *was_dead <= is_dead).or(Some((is_dead, place, single)));
            }
        }
        let Some((_, place, single)) = best else { return Ok(None) };
        let position = self.position(place, &single).await?;
        Ok(Some((self.seen(place, single.shown)?, position)))
    }

    /// How many messages of all partitions go before one of them.
    async fn position(&self, place: PlaceNumber, single: &Single) -> Result<Position, Failure> {
        let (seq, level) = (single.shown.stored.message.seq, single.level);
        if self.hosted.is_whole() || single.shown.stored.message.state != State::Ready {
            return Ok(single.position);
        }
        let of = |other: PlaceNumber| {
            // Of two messages with the same clock that of the lesser partition goes first.
            let seq = if other < place { seq.next() } else { seq };
            async move { self.hosted.ask(other, &Ahead { level, seq }).await }
        };
        let mut sum = (0, 0);
        for ahead in together(self.places().map(of)).await {
            let (ahead, in_lane) = ahead?;
            sum = (sum.0 + ahead, sum.1 + in_lane);
        }
        // Other pickers go by what all partitions show.
        let is_strict = self.view.effective_settings().picker == PickerKind::Strict;
        Ok((is_strict.then_some(sum.0), Some(sum.1)))
    }

    /// Where a dead letter is that gave up this id to another message, and its sequence there; `None`: a message has the id, or none has.
    pub(super) async fn displaced(&self, id: &str) -> Result<Option<(PlaceNumber, Seq)>, Failure> {
        if self.find(id).await?.is_some() {
            return Ok(None);
        }
        Ok(self.find_dead(id).await?.and_then(|dead| self.hosted.find(dead.message.seq)))
    }

    async fn find_dead(&self, id: &str) -> Result<Option<Seen>, Failure> {
        for place in self.places() {
            let mut after = None;
            loop {
                let look = self.look(vec![List::Standing(Status::Dead)], false, after, usize::MAX);
                let (seen, next) = self.ask(place, &look).await?;
                if let Some(one) = seen.into_iter().find(|one| one.message.id() == Some(id)) {
                    return Ok(Some(one));
                }
                after = next;
                if next.is_none() {
                    break;
                }
            }
        }
        Ok(None)
    }

    /// How many messages the filter takes; `None`: so many looks do not tell. By status and by priority gauges tell without a look.
    pub(super) async fn total(&self, looks: Option<usize>) -> Result<Option<u64>, Failure> {
        if let Some(count) = self.standing().await? {
            return Ok(Some(count));
        }
        let looks = looks.map(|looks| looks.div_ceil(self.places().len()));
        let of = |place| self.count_in(place, looks);
        together(self.places().map(of)).await.into_iter().sum()
    }

    /// How many messages of a partition the filter takes; `None`: so many looks do not tell.
    async fn count_in(&self, place: PlaceNumber, looks: Option<usize>) -> Result<Option<u64>, Failure> {
        let (lists, mut after, mut counted, mut looked) = (self.lists(), None, 0, 0);
        loop {
            let look = self.look(lists.clone(), false, after, usize::MAX);
            let (seen, next) = self.ask(place, &look).await?;
            looked += seen.len();
            counted += self.image(seen)?.matching(self.filter)?.len() as u64;
            if next.is_none() {
                return Ok(Some(counted));
            }
            if looks.is_some_and(|looks| looked >= looks) {
                return Ok(None);
            }
            after = next;
        }
    }

    /// The sequences of all messages that the filter takes, as their partitions know them.
    pub(super) async fn seqs(&self) -> Result<BTreeMap<PlaceNumber, Vec<Seq>>, Failure> {
        let of = |place| async move {
            let (lists, mut after, mut all) = (self.lists(), None, Vec::new());
            loop {
                let look = self.look(lists.clone(), false, after, usize::MAX);
                let (seen, next) = self.ask(place, &look).await?;
                let matching = self.image(seen)?.matching(self.filter)?;
                all.extend(matching.into_iter().filter_map(|seq| self.hosted.find(seq)).map(|(_, seq)| seq));
                after = next;
                if next.is_none() {
                    return Ok::<_, Failure>((place, all));
                }
            }
        };
        together(self.places().map(of)).await.into_iter().collect()
    }

    fn places(&self) -> std::ops::Range<PlaceNumber> {
        0..self.hosted.places().count()
    }

    /// The lists in which the filter may find something.
    fn lists(&self) -> Vec<List> {
        let wanted = STAGES.into_iter().filter(|stage| self.filter.status.is_none_or(|only| only == *stage));
        wanted
            .map(|status| match self.own_lane {
                Some(level) if status == Status::Ready => List::Lane(level),
                _ => List::Standing(status),
            })
            .collect()
    }

    fn look(&self, lists: Vec<List>, newest: bool, after: Option<Seq>, most: usize) -> Look {
        let most = u32::try_from(most).unwrap_or(LOOKS_MAX).clamp(1, LOOKS_MAX);
        Look { newest, after, most, with_content: self.filter.is_about_content(), lists }
    }

    /// What one call sees, and where the next goes on.
    async fn ask(&self, place: PlaceNumber, look: &Look) -> Result<(Vec<Seen>, Option<Seq>), Failure> {
        let looked = self.hosted.ask(place, look).await?;
        let seen = looked.shown.into_iter().map(|one| self.seen(place, one));
        Ok((seen.collect::<Result<_, Failure>>()?, looked.next))
    }

    fn seen(&self, place: PlaceNumber, shown: Shown) -> Result<Seen, Failure> {
        let mut message = shown.stored.message;
        message.seq = self.hosted.known_as(place, message.seq);
        message.place = Place(message.seq.0);
        let content = shown.content.map(|content| read(&content)).transpose()?;
        Ok(Seen { message, content })
    }

    /// The first messages of some lists of a partition that the filter takes, so many or all there are.
    async fn first_after(
        &self,
        place: PlaceNumber,
        lists: &[List],
        needed: usize,
        (newest, mut after, looks): (bool, Option<Seq>, Option<usize>),
    ) -> Result<Found, Failure> {
        // The first ones are enough, unless the filter leaves some out.
        let (mut found, mut most) = (Found::default(), needed);
        loop {
            let look = self.look(lists.to_vec(), newest, after, most);
            let (seen, next) = self.ask(place, &look).await?;
            let matching = self.image(seen.iter().cloned())?.matching(self.filter)?;
            found.looked += seen.len() as u64;
            let is_taken = |one: &Seen| matching.contains(&one.message.seq);
            found.seen.extend(seen.into_iter().filter(is_taken).map(|one| (one.message.seq, one)));
            (after, most) = (next, usize::MAX);
            if next.is_none() || found.seen.len() >= needed {
                return Ok(found);
            }
            if looks.is_some_and(|looks| found.looked >= looks as u64) {
                found.end = next.map(|last| self.hosted.known_as(place, last));
                return Ok(found);
            }
        }
    }

    async fn by_sequence(&self, browse: &Browse) -> Result<Found, Failure> {
        let (lists, newest) = (self.lists(), browse.order == BrowseOrder::Newest);
        let after = match &browse.cursor {
            Some(PageCursor::After(seq)) => self.hosted.before_or_at(*seq, newest),
            _ => None,
        };
        // What is left out is passed in one request.
        let looks =
            browse.looks.filter(|_| browse.skip == 0).map(|looks| looks.div_ceil(self.places().len()));
        // One more tells that there is a next page; another may be that of the cursor.
        let needed = count(browse.skip).saturating_add(browse.limit).saturating_add(2);
        let of = |place| self.first_after(place, &lists, needed, (newest, after, looks));
        let (mut found, mut ends) = (Found::default(), Vec::new());
        for one in together(self.places().map(of)).await {
            let one = one?;
            ends.extend(one.end);
            found.join(one);
        }
        found.end_at(ends.into_iter(), newest);
        Ok(found)
    }

    /// How many messages there are of the status and the priority that the filter names, if it names nothing else.
    async fn standing(&self) -> Result<Option<u64>, Failure> {
        let Filter { status, priority, key, headers, user_id, ending, without_priority } = self.filter;
        let narrows = key.is_some()
            || !headers.is_empty()
            || user_id.is_some()
            || ending.is_some()
            || *without_priority;
        if narrows || (priority.is_some() && self.own_lane.is_none()) {
            return Ok(None);
        }
        let seen = self.hosted.ask_all(&View).await?;
        let wanted = STAGES.into_iter().filter(|stage| status.is_none_or(|only| only == *stage));
        let gauges: Vec<&str> = wanted.map(gauge).collect();
        let lanes = seen.iter().flat_map(|seen| seen.lanes.iter());
        let lanes = lanes.filter(|(level, _)| self.own_lane.is_none_or(|own| own == **level));
        let of = |lane: &BTreeMap<String, u64>| gauges.iter().filter_map(|what| lane.get(*what)).sum::<u64>();
        Ok(Some(lanes.map(|(_, lane)| of(lane)).sum()))
    }
}

/// The gauge of a lane that counts what stands so.
fn gauge(status: Status) -> &'static str {
    match status {
        Status::Ready => "ready",
        Status::Delayed => "delayed",
        Status::Leased => "leased",
        Status::Dead => "dead",
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
