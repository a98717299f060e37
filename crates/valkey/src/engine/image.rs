//! Messages of a queue as they were a moment ago, in a broker of their own: what a filter takes, and in which order, is told by the same code as on one machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_engine::{Browse, Content, Failure, Filter};
use overtake_lane::{
    Broker, BrowseOrder, Fact, Look, Message, Options, Place, Query, QueueView, Refusal, Seq, State, Step,
    VhostId,
};

use super::hosted::Hosted;

/// The virtual host of the queue within an image.
pub(super) const IMAGED: VhostId = VhostId::DEFAULT;

/// A message that was seen at its partition.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The message, with the sequence by which it is known outside of its partition.
    pub(super) message: Message,
    /// Its content, where that was read.
    pub(super) content: Option<Arc<Content>>,
}

/// A queue that has just these messages. The place of a content is the sequence of its message.
pub(super) struct Image {
    pub(super) broker: Broker,
    pub(super) contents: BTreeMap<Seq, Arc<Content>>,
    pub(super) hosted: Arc<Hosted>,
}

impl Image {
    pub(super) fn new(
        options: Options,
        view: &QueueView,
        hosted: &Arc<Hosted>,
        messages: impl IntoIterator<Item = Seen>,
    ) -> Result<Self, Failure> {
        let mut broker = Broker::new(options);
        let unfounded = |_| Failure::Unavailable("what a place holds makes no sense".into());
        let mut fold = |fact| broker.fold(fact, &mut Step::default()).map_err(unfounded);
        let (name, settings) = (Arc::clone(&view.name), Box::new(view.effective_settings().clone()));
        let (queue, identity) = (view.queue, view.identity.clone());
        fold(Fact::QueueStored { queue, vhost: IMAGED, name, settings, identity, next_seq: Seq(1) })?;
        let (mut contents, mut leased) = (BTreeMap::new(), BTreeMap::new());
        for Seen { message, content } in messages {
            contents.extend(content.map(|content| (message.seq, content)));
            match message.state {
                // They are seen in the order in which they were leased.
                State::Leased { lease, .. } => drop(leased.insert((lease, message.seq), message)),
                _ => fold(Fact::Stored { queue, message })?,
            }
        }
        for message in leased.into_values() {
            fold(Fact::Stored { queue, message })?;
        }
        Ok(Self { broker, contents, hosted: Arc::clone(hosted) })
    }

    /// Its queue is where it was asked for.
    pub(super) fn query(&self, browse: &Browse) -> Result<Query, Refusal> {
        let level =
            |given| self.broker.map_priority(IMAGED, &self.hosted.name, given).map(|(level, _)| level);
        Ok(browse.query(browse.filter.priority.as_ref().map(level).transpose()?))
    }

    pub(super) fn find(&self, browse: &Browse) -> Result<Look, Refusal> {
        let query = self.query(browse)?;
        let mut says = |place| self.says(place, &browse.filter);
        self.broker.browse(IMAGED, &self.hosted.name, &query, &mut says)
    }

    /// The sequences of the messages that a filter takes.
    pub(super) fn matching(&self, filter: &Filter) -> Result<BTreeSet<Seq>, Refusal> {
        let (filter, order) = (filter.clone(), BrowseOrder::Published);
        let all = self.find(&Browse { filter, order, limit: usize::MAX, ..Browse::default() })?;
        Ok(all.messages.into_iter().map(|(_, message)| message.seq).collect())
    }

    fn says(&self, place: Place, filter: &Filter) -> bool {
        let content = || self.contents.get(&Seq(place.0));
        !filter.is_about_content() || content().is_some_and(|content| filter.says(content))
    }
}
