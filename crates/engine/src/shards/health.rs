//! How shards are, taken together.

use crate::api::{Health, MemoryHealth};
use crate::work::{DiskWork, Distribution, SegmentWork};

/// Down or full as soon as one is; of the disk what is said of the one with the least room; all else is added up.
pub(super) fn of_all(each: impl Iterator<Item = Health>) -> Health {
    each.reduce(|all, one| Health {
        down: all.down.or(one.down),
        full: all.full.or(one.full),
        disk: [all.disk, one.disk].into_iter().flatten().min_by_key(|disk| disk.free),
        journal_bytes: all.journal_bytes + one.journal_bytes,
        memory: memory(all.memory, one.memory),
        damage: all.damage.and(one.damage),
        work: work(all.work, one.work),
        unsynced: all.unsynced + one.unsynced,
        servers: None,
        nodes: Vec::new(),
    })
    .unwrap_or_default()
}

fn memory(all: MemoryHealth, one: MemoryHealth) -> MemoryHealth {
    MemoryHealth {
        bytes: all.bytes + one.bytes,
        spilled: all.spilled + one.spilled,
        segments: all.segments + one.segments,
        segment_bytes: all.segment_bytes + one.segment_bytes,
        limit: all.limit + one.limit,
        inbox: all.inbox.with(one.inbox),
        pushed: all.pushed.with(one.pushed),
    }
}

fn work(all: DiskWork, one: DiskWork) -> DiskWork {
    DiskWork {
        written_bytes: all.written_bytes + one.written_bytes,
        commits_us: distribution(all.commits_us, &one.commits_us),
        commit_records: distribution(all.commit_records, &one.commit_records),
        carried_messages: all.carried_messages + one.carried_messages,
        spilled: segments(all.spilled, one.spilled),
        rewritten: segments(all.rewritten, one.rewritten),
        removed_segments: all.removed_segments + one.removed_segments,
    }
}

fn segments(all: SegmentWork, one: SegmentWork) -> SegmentWork {
    SegmentWork {
        segments: all.segments + one.segments,
        messages: all.messages + one.messages,
        bytes: all.bytes + one.bytes,
    }
}

/// Both have the same bounds.
fn distribution(mut all: Distribution, one: &Distribution) -> Distribution {
    for ((bound, count), (other, more)) in all.buckets.iter_mut().zip(&one.buckets) {
        assert_eq!(bound, other, "what is counted by one name is counted by the same bounds");
        *count += more;
    }
    all.count += one.count;
    all.sum += one.sum;
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watermarks::{DiskHealth, Full};

    fn disk(free: u64) -> Option<DiskHealth> {
        Some(DiskHealth { free, low: 1, high: 2, is_low: false })
    }

    #[test]
    fn one_that_is_ill_makes_all_ill_and_the_rest_is_added_up() {
        let commits = |buckets: &[(u64, u64)], count, sum| DiskWork {
            commits_us: Distribution { buckets: buckets.to_vec(), count, sum },
            written_bytes: 10,
            ..DiskWork::default()
        };
        let well = Health {
            disk: disk(7),
            journal_bytes: 3,
            work: commits(&[(1, 1), (10, 2)], 3, 40),
            ..Health::default()
        };
        let ill = Health {
            down: Some("a sync failed".into()),
            full: Some(Full::NoRoom),
            disk: disk(5),
            journal_bytes: 4,
            work: commits(&[(1, 0), (10, 4)], 4, 20),
            ..Health::default()
        };
        let all = of_all([well.clone(), ill.clone(), well.clone()].into_iter());
        assert_eq!((&all.down, all.full.clone(), all.disk), (&ill.down, ill.full.clone(), disk(5)));
        assert_eq!((all.journal_bytes, all.work.written_bytes), (10, 30));
        let commits = Distribution { buckets: vec![(1, 2), (10, 8)], count: 10, sum: 100 };
        assert_eq!(all.work.commits_us, commits);
        assert_eq!(of_all([well.clone()].into_iter()), well);
    }
}
