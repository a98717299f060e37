//! What one core of this machine does at most: copying memory, missing the cache, and the plainest priority queues.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hint::black_box;

use crate::report::{Row, time};

/// Numbers that look random and are the same in every run (xorshift64*, Vigna 2016).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) * sides) >> 32
    }
}

/// 64 MiB copied again and again, counted in bytes.
pub(crate) fn memory_copy() -> Row {
    const LEN: usize = 64 << 20;
    let source = vec![7_u8; LEN];
    let mut target = vec![0_u8; LEN];
    target.copy_from_slice(&source);
    let took = time(|| {
        for _ in 0..8 {
            black_box(&mut target).copy_from_slice(black_box(&source));
        }
    });
    Row::new("copy memory", "bytes", 8 * LEN, took).reference()
}

/// One load after the other, each from where the one before points, over 128 MiB.
pub(crate) fn memory_miss() -> Row {
    const LEN: usize = 2 << 20;
    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Line(u32);
    let mut order: Vec<u32> = (0..LEN as u32).collect();
    let mut dice = Dice::new();
    for at in (1..LEN).rev() {
        order.swap(at, dice.roll(at as u64 + 1) as usize);
    }
    let mut lines = vec![Line(0); LEN];
    for pair in order.windows(2) {
        lines[pair[0] as usize] = Line(pair[1]);
    }
    let mut at = order[0];
    let took = time(|| {
        for _ in 0..LEN - 1 {
            at = lines[at as usize].0;
        }
    });
    black_box(at);
    Row::new("load from memory, each after the last", "loads", LEN - 1, took).reference()
}

/// A binary heap of (priority, sequence): one in, the first out, at this depth.
pub(crate) fn binary_heap(depth: usize, lanes: u64, cycles: usize) -> Row {
    let mut dice = Dice::new();
    let mut heap: BinaryHeap<(u64, Reverse<u64>)> = BinaryHeap::with_capacity(depth + 1);
    heap.extend((0..depth as u64).map(|seq| (dice.roll(lanes), Reverse(seq))));
    let took = time(|| {
        for seq in 0..cycles as u64 {
            heap.push((dice.roll(lanes), Reverse(depth as u64 + seq)));
            black_box(heap.pop());
        }
    });
    Row::new(format!("BinaryHeap of (priority, seq): push + pop, {lanes} priorities"), "cycles", cycles, took)
        .reference()
}

/// A B-tree of (priority, sequence): one in, the first out, at this depth.
pub(crate) fn btree(depth: usize, lanes: u64, cycles: usize) -> Row {
    let mut dice = Dice::new();
    let mut tree: BTreeMap<(Reverse<u64>, u64), u64> =
        (0..depth as u64).map(|seq| ((Reverse(dice.roll(lanes)), seq), seq)).collect();
    let took = time(|| {
        for seq in depth as u64..(depth + cycles) as u64 {
            tree.insert((Reverse(dice.roll(lanes)), seq), seq);
            black_box(tree.pop_first());
        }
    });
    Row::new(
        format!("BTreeMap of (priority, seq): insert + pop_first, {lanes} priorities"),
        "cycles",
        cycles,
        took,
    )
    .reference()
}
