//! What of segments was found damaged, as people are told of it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use overtake_lane::RunId;

use crate::shelf::DamagedBlock;

/// The most places that are listed one by one; more are only counted.
const PLACES_MAX: usize = 100;
/// The most of them that one sentence names.
const SAID_MAX: usize = 3;

/// Damage in the segments of a store: what was found since it was opened, and is in quarantine still.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageHealth {
    /// Damaged blocks, or whole segments, in quarantine.
    pub blocks: u64,
    /// Messages that were lost with any, whether it is in quarantine still or was given up.
    pub lost_messages: u64,
    /// The first hundred of those blocks, in the order in which they were found.
    pub places: Arc<[DamagedPlace]>,
}

/// A damaged block, or a segment of which nothing can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPlace {
    /// File, byte, and what is wrong there.
    pub place: Arc<str>,
    /// The queue whose messages are in it.
    pub queue: Arc<str>,
    /// Messages that cannot be read.
    pub messages: u64,
    /// The run whose segment it is in.
    pub run: RunId,
    /// The messages in it, by their ordinals in the segment. Of a segment of which nothing can be read: all ordinals.
    pub ordinals: Range<u32>,
}

impl DamageHealth {
    /// Counts a damaged block of this queue, with which so many messages are lost.
    pub(crate) fn found(&mut self, block: &DamagedBlock, queue: &str, messages: u64) {
        self.blocks += 1;
        self.lost_messages += messages;
        if self.places.len() < PLACES_MAX {
            let (place, queue) = (block.to_string().into(), queue.into());
            let place =
                DamagedPlace { place, queue, messages, run: block.run, ordinals: block.ordinals.clone() };
            self.places = self.places.iter().cloned().chain([place]).collect();
        }
    }

    /// A message that was in memory is lost, because its content was in this place.
    pub(crate) fn lost(&mut self, run: RunId, ordinal: u32) {
        self.lost_messages += 1;
        let mut places = self.places.to_vec();
        if let Some(place) =
            places.iter_mut().find(|place| place.run == run && place.ordinals.contains(&ordinal))
        {
            place.messages += 1;
            self.places = places.into();
        }
    }

    /// Of the messages of this run that were counted as lost, this many were found in the journal.
    pub(crate) fn salvaged(&mut self, run: RunId, messages: u64) {
        self.lost_messages = self.lost_messages.saturating_sub(messages);
        let mut places = self.places.to_vec();
        let mut left = messages;
        for place in places.iter_mut().filter(|place| place.run == run) {
            let here = place.messages.min(left);
            (place.messages, left) = (place.messages - here, left - here);
        }
        self.places = places.into();
    }

    /// A run is over, with what of it was in quarantine.
    pub(crate) fn given_up(&mut self, run: RunId) {
        let left: Arc<[DamagedPlace]> =
            self.places.iter().filter(|place| place.run != run).cloned().collect();
        self.blocks -= (self.places.len() - left.len()) as u64;
        self.places = left;
    }

    /// The journal does not mention this run any more: nothing of it waits after a restart.
    pub(crate) fn unmentioned(&mut self, run: RunId) {
        let mut places = self.places.to_vec();
        for place in places.iter_mut().filter(|place| place.run == run) {
            place.place = format!("{}, and the journal does not mention it any more", place.place).into();
        }
        self.places = places.into();
    }

    /// The store was written again without what was damaged.
    pub(crate) fn all_given_up(&mut self) {
        (self.blocks, self.places) = (0, Arc::default());
    }

    /// The damage of two stores together.
    pub(crate) fn and(self, other: Self) -> Self {
        let places = self.places.iter().chain(&*other.places).take(PLACES_MAX).cloned().collect();
        let lost_messages = self.lost_messages + other.lost_messages;
        Self { blocks: self.blocks + other.blocks, lost_messages, places }
    }

    /// What is in quarantine, as a sentence; `None` when nothing is.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let mut said: Vec<String> = self.places.iter().take(SAID_MAX).map(ToString::to_string).collect();
        said.extend(match self.blocks.saturating_sub(said.len() as u64) {
            0 => None,
            1 => Some("and one more place".to_owned()),
            more => Some(format!("and {more} more places")),
        });
        (!said.is_empty()).then(|| said.join("; "))
    }
}

/// As a sentence.
impl fmt::Display for DamagedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, queue, messages, .. } = self;
        let plural = if *messages == 1 { "" } else { "s" };
        write!(f, "{place}; {messages} message{plural} of queue `{queue}` cannot be read")
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::Seq;

    use super::*;

    fn block(run: u64) -> DamagedBlock {
        let (ordinals, seqs) = (10..20, (Seq(1), Seq(9)));
        let (file, what) = (format!("segment-{run}"), "no".to_owned());
        DamagedBlock { run: RunId(run), ordinals, seqs, file, at: 7, what }
    }

    #[test]
    fn each_place_is_told_with_all_that_it_cost_until_it_is_given_up() {
        let mut damage = DamageHealth::default();
        assert_eq!(damage.sentence(), None);
        damage.found(&block(1), "q", 0);
        damage.lost(RunId(1), 12);
        damage.lost(RunId(1), 30);
        assert_eq!(
            damage.sentence().as_deref(),
            Some("segment-1 at byte 7: no; 1 message of queue `q` cannot be read")
        );
        for run in 2..=4 {
            damage.found(&block(run), "r", 5);
        }
        assert!(damage.sentence().is_some_and(|said| said.ends_with("; and one more place")));
        assert_eq!((damage.blocks, damage.lost_messages), (4, 17));
        damage.salvaged(RunId(2), 4);
        assert_eq!((damage.places[1].messages, damage.lost_messages), (1, 13));
        damage.unmentioned(RunId(4));
        assert!(
            damage.places[3].to_string().contains("7: no, and the journal does not mention it any more; 5")
        );
        for run in 1..=4 {
            damage.given_up(RunId(run));
        }
        assert_eq!((damage.sentence(), damage.blocks, damage.lost_messages), (None, 0, 13));
        damage.found(&block(9), "q", 1);
        damage.all_given_up();
        assert_eq!((damage.sentence(), damage.blocks, damage.lost_messages), (None, 0, 14));
    }
}
