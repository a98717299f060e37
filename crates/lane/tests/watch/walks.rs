//! Looks in dispatch order that go on step by step, and page by page, while messages come, go and change. After each step they are written down and read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{
    Broker, BrowseOrder, MessageView, Query, QueueId, QueueView, RunId, Seq, Status, Time, Walk,
};

use super::browse;
use super::shelf::Shelf;

/// Of each queue the walk that is under way.
#[derive(Default)]
pub(super) struct Walks {
    walks: BTreeMap<QueueId, Going>,
    /// Steps taken, for walks of different lengths.
    steps: usize,
}

struct Going {
    walk: Walk,
    query: Query,
    /// What of segments is in memory.
    read: BTreeSet<(RunId, u32)>,
    shown: BTreeSet<Seq>,
    /// What has stood as it stands since the walk began.
    stayed: BTreeMap<Seq, Standing>,
}

type Standing = (Status, Arc<str>, i32);

impl Walks {
    /// A restart ends all walks.
    pub(super) fn forget(&mut self) {
        self.walks.clear();
    }

    /// Takes a step of the walk through each queue.
    pub(super) fn go_on(&mut self, broker: &Broker, shelf: &Shelf, now: Time) {
        let views: Vec<QueueView> = broker.all_views(now).collect();
        self.walks.retain(|queue, _| views.iter().any(|view| view.queue == *queue));
        for view in &views {
            self.steps += 1;
            let messages = browse(broker, view.vhost, &view.name, BrowseOrder::Published);
            self.check_whole(broker, shelf, view, &messages);
            let mut going =
                self.walks.remove(&view.queue).unwrap_or_else(|| Going::begin(self.steps, &messages));
            going.retain(&messages);
            let (query, walk) = (&going.query, &mut going.walk);
            let step = shelf.step_of_look(&mut going.read, || {
                broker.walk(view.vhost, &view.name, query, walk, &mut |place| shelf.takes(place))
            });
            let look = step.expect("the queue is there");
            going.walk = written_down(&going.walk);
            going.shown.extend(look.messages.iter().map(|(_, message)| message.seq));
            if look.next.is_some() {
                self.walks.insert(view.queue, going);
                continue;
            }
            let missing: Vec<_> = going.stayed.iter().filter(|(seq, _)| !going.shown.contains(seq)).collect();
            assert!(
                missing.is_empty(),
                "of {} a walk has not shown {missing:?}: {:?}",
                view.name,
                going.query
            );
        }
    }

    /// The steps of a walk during which nothing happens show what a page shows that is made at once.
    fn check_whole(&self, broker: &Broker, shelf: &Shelf, view: &QueueView, messages: &[MessageView]) {
        let query = query(self.steps, messages);
        let whole = Query { looks: None, limit: usize::MAX, order: BrowseOrder::Dispatch, ..query.clone() };
        let whole = broker.browse(view.vhost, &view.name, &whole, &mut |_| true).expect("it is there");
        let (mut walk, mut stepped, mut read) = (Walk::default(), Vec::new(), BTreeSet::new());
        loop {
            let look = shelf.step_of_look(&mut read, || {
                broker.walk(view.vhost, &view.name, &query, &mut walk, &mut |place| shelf.takes(place))
            });
            let look = look.expect("it is there");
            assert!(look.messages.len() <= query.limit);
            stepped.extend(look.messages.into_iter().map(|(_, message)| message.seq));
            if look.next.is_none() {
                break;
            }
            walk = written_down(&walk);
        }
        let whole: Vec<_> = whole.messages.into_iter().map(|(_, message)| message.seq).collect();
        assert_eq!(stepped, whole, "of {}: {query:?}", view.name);
    }
}

impl Going {
    fn begin(nth: usize, messages: &[MessageView]) -> Self {
        let query = query(nth, messages);
        let takes = |message: &&MessageView| {
            query.status.is_none_or(|status| message.status == status)
                && query.priority.is_none_or(|priority| message.level == priority)
        };
        let stayed = messages.iter().filter(takes).map(|message| (message.seq, standing(message))).collect();
        Self { walk: Walk::default(), query, read: BTreeSet::new(), shown: BTreeSet::new(), stayed }
    }

    fn retain(&mut self, messages: &[MessageView]) {
        let now: BTreeMap<Seq, Standing> =
            messages.iter().map(|message| (message.seq, standing(message))).collect();
        self.stayed.retain(|seq, before| now.get(seq) == Some(before));
    }
}

fn written_down(walk: &Walk) -> Walk {
    let text = serde_json::to_string(&walk.clone().written()).expect("a walk can be written");
    serde_json::from_str(&text).expect("and read")
}

fn standing(message: &MessageView) -> Standing {
    (message.status, Arc::clone(&message.lane), message.level.0)
}

/// All, or some of them, in steps of a few looks.
fn query(nth: usize, messages: &[MessageView]) -> Query {
    let statuses =
        [None, Some(Status::Ready), None, Some(Status::Delayed), Some(Status::Leased), Some(Status::Dead)];
    let some = messages.get(nth % messages.len().max(1));
    Query {
        status: statuses[nth % statuses.len()],
        priority: some.filter(|_| nth.is_multiple_of(7)).map(|message| message.level),
        limit: [usize::MAX, 1, 2][nth % 3],
        looks: Some(1 + nth % 4),
        ..Query::default()
    }
}
