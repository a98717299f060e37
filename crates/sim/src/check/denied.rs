//! *Denied*: what one recovery did not show, no later one shows. Each attempt to publish has a mark of its own, so a mark
//! that a recovery does not show has either left or never came, and must not be seen again.

use std::collections::BTreeSet;

use overtake_engine::LeasedMessage;

use crate::failure::{Checked, Promise, hold};
use crate::refold::{Refold, mark_of};

/// Marks that must not be seen again.
#[derive(Debug, Default)]
pub(crate) struct Denied {
    marks: BTreeSet<u64>,
    /// Marks below this have been judged.
    judged: u64,
    /// Marks the last recovery showed.
    shown: BTreeSet<u64>,
}

impl Denied {
    /// `next` is the first mark that was not used yet.
    pub(crate) fn recovered(&mut self, refold: &Refold, next: u64) -> Checked {
        let shown: BTreeSet<u64> = refold.marks().into_values().collect();
        if let Some(mark) = shown.iter().find(|mark| self.marks.contains(mark)) {
            hold(false, Promise::Denied, || {
                format!("a recovery shows m/{mark}, which an earlier one did not")
            })?;
        }
        self.marks
            .extend(self.shown.iter().copied().chain(self.judged..next).filter(|mark| !shown.contains(mark)));
        (self.judged, self.shown) = (next, shown);
        Ok(())
    }

    /// The connection broke before all of it had arrived.
    pub(crate) fn never_sent(&mut self, mark: u64) {
        self.marks.insert(mark);
    }

    pub(crate) fn check_lent(&self, message: &LeasedMessage) -> Checked {
        let mark = mark_of(message.content.content_type());
        hold(mark.is_none_or(|mark| !self.marks.contains(&mark)), Promise::Denied, || {
            format!("{} delivers {mark:?}, which a recovery did not show", message.receipt)
        })
    }
}
