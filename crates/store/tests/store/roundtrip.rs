//! Whatever is written is read back: any sizes, any commits, any retiring, any number of lives.

use overtake_store::MemoryDisk;
use proptest::prelude::*;

use crate::common::{append, commit, open, shown};

#[derive(Clone, Debug)]
enum Deed {
    Append(usize, u8),
    Commit,
    Retire(usize),
    Reopen { power_cut: bool },
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        6 => (prop_oneof![0usize..40, 0usize..5_000, 0usize..61_000], any::<u8>()).prop_map(|(len, fill)| Deed::Append(len, fill)),
        4 => Just(Deed::Commit),
        1 => (0usize..30).prop_map(Deed::Retire),
        1 => any::<bool>().prop_map(|power_cut| Deed::Reopen { power_cut }),
    ];
    prop::collection::vec(deed, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_committed_comes_back(deeds in deeds(), seed: u64) {
        let disk = MemoryDisk::new(seed);
        let mut opened = open(&disk);
        let (mut committed, mut waiting) = (Vec::new(), Vec::new());
        for deed in deeds {
            match deed {
                Deed::Append(len, fill) => waiting.push(append(&mut opened, &vec![fill; len])),
                Deed::Commit => {
                    commit(&mut opened);
                    committed.append(&mut waiting);
                }
                Deed::Retire(n) => {
                    if let Some((lsn, _)) = committed.get(n) {
                        opened.writer.retire(*lsn);
                        opened.committer.retire().expect("retired");
                    }
                }
                Deed::Reopen { power_cut } => {
                    if power_cut { disk.power_cut() } else { disk.kill() }
                    opened = open(&disk);
                    waiting.clear();
                    let oldest = opened.writer.oldest_lsn();
                    committed.retain(|(lsn, _)| *lsn >= oldest);
                    prop_assert_eq!(&shown(&mut opened), &committed);
                }
            }
        }
    }
}
