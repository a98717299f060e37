//! *Pick*: no eligible head outranks the one that is leased. The model is a list of heads, one per lane, and a rule.

use std::collections::BTreeMap;

use overtake_lane::{ConsumerId, PickerKind, QueueId, Settings};

use crate::book::{Book, lane_cap, lane_name, takes};
use crate::failure::{Checked, Promise, hold};
use crate::keys::{rivals, speaks_of_keys};
use crate::round::{Candidate, Round};

/// How long lanes of weighted queues have been passed over.
#[derive(Debug, Default)]
pub(crate) struct Pick {
    passed: BTreeMap<QueueId, Passed>,
}

#[derive(Debug, Default)]
struct Passed {
    settings: Settings,
    /// Leases that other lanes gave since this one last did, while it could have.
    lanes: BTreeMap<i64, u64>,
}

impl Pick {
    /// A new life begins with a new turn.
    pub(crate) fn recovered(&mut self) {
        self.passed.clear();
    }

    pub(crate) fn check(&mut self, book: &Book, round: &Round<'_>) -> Checked {
        if round.is_blurred {
            self.passed.remove(&round.queue);
            return Ok(());
        }
        check_choice(round)?;
        for (pick, eligible) in eligible(book, round) {
            match &round.settings.picker {
                PickerKind::Strict => best(round, pick, &eligible, |head| (-i128::from(head.lane), 0))?,
                PickerKind::AgingMs(_) if !knows_heads(round.settings) => {}
                PickerKind::AgingMs(step) => best(round, pick, &eligible, |head| {
                    let aged = i128::from(head.since.0) - i128::from(head.lane) * i128::from(*step);
                    (aged, -i128::from(head.lane))
                })?,
                PickerKind::Weighted(weights) => {
                    let passed = self.passed.entry(round.queue).or_default();
                    passed.check(round, pick, &eligible, weights)?;
                }
            }
        }
        Ok(())
    }
}

/// Where keys take turns, or have tokens, it is not known here which message of a lane is its head.
fn knows_heads(settings: &Settings) -> bool {
    !settings.fair_keys && settings.key_rate_limit.is_none()
}

/// Each pick with the heads that could have been taken instead of it, itself among them.
fn eligible(book: &Book, round: &Round<'_>) -> Vec<(Candidate, Vec<Candidate>)> {
    let by_keys = speaks_of_keys(round.settings).then(|| rivals(book, round));
    let (_, mut leased) = book.leased(round.queue);
    let mut heads: BTreeMap<i64, Candidate> = BTreeMap::new();
    let put = |heads: &mut BTreeMap<i64, Candidate>, one: Candidate| {
        let head = heads.entry(one.lane).or_insert(one);
        if one.seq < head.seq {
            *head = one;
        }
    };
    for one in &round.rest {
        put(&mut heads, *one);
    }
    let mut all = Vec::new();
    for (at, (pick, lent)) in round.picks.iter().enumerate().rev() {
        if let Some(rivals) = &by_keys {
            heads.clear();
            rivals[at].iter().for_each(|one| put(&mut heads, *one));
        }
        put(&mut heads, *pick);
        // As it was before this lease.
        if !lent.is_given {
            *leased.entry(pick.lane).or_insert(1) -= 1;
        }
        let floor = urgent_floor(book, round, at);
        let can = heads.values().filter(|head| {
            let cap = lane_cap(round.settings, head.lane);
            let is_capped = cap > 0 && leased.get(&head.lane).is_some_and(|leased| *leased >= cap);
            let lane = lane_name(round.settings, head.lane);
            let is_urgent = floor.is_none_or(|floor| lane.1 >= floor);
            !is_capped && is_urgent && takes(&lent.lanes, &lane)
        });
        all.push((*pick, can.copied().collect()));
    }
    all.reverse();
    all
}

/// Whoever takes from some lanes got nothing of others, and whoever takes from one got all from one.
fn check_choice(round: &Round<'_>) -> Checked {
    let mut taken: BTreeMap<ConsumerId, i64> = BTreeMap::new();
    for (pick, lent) in &round.picks {
        let is_chosen = takes(&lent.lanes, &lane_name(round.settings, pick.lane));
        let is_same = *taken.entry(lent.consumer).or_insert(pick.lane) == pick.lane;
        hold(is_chosen && (is_same || !lent.lanes.one), Promise::Pick, || {
            format!(
                "queue {} leased {} of lane {} for {:?}",
                round.queue.0, pick.seq.0, pick.lane, lent.lanes
            )
        })?;
    }
    Ok(())
}

/// The least urgent priority that whoever got this lease had room for, if not for any.
fn urgent_floor(book: &Book, round: &Round<'_>, at: usize) -> Option<i64> {
    let consumer = round.picks[at].1.consumer;
    let taker = book.takers.get(&consumer)?;
    let window = taker.window?;
    let later = round.picks[at..].iter().filter(|(_, lent)| lent.consumer == consumer).count() as u32;
    let held = window.taken() - later;
    if held < book.window_of(taker, window) {
        None
    } else {
        window.urgent.map(|urgent| i64::from(urgent.at.0))
    }
}

/// Of the eligible heads none has a lesser key than the one that was picked.
fn best<K: Ord>(
    round: &Round<'_>,
    pick: Candidate,
    eligible: &[Candidate],
    key: impl Fn(&Candidate) -> K,
) -> Checked {
    let better = eligible.iter().find(|head| key(head) < key(&pick));
    hold(better.is_none(), Promise::Pick, || {
        let better = better.expect("there is one");
        format!(
            "queue {} leased {} of lane {} before {} of lane {}",
            round.queue.0, pick.seq.0, pick.lane, better.seq.0, better.lane
        )
    })
}

impl Passed {
    /// A lane is passed over at most as often as the weights of the others allow.
    fn check(
        &mut self,
        round: &Round<'_>,
        pick: Candidate,
        eligible: &[Candidate],
        weights: &BTreeMap<String, u32>,
    ) -> Checked {
        if self.settings != *round.settings {
            *self = Self { settings: round.settings.clone(), lanes: BTreeMap::new() };
        }
        if eligible.iter().any(|head| !self.lanes.contains_key(&head.lane)) {
            let lanes = self.lanes.keys().copied().chain(eligible.iter().map(|head| head.lane));
            self.lanes = lanes.map(|lane| (lane, 0)).collect();
        }
        let weight =
            |lane: i64| u64::from(weights.get(&*lane_name(round.settings, lane).0).copied().unwrap_or(1));
        let sum: u64 = self.lanes.keys().map(|lane| weight(*lane)).sum();
        for (lane, passed) in &mut self.lanes {
            *passed = if *lane != pick.lane && eligible.iter().any(|head| head.lane == *lane) {
                *passed + 1
            } else {
                0
            };
            hold(*passed <= sum - weight(*lane), Promise::Pick, || {
                format!(
                    "queue {} passed lane {lane} over {passed} times, the others weigh {}",
                    round.queue.0,
                    sum - weight(*lane)
                )
            })?;
        }
        Ok(())
    }
}
