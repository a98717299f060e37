//! Sequences of messages in order, four bytes each: the ready messages of a key, however many they are.
//!
//! The least one stands by itself, so a key with one message needs nothing else. The others lie in pieces of at most [`PIECE_LEN`], as
//! distances from the first sequence that came to the piece.

use std::collections::VecDeque;

use crate::ids::Seq;

/// Most sequences of a piece: one that comes in between moves no more than a KiB.
const PIECE_LEN: usize = 256;

/// At least one sequence.
#[derive(Clone, Debug)]
pub(crate) struct Seqs {
    first: Seq,
    /// All of them come after the first one, and those of a piece before those of the next. None is empty.
    pieces: VecDeque<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    base: Seq,
    /// Ascending.
    after: VecDeque<u32>,
}

/// Where a sequence stands that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    First,
    Behind,
    /// The sequence was there.
    Again,
}

impl Piece {
    fn of(seq: Seq) -> Self {
        Self { base: seq, after: VecDeque::from([0]) }
    }

    fn last(&self) -> Seq {
        Seq(self.base.0 + u64::from(*self.after.back().expect("no piece is empty")))
    }

    /// How far a sequence is from the base, if that can be said here.
    fn distance(&self, seq: Seq) -> Option<u32> {
        seq.0.checked_sub(self.base.0).and_then(|distance| u32::try_from(distance).ok())
    }

    /// Has an earlier base. False: its last sequence would be too far from it.
    fn rebase(&mut self, base: Seq) -> bool {
        let Ok(by) = u32::try_from(self.base.0 - base.0) else { return false };
        if self.after.back().is_none_or(|last| last.checked_add(by).is_none()) {
            return false;
        }
        self.after.iter_mut().for_each(|after| *after += by);
        self.base = base;
        true
    }
}

impl Seqs {
    pub(crate) fn one(first: Seq) -> Self {
        Self { first, pieces: VecDeque::new() }
    }

    pub(crate) fn first(&self) -> Seq {
        self.first
    }

    pub(crate) fn insert(&mut self, seq: Seq) -> Came {
        if seq == self.first {
            return Came::Again;
        }
        if seq < self.first {
            let second = std::mem::replace(&mut self.first, seq);
            self.insert_behind(second);
            return Came::First;
        }
        if self.insert_behind(seq) { Came::Behind } else { Came::Again }
    }

    /// False: it was there.
    fn insert_behind(&mut self, seq: Seq) -> bool {
        let newest = self.pieces.back_mut().filter(|piece| piece.last() < seq);
        if let Some(newest) = newest {
            match newest.distance(seq).filter(|_| newest.after.len() < PIECE_LEN) {
                Some(distance) => newest.after.push_back(distance),
                None => self.pieces.push_back(Piece::of(seq)),
            }
            return true;
        }
        let Some(at) = self.piece_of(seq) else {
            let oldest = self.pieces.front_mut().filter(|piece| piece.after.len() < PIECE_LEN);
            if let Some(oldest) = oldest
                && (oldest.base <= seq || oldest.rebase(seq))
            {
                oldest.after.push_front((seq.0 - oldest.base.0) as u32);
            } else {
                self.pieces.push_front(Piece::of(seq));
            }
            return true;
        };
        let piece = &mut self.pieces[at];
        let Some(distance) = piece.distance(seq) else {
            self.pieces.insert(at + 1, Piece::of(seq));
            return true;
        };
        let Err(place) = piece.after.binary_search(&distance) else { return false };
        piece.after.insert(place, distance);
        if piece.after.len() > PIECE_LEN {
            let (base, after) = (piece.base, piece.after.split_off(PIECE_LEN / 2));
            self.pieces.insert(at + 1, Piece { base, after });
        }
        true
    }

