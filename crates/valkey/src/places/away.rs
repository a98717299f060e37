//! Places that are not served, as their primary does not answer: they are left out while the others go on, and are back as soon as somebody serves them.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use overtake_lane::{LeaseId, PlaceNumber, Seq, State};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::{NotDone, PATIENCE, Places};
use crate::cluster::{Slot, Unserved};
use crate::functions::{Asked, How, Leasing, Settle, Shown, Sweep};

/// The numbers of places that are not served.
pub(super) type Away = BTreeSet<PlaceNumber>;

impl Places {
    fn away(&self) -> watch::Ref<'_, Away> {
        self.away.borrow()
    }

    /// Why not all of them are known to have nothing; `None`: all are served.
    pub(super) fn unserved(&self) -> Option<NotDone> {
        let away = self.away().iter().copied().collect::<Vec<_>>();
        let down =
            self.cluster.nodes().into_iter().filter(|node| node.slots > 0).find_map(|node| node.trouble());
        (!away.is_empty()).then_some(NotDone::Unserved(away, down))
    }

    /// Whether this one is served.
    #[must_use]
    pub fn is_served(&self, place: PlaceNumber) -> bool {
        !self.away().contains(&place)
    }

    /// Ends when some are not served.
    pub async fn until_some_unserved(&self) {
        // The sender is there as long as this is.
        let _ = self.away.subscribe().wait_for(|away| !away.is_empty()).await;
    }

    /// Asks every place that is served the same, at once.
    ///
    /// # Errors
    /// [`NotDone`], of the first of which there is no answer, or [`NotDone::Unserved`]: the others were asked.
    pub async fn ask_served<A: Asked>(&self, ask: &A, deadline: Instant) -> Result<(), NotDone> {
        let away = self.away().clone();
        let served = (0..self.count()).filter(|place| !away.contains(place));
        let asked = super::together(served.map(|place| async move {
            tokio::select! {
                answer = self.ask(place, ask, deadline) => answer.map(drop),
                // Places that are away are named below.
                () = self.until_away(place) => Ok(()),
            }
        }));
        asked.await.into_iter().collect::<Result<(), _>>()?;
        self.unserved().map_or(Ok(()), Err)
    }

    pub(super) async fn until_away(&self, place: PlaceNumber) {
        let _ = self.away.subscribe().wait_for(|away| away.contains(&place)).await;
    }

    /// Leases at a place. Nobody waits for it once it is not served; what it gives by then, or when whoever asked is gone, is put back.
    pub(super) async fn lease_at(
        &self,
        place: PlaceNumber,
        want: Leasing,
        deadline: Instant,
    ) -> Result<(u64, Vec<overtake_lane::Head>, Vec<Shown>), NotDone> {
        let (answer, answered) = oneshot::channel();
        let me = self.me.upgrade().ok_or(NotDone::Gone)?;
        tokio::spawn(async move {
            if let Err(Ok((calls, heads, shown))) = answer.send(me.call(place, &want, deadline).await) {
                me.heads.tell(place, calls, heads);
                me.put_back(place, &shown).await;
            }
        });
        tokio::select! {
            answered = answered => answered.unwrap_or(Err(NotDone::Gone)),
            () = self.until_away(place) => Err(self.unserved().unwrap_or(NotDone::Unserved(vec![place], None))),
        }
    }

    /// Puts back messages that nobody was given.
    async fn put_back(&self, place: PlaceNumber, shown: &[Shown]) {
        let lease = |shown: &Shown| match shown.stored.message.state {
            State::Leased { lease, .. } => Some((shown.stored.message.seq, lease)),
            _ => None,
        };
        let leases: Vec<(Seq, LeaseId)> = shown.iter().filter_map(lease).collect();
        if !leases.is_empty() {
            // Otherwise the lease ends when its time is over, or with a sign of life.
            let _ = self.ask(place, &Settle { how: How::Untaken, leases }, Instant::now() + PATIENCE).await;
        }
    }

    /// A place is served again: it may have missed what holds, and is asked what it has.
    async fn is_back(&self, place: PlaceNumber) {
        let rule = self.rule.lock().expect("nobody panics with it").clone();
        let until = Instant::now() + PATIENCE;
        // Otherwise the next call that finds the place gone tells the rule.
        match rule {
            Some(rule) => drop(self.tell_rule(place, &rule, until).await),
            None => drop(self.ask(place, &Sweep, until).await),
        }
    }

    /// Notes which places are not served now, and asks those that are again.
    fn keep_apart(self: &Arc<Self>, unserved: &Unserved) {
        let away: Away = (0..self.count())
            .filter(|place| unserved.has(Slot::of(self.places[*place as usize].base.as_bytes())))
            .collect();
        let before = self.away().clone();
        if away == before {
            return;
        }
        for place in before.symmetric_difference(&away) {
            self.heads.set_away(*place, away.contains(place));
        }
        self.away.send_replace(away.clone());
        for place in before.difference(&away).copied() {
            let me = Arc::clone(self);
            tokio::spawn(async move { me.is_back(place).await });
        }
    }
}

/// Follows which places are served.
pub(super) async fn follow(places: Weak<Places>) {
    let Some(mut unserved) = places.upgrade().map(|all| all.cluster.unserved()) else { return };
    loop {
        let Some(all) = places.upgrade() else { return };
        all.keep_apart(&unserved);
        drop(all);
        if !unserved.changed().await {
            return;
        }
    }
}
