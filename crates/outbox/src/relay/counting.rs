//! How far the groups of consumers are, counted beside what is published; of a group that never reads a lane the log says so.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::Trouble;
use super::upkeep::COUNTING_PART;
use crate::database::Database;
use crate::metrics::{GroupLag, Watch, bounded};
use crate::sink::Groups;

pub(super) struct Counting {
    pub(super) groups: Box<dyn Groups>,
    pub(super) database: Database,
    pub(super) every: Duration,
    /// Most groups of a category that are named.
    pub(super) named_max: usize,
    pub(super) watch: Watch,
}

impl Counting {
    pub(super) async fn run(self) {
        let mut trouble = Trouble::new("not all groups of consumers can be counted");
        let mut unread = Unread::default();
        // Of what was written before this relay began.
        let mut before = None;
        loop {
            let began = Instant::now();
            if before.is_none() {
                before = self.database.streams().await.ok();
            }
            let (groups, faults) = self.groups.count(before.as_deref().unwrap_or_default()).await;
            if faults.is_empty() {
                trouble.is_over();
            } else {
                trouble.says(faults.join("; "));
            }
            let bounded = bounded(groups.clone(), self.named_max);
            self.watch.count(|seen| seen.groups = bounded);
            unread.changed(&groups).for_each(tell);
            tokio::time::sleep(self.every.max(began.elapsed() * COUNTING_PART)).await;
        }
    }
}

/// The groups that never read a lane, as they were told last: category, group, stream.
#[derive(Default)]
struct Unread(BTreeSet<(String, String, String)>);

impl Unread {
    /// The groups of which something else is to be told than last time. A group that was not counted now stays as it was told.
    fn changed<'g>(&mut self, groups: &'g [GroupLag]) -> impl Iterator<Item = &'g GroupLag> {
        groups.iter().filter(|lag| {
            let group = lag.group.clone().unwrap_or_default();
            let key = (lag.category.clone(), group, lag.stream.clone());
            if lag.is_unread { self.0.insert(key) } else { self.0.remove(&key) }
        })
    }
}

fn tell(lag: &GroupLag) {
    let GroupLag { category, stream, waiting, .. } = lag;
    let group = lag.group.as_deref().unwrap_or_default();
    if lag.is_unread {
        tracing::warn!(
            %category, %group, %stream, entries = waiting,
            "entries of the backfill lane wait, and this group reads the primary lane only: give its reader the priority lanes of this relay, with the same suffix"
        );
    } else {
        tracing::info!(%category, %group, %stream, "this group reads the backfill lane now, or nothing waits there");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_never_reads_a_lane_is_told_once_until_it_changes() {
        let lag = |group: &str, is_unread| GroupLag {
            category: "order".to_owned(),
            group: Some(group.to_owned()),
            lane: "backfill",
            stream: "order:backfill".to_owned(),
            waiting: 1,
            pending: 0,
            oldest_s: 0,
            is_unread,
        };
        let mut unread = Unread::default();
        let mut told = |groups: &[GroupLag]| {
            let changed = unread.changed(groups);
            changed.map(|lag| (lag.group.clone().expect("a name"), lag.is_unread)).collect::<Vec<_>>()
        };
        let (mails, bills) = ("mails".to_owned(), "bills".to_owned());
        assert_eq!(told(&[lag("mails", true), lag("bills", false)]), [(mails.clone(), true)]);
        assert_eq!(told(&[lag("mails", true), lag("bills", true)]), [(bills, true)]);
        assert_eq!(told(&[]), [], "nothing could be asked");
        assert_eq!(told(&[lag("mails", true)]), []);
        assert_eq!(told(&[lag("mails", false)]), [(mails.clone(), false)]);
        assert_eq!(told(&[lag("mails", true)]), [(mails, true)]);
    }
}
