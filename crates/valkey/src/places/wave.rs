//! A wave: what goes next over several places, seen before it is claimed at all of them at once.
//!
//! ```text
//!   heads ─▶ places that may give some of it ─ peek ─▶ sights ─ merged ─▶ shares ─ claim, all at once ─▶ what was given, in one order
//!                                                        │  nothing beyond what another place shows (the horizon),
//!                                                        └─ nothing behind a sight that ends before its place does
//! ```
//!
//! What is seen is a hint, as heads are: a place gives what is there by then, and never more than its share. So a wave is in the order of one queue as far as what was seen is true, and
//! a message that somebody else was quicker to take is missing in it, and nothing else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::functions::{Ready, Where};

/// What is seen of a place, of what is wanted there.
#[derive(Clone, Debug, Default)]
pub(super) struct Sight {
    /// What goes next, in order.
    pub(super) ready: Vec<Ready>,
    /// There is nothing behind it.
    pub(super) is_all: bool,
}

/// What is wanted of all places together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Most messages.
    pub(super) max: u32,
    /// Most bytes, but one message at least.
    pub(super) max_bytes: u64,
    /// Of one lane only.
    pub(super) one: bool,
    /// What places show that are not in the wave: nothing goes that goes after it.
    pub(super) horizon: Option<Where>,
}

/// What one place is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Whose it is, counted among the sights.
    pub(super) at: usize,
    /// Most messages.
    pub(super) max: u32,
    /// Most bytes, but one message at least.
    pub(super) max_bytes: u64,
    /// The last that may go; `None`: no other place has anything.
    pub(super) last: Option<Where>,
}

/// Who gives how much, so that all of it is what goes next: those first whose first message goes first.
pub(super) fn shares(sights: &[Sight], wanted: Wanted) -> Vec<Share> {
    let mut ahead: BinaryHeap<_> = (0..sights.len()).filter_map(|at| candidate(sights, at, 0)).collect();
    let (mut shares, mut left) = (Vec::<Share>::new(), wanted);
    let mut level = None;
    while let Some(Reverse((stands, at, nth))) = ahead.pop() {
        let bytes = sights[at].ready[nth].bytes;
        let is_beyond = wanted.horizon.is_some_and(|horizon| stands > horizon);
        let is_other = wanted.one && level.is_some_and(|level| level != stands.level());
        let is_too_much = level.is_some() && bytes > left.max_bytes;
        if left.max == 0 || is_beyond || is_other || is_too_much {
            break;
        }
        level = Some(stands.level());
        (left.max, left.max_bytes) = (left.max - 1, left.max_bytes.saturating_sub(bytes));
        let share = match shares.iter_mut().find(|share| share.at == at) {
            Some(share) => share,
            None => shares.push_mut(Share { at, max: 0, max_bytes: 0, last: None }),
        };
        (share.max, share.max_bytes, share.last) = (share.max + 1, share.max_bytes + bytes, Some(stands));
        match candidate(sights, at, nth + 1) {
            Some(next) => ahead.push(next),
            None if sights[at].is_all => {}
            // It goes on alone, with what nobody has seen, up to what others have.
            None => {
                let others = ahead.peek().map(|Reverse((stands, ..))| *stands);
                share.last = others.into_iter().chain(wanted.horizon).min();
                (share.max, share.max_bytes) = (share.max + left.max, share.max_bytes + left.max_bytes);
                break;
            }
        }
    }
    shares
}

type Candidate = Reverse<(Where, usize, usize)>;

fn candidate(sights: &[Sight], at: usize, nth: usize) -> Option<Candidate> {
    sights[at].ready.get(nth).map(|ready| Reverse((ready.stands, at, nth)))
}

#[cfg(test)]
mod tests {
    use overtake_lane::Seq;
    use proptest::prelude::*;

    use super::*;

    /// How large every message of an example is.
    const BYTES: u64 = 10;
    const ALL: Wanted = Wanted { max: 100, max_bytes: 1 << 30, one: false, horizon: None };

    fn stands(word: &str) -> Where {
        let (level, seq) = word.split_once('/').expect("a level and a sequence");
        Where::new(level.parse().expect("a level"), Seq(seq.parse().expect("a sequence")))
    }

    /// A sight for each place, such as `9/1 5/4 …`, with dots where there may be more.
    fn sight(words: &str) -> Sight {
        let is_all = !words.ends_with('…');
        let ready = words.split_whitespace().filter(|word| *word != "…");
        let ready = ready.map(|word| Ready { stands: stands(word), bytes: BYTES }).collect();
        Sight { ready, is_all }
    }