    /// The last piece that begins at or before a sequence.
    fn piece_of(&self, seq: Seq) -> Option<usize> {
        let first = |piece: &Piece| Seq(piece.base.0 + u64::from(piece.after[0]));
        self.pieces.partition_point(|piece| first(piece) <= seq).checked_sub(1)
    }

    /// Whether it was there. `None`: it was the only one.
    pub(crate) fn remove(&mut self, seq: Seq) -> Option<bool> {
        if seq == self.first {
            self.first = self.pop_piece()?;
            return Some(true);
        }
        let Some(at) = self.piece_of(seq) else { return Some(false) };
        let piece = &mut self.pieces[at];
        let place = piece.distance(seq).and_then(|distance| piece.after.binary_search(&distance).ok());
        let Some(place) = place else { return Some(false) };
        piece.after.remove(place);
        if piece.after.is_empty() {
            self.pieces.remove(at);
        }
        Some(true)
    }

    /// The least one behind the first.
    fn pop_piece(&mut self) -> Option<Seq> {
        let piece = self.pieces.front_mut()?;
        let seq = Seq(piece.base.0 + u64::from(piece.after.pop_front()?));
        if piece.after.is_empty() {
            self.pieces.pop_front();
        }
        Some(seq)
    }

    /// Frees a piece. False: there is none.
    pub(crate) fn clear_piece(&mut self) -> bool {
        self.pieces.pop_back().is_some()
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Seq> + '_ {
        let behind = self
            .pieces
            .iter()
            .flat_map(|piece| piece.after.iter().map(|after| Seq(piece.base.0 + u64::from(*after))));
        std::iter::once(self.first).chain(behind)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Insert(u64),
        Remove(u64),
        RemoveNth(usize),
        Pop,
    }

    fn op() -> impl Strategy<Value = Op> {
        let near = 0..3_000_u64;
        let far = prop_oneof![near.clone(), near.clone().prop_map(|seq| seq + (1 << 33)), any::<u64>()];
        prop_oneof![
            6 => far.prop_map(Op::Insert),
            2 => near.prop_map(Op::Remove),
            2 => any::<usize>().prop_map(Op::RemoveNth),
            1 => Just(Op::Pop),
        ]
    }

    proptest! {
        #[test]
        fn they_are_a_sorted_set(runs in prop::collection::vec((0..3_000_u64, 0..900_u64), 0..3), ops in prop::collection::vec(op(), 0..600)) {
            let mut there: BTreeSet<u64> = BTreeSet::from([7]);
            let mut seqs = Seqs::one(Seq(7));
            let rows = runs.into_iter().flat_map(|(from, len)| (from..from + len).map(Op::Insert));
            for op in rows.chain(ops) {
                let seq = match op {
                    Op::Insert(seq) => {
                        let is_first = there.first().is_some_and(|first| seq < *first);
                        let expected = match (there.insert(seq), is_first) {
                            (false, _) => Came::Again,
                            (true, true) => Came::First,
                            (true, false) => Came::Behind,
                        };
                        prop_assert_eq!(seqs.insert(Seq(seq)), expected);
                        continue;
                    }
                    Op::Remove(seq) => seq,
                    Op::RemoveNth(nth) => *there.iter().nth(nth % there.len()).expect("it is not empty"),
                    Op::Pop => *there.first().expect("it is not empty"),
                };
                let was_there = there.remove(&seq);
                if there.is_empty() {
                    prop_assert_eq!(seqs.remove(Seq(seq)), None);
                    there.insert(7);
                    seqs = Seqs::one(Seq(7));
                    continue;
                }
                prop_assert_eq!(seqs.remove(Seq(seq)), Some(was_there));
                prop_assert_eq!(seqs.first(), Seq(*there.first().expect("it is not empty")));
            }
            prop_assert!(seqs.iter().map(|seq| seq.0).eq(there.iter().copied()));
            prop_assert!(seqs.pieces.iter().all(|piece| (1..=PIECE_LEN).contains(&piece.after.len())));
        }
    }
}
