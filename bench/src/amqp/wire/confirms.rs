//! Which of the published messages are safe: a broker confirms one, or all up to one, in any order.

use std::collections::VecDeque;

use anyhow::{Result, bail};

/// Tags count from 1 as messages are published; numbers from 0.
#[derive(Default)]
pub(super) struct Confirms {
    published: u64,
    /// All before this number are confirmed.
    first: u64,
    /// Whether those from there on are.
    early: VecDeque<bool>,
}

impl Confirms {
    /// One more was; its number.
    pub(super) fn published(&mut self) -> u64 {
        self.published += 1;
        self.published - 1
    }

    /// Tells each number that is newly confirmed.
    ///
    /// # Errors
    /// When a message is confirmed twice, or before it was published.
    pub(super) fn ack(&mut self, tag: u64, multiple: bool, each: &mut dyn FnMut(u64)) -> Result<()> {
        if tag > self.published || tag <= self.first {
            bail!(
                "tag {tag} was confirmed, of {} published and {} confirmed before",
                self.published,
                self.first
            );
        }
        if multiple {
            self.all_before(tag, each);
        } else {
            self.one(tag - 1, each)?;
        }
        while self.early.front() == Some(&true) {
            self.early.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    fn all_before(&mut self, end: u64, each: &mut dyn FnMut(u64)) {
        while self.first < end {
            if !self.early.pop_front().unwrap_or(false) {
                each(self.first);
            }
            self.first += 1;
        }
    }

    fn one(&mut self, number: u64, each: &mut dyn FnMut(u64)) -> Result<()> {
        let at = (number - self.first) as usize;
        if self.early.len() <= at {
            self.early.resize(at + 1, false);
        }
        if std::mem::replace(&mut self.early[at], true) {
            bail!("message {number} was confirmed twice");
        }
        each(number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(acks: &[(u64, bool)]) -> Result<Vec<u64>> {
        let (mut confirms, mut seen) = (Confirms { published: 5, ..Confirms::default() }, Vec::new());
        for (tag, multiple) in acks {
            confirms.ack(*tag, *multiple, &mut |number| seen.push(number))?;
        }
        Ok(seen)
    }

    #[test]
    fn each_is_told_once_in_whatever_order_they_are_confirmed() {
        let check = |acks: &[(u64, bool)], numbers: &[u64]| assert_eq!(seen(acks).expect("right"), numbers);
        check(&[(5, true)], &[0, 1, 2, 3, 4]);
        check(&[(2, false), (4, false), (3, true), (5, false)], &[1, 3, 0, 2, 4]);
        check(&[(1, false), (2, false), (4, true)], &[0, 1, 2, 3]);
    }

    #[test]
    fn what_was_confirmed_or_never_published_is_not_confirmed() {
        assert!(seen(&[(6, false)]).is_err());
        assert!(seen(&[(3, true), (2, false)]).is_err());
        assert!(seen(&[(3, false), (3, false)]).is_err());
        assert!(seen(&[(0, true)]).is_err());
    }
}
