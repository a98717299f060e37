//! An id as a number.

use std::hash::Hasher;

use overtake_lane::QueueId;
use siphasher::sip::SipHasher24;

/// Hashes the ids of one queue: SipHash-2-4 of the bytes of the id, keyed with the store and the queue. Who knows neither cannot
/// choose ids that collide; and the same id in two queues is two numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdHasher(SipHasher24);

impl IdHasher {
    pub(crate) fn new(store_id: u64, queue: QueueId) -> Self {
        Self(SipHasher24::new_with_keys(store_id, u64::from(queue.0)))
    }

    pub(crate) fn hash(&self, id: &str) -> u64 {
        let mut hasher = self.0;
        hasher.write(id.as_bytes());
        hasher.finish()
    }
}

/// A message with an id, of a segment that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IdEntry {
    pub(crate) hash: u64,
    pub(crate) ordinal: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files are full of these numbers: they must be the same for ever.
    #[test]
    fn an_id_is_this_number() {
        // The vector of the authors of SipHash: key 00 to 0f, the bytes 00 to 0e.
        let sip = SipHasher24::new_with_keys(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(sip.hash(&(0..15).collect::<Vec<u8>>()), 0xa129_ca61_49be_45e5);
        let of = |store_id, queue| IdHasher::new(store_id, QueueId(queue)).hash("order-1");
        assert_eq!(of(42, 7), SipHasher24::new_with_keys(42, 7).hash(b"order-1"));
        assert!(of(42, 7) != of(42, 8) && of(42, 7) != of(43, 7));
    }
}