    /// What is shared out, such as `0: 2 to 5/4`.
    fn check(sights: &[&str], wanted: Wanted, expected: &[&str]) {
        let sights: Vec<Sight> = sights.iter().map(|words| sight(words)).collect();
        let told = shares(&sights, wanted).into_iter().map(|share| {
            let last = share.last.map(|last| format!(" to {}/{}", last.level(), last.seq().0));
            format!("{}: {}{}", share.at, share.max, last.unwrap_or_default())
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_gives_what_is_among_what_goes_next() {
        let sights = ["9/1 5/4", "9/2 5/3", "1/5"];
        check(&sights, Wanted { max: 4, ..ALL }, &["0: 2 to 5/4", "1: 2 to 5/3"]);
        check(&sights, ALL, &["0: 2 to 5/4", "1: 2 to 5/3", "2: 1 to 1/5"]);
    }

    #[test]
    fn behind_a_sight_that_ends_before_its_place_that_place_goes_on_alone() {
        check(&["9/1 9/3 …", "9/2 9/9"], ALL, &["0: 99 to 9/9", "1: 1 to 9/2"]);
        check(&["9/1 …", ""], ALL, &["0: 100"]);
        check(&["9/1 …"], Wanted { horizon: Some(stands("5/1")), ..ALL }, &["0: 100 to 5/1"]);
    }

    #[test]
    fn nothing_goes_that_goes_after_what_a_place_shows_that_is_not_in_the_wave() {
        let wanted = Wanted { horizon: Some(stands("5/3")), ..ALL };
        check(&["9/1 5/4", "5/2 5/5"], wanted, &["0: 1 to 9/1", "1: 1 to 5/2"]);
        check(&["5/4"], wanted, &[]);
    }

    #[test]
    fn of_one_lane_and_of_so_many_bytes_no_more_goes() {
        let sights = ["9/1 9/4 5/5", "9/2 5/3"];
        check(&sights, Wanted { one: true, ..ALL }, &["0: 2 to 9/4", "1: 1 to 9/2"]);
        check(&sights, Wanted { max_bytes: 2 * BYTES, ..ALL }, &["0: 1 to 9/1", "1: 1 to 9/2"]);
        check(&sights, Wanted { max_bytes: BYTES - 1, ..ALL }, &["0: 1 to 9/1"]);
    }

    /// What a place gives of what it has, as its function does.
    fn give(place: &mut Vec<Ready>, share: &Share, one: bool) -> Vec<Ready> {
        let (mut given, mut bytes) = (Vec::<Ready>::new(), share.max_bytes);
        while let Some(next) = place.first().copied() {
            let is_too_much = given.last().is_some_and(|last| {
                next.bytes > bytes || (one && last.stands.level() != next.stands.level())
            });
            let is_after = share.last.is_some_and(|last| next.stands > last);
            if given.len() == share.max as usize || is_after || is_too_much {
                break;
            }
            bytes = bytes.saturating_sub(next.bytes);
            given.push(place.remove(0));
        }
        given
    }

    fn places() -> impl Strategy<Value = Vec<Vec<Ready>>> {
        let message = (0..4_i32, 1..20_u64, 0..6_usize);
        prop::collection::vec(message, 0..60).prop_map(|messages| {
            let mut places = vec![Vec::new(); 6];
            for (seq, (level, bytes, place)) in messages.into_iter().enumerate() {
                places[place].push(Ready { stands: Where::new(level, Seq(seq as u64)), bytes });
            }
            places.iter_mut().for_each(|place| place.sort_by_key(|ready| ready.stands));
            places
        })
    }

    proptest! {
        #[test]
        fn waves_over_places_of_which_true_things_are_known_are_in_the_order_of_one_queue(
            mut places in places(),
            waves in prop::collection::vec((1..12_u32, 1..80_u64, any::<bool>(), 1..7_usize, 1..6_u32), 80),
        ) {
            let mut queue: Vec<Ready> = places.concat();
            queue.sort_by_key(|ready| ready.stands);
            for (max, max_bytes, one, breadth, most) in waves {
                let mut shown: Vec<usize> = (0..places.len()).filter(|at| !places[*at].is_empty()).collect();
                shown.sort_by_key(|at| places[*at][0].stands);
                let horizon = shown.get(breadth).map(|at| places[*at][0].stands);
                shown.truncate(breadth);
                let sights = shown.iter().map(|at| {
                    let ready: Vec<Ready> = places[*at].iter().take(most as usize).copied().collect();
                    Sight { is_all: ready.len() < most as usize, ready }
                });
                let sights: Vec<Sight> = sights.collect();
                let wanted = Wanted { max, max_bytes, one, horizon };
                let mut given: Vec<Ready> = Vec::new();
                for share in shares(&sights, wanted) {
                    given.extend(give(&mut places[shown[share.at]], &share, one));
                }
                given.sort_by_key(|ready| ready.stands);
                let next: Vec<Ready> = queue.drain(..given.len()).collect();
                prop_assert_eq!(&given, &next);
                prop_assert!(given.len() <= max as usize);
                prop_assert_eq!(given.is_empty(), shown.is_empty());
                let bytes: u64 = given.iter().map(|ready| ready.bytes).sum();
                prop_assert!(given.len() <= 1 || bytes <= max_bytes);
                prop_assert!(!one || given.windows(2).all(|two| two[0].stands.level() == two[1].stands.level()));
            }
            prop_assert!(queue.is_empty(), "every wave gives something");
        }
    }
}
