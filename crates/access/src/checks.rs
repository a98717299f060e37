//! Passwords are compared here: who waits for it, how long, and who goes first.
//!
//! ```text
//!   remembered? ─▶ a place ─▶ turn of the name in its block ─▶ turn of the block ─▶ a name that is slowed waits ─▶ compared
//!        │           │ full: crowded   slowed after 3 failures     one at a time      after 20 failures from       2 at once
//!        └▶ right                                                                     anywhere; no regulars     regulars: 1 more
//! ```
//!
//! Comparing takes tens of milliseconds of a processor and 19 MiB, by intent, so strangers could keep everybody out by asking for it
//! often. What holds:
//!
//! - A password that was right is remembered until its user's password changes, and waits for nobody.
//! - A [`Block`] of addresses has one comparison at a time, and turns go from block to block. So a stranger waits for one comparison
//!   of each other block, however many logins those have waiting.
//! - A regular (a name from a block that logged in well before) has a processor and places apart, which strangers cannot take.
//! - Guessing a name's password is slowed wherever it comes from. Whoever is remembered, or a regular, does not wait for that.
//! - Nobody waits long to be told so: a login whose name has others before it for [`PATIENCE`] is refused, as most clients give up by then.
//! - Places are bounded, and one block gets at most half of what is left; beyond that a login is refused at once.
//! - A login that is given up keeps its turn until its comparison has ended: to hang up does not buy another one.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overtake_lane::NAME_LEN_MAX;
use tokio::sync::{OwnedMutexGuard, Semaphore};
use tokio::time::Instant;

use crate::attempts::{Attempts, Slowing};
use crate::identity::Roll;
use crate::known::{Known, Regulars};
use crate::password::{BadPassword, PasswordHash};

/// Passwords of strangers compared at once: each takes a processor and 19 MiB.
const STRANGERS_AT_ONCE: usize = 2;
/// Passwords of regulars, and new ones of administrators, compared or kept at once besides.
const REGULARS_AT_ONCE: usize = 1;
/// Logins that wait or are compared, of strangers; as many of regulars.
const PLACES_MAX: usize = 4_096;
/// One block gets at most this part of the places that are left.
const SHARE_OF_WHAT_IS_LEFT: usize = 2;
/// What failures of a name from one block cost.
const FROM_A_BLOCK: Slowing =
    Slowing { free: 3, first: Duration::from_millis(250), longest: Duration::from_secs(8) };
/// What failures of a name cost wherever they come from: more are free and waits are shorter, since the owner may be among those who wait.
/// So nobody guesses one name's password more than once a second for long.
const FROM_ANYWHERE: Slowing =
    Slowing { free: 20, first: Duration::from_millis(250), longest: Duration::from_secs(1) };

/// The longest time that a login waits for others of its name.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a password is compared: [`PasswordHash::is_of`], or something that a test counts.
pub(crate) type Compare = Arc<dyn Fn(Option<&PasswordHash>, &str) -> bool + Send + Sync>;

/// Addresses that one party is likely to have all of: one of IPv4, a /64 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Block(IpAddr);

impl Block {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => Self(IpAddr::V6((address.to_bits() >> 64 << 64).into())),
            v4 @ IpAddr::V4(_) => Self(v4),
        }
    }
}

/// What came of comparing a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Right,
    /// Wrong so many times in a row by now, from this block.
    Wrong(u32),
    /// Not compared: too many logins wait.
    Crowded,
}

/// Where passwords are compared.
pub(crate) struct Checks {
    compare: Compare,
    known: Known,
    regulars: Regulars<(Block, Arc<str>)>,
    from_a_block: Attempts<(Block, Arc<str>)>,
    from_anywhere: Attempts<Arc<str>>,
    for_strangers: Room<Block>,
    for_regulars: Room<(Block, Arc<str>)>,
}

impl Checks {
    /// `key` is at random.
    pub(crate) fn new(key: [u8; 32], compare: Compare) -> Self {
        Self {
            compare,
            known: Known::new(key),
            regulars: Regulars::default(),
            from_a_block: Attempts::default(),
            from_anywhere: Attempts::default(),
            for_strangers: Room::new(STRANGERS_AT_ONCE),
            for_regulars: Room::new(REGULARS_AT_ONCE),
        }
    }

    /// Whether this is the password of this user, who comes from there. `None` for `roll`: nobody's password is right, and it takes as
    /// long to find that out.
    pub(crate) async fn check(
        &self,
        roll: Option<&Roll>,
        user: &str,
        password: &str,
        from: IpAddr,
    ) -> Checked {
        // A text that is too long to be a name is nobody's.
        let user = if user.len() > NAME_LEN_MAX { "" } else { user };
        let kept = || roll.and_then(|roll| roll.now().user(user)?.account.password.clone());
        let shown = self.known.shown(user, password);
        let is_known = || kept().is_some_and(|hash| self.known.has(user, &shown, &hash));
        if is_known() {
            return Checked::Right;
        }
        let (block, name): (_, Arc<str>) = (Block::of(from), user.into());
        let pair = (block, Arc::clone(&name));
        let is_regular = self.regulars.has(&pair);
        let place = if is_regular {
            self.for_regulars.enter(pair.clone()).map(Place::Regular)
        } else {
            self.for_strangers.enter(block).map(Place::Stranger)
        };
        let Some(place) = place else { return Checked::Crowded };

        let until = Instant::now() + PATIENCE;
        let from_a_block = self.from_a_block.of(&pair);
        let Ok(mut from_a_block) = tokio::time::timeout_at(until, from_a_block.lock()).await else {
            return Checked::Crowded;
        };
        // Whoever came before may have shown the same.
        if is_known() {
            return Checked::Right;
        }
        let wait = from_a_block.wait(&FROM_A_BLOCK);
        // A sleep of no time takes up to a millisecond.
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let from_anywhere = self.from_anywhere.of(&name);
        let mut was_slowed = is_regular;
        let turn = loop {
            let turn = place.turn().await;
            if is_known() {
                return Checked::Right;
            }
            // Asked only now, so that many at once from everywhere are no faster.
            let wait = match was_slowed {
                true => Some(Duration::ZERO),
                false => {
                    let patience = until.saturating_duration_since(Instant::now());
                    from_anywhere.lock().await.slot(&FROM_ANYWHERE, patience)
                }
            };
            let Some(wait) = wait else { return Checked::Crowded };
            if wait.is_zero() {
                break turn;
            }
            drop(turn);
            tokio::time::sleep(wait).await;
            was_slowed = true;
        };
        let hash = kept();
        if self.compare((turn, place), hash.clone(), password.to_owned()).await {
            from_a_block.right();
            self.regulars.remember(pair);
            if let Some(hash) = hash {
                self.known.remember(&name, shown, hash);
            }
            return Checked::Right;
        }
        from_anywhere.lock().await.wrong();
        Checked::Wrong(from_a_block.wrong())
    }

    async fn compare(&self, turn: (Turn, Place), hash: Option<PasswordHash>, password: String) -> bool {
        let compare = Arc::clone(&self.compare);
        let compared = tokio::task::spawn_blocking(move || {
            let is_right = compare(hash.as_ref(), &password);
            // The turn before the place: as long as somebody has the turn, all of the party wait for the same one.
            drop(turn);
            is_right
        });
        compared.await.unwrap_or(false)
    }

    /// Keeps a new password, which an administrator sets. Waits for no stranger.
    ///
    /// # Errors
    /// [`BadPassword`].
    pub(crate) async fn hashed(&self, password: String) -> Result<PasswordHash, BadPassword> {
        let at_once = Arc::clone(&self.for_regulars.at_once).acquire_owned().await;
        let at_once = at_once.expect("it is never closed");
        let hashed = tokio::task::spawn_blocking(move || {
            let hashed = PasswordHash::of(&password);
            drop(at_once);
            hashed
        });
        hashed.await.unwrap_or_else(|error| Err(BadPassword(format!("the password cannot be kept: {error}"))))
    }
}

/// Logins that wait, by whose they are, and how many are compared at once.
struct Room<K> {
    taken: Arc<Mutex<Taken<K>>>,
    at_once: Arc<Semaphore>,
}

struct Taken<K> {
    count: usize,
    by: HashMap<K, Waiting>,
}

/// The logins of one party.
struct Waiting {
    count: usize,
    /// Held by the one that is compared.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// What a login holds while it is compared.
type Turn = (OwnedMutexGuard<()>, tokio::sync::OwnedSemaphorePermit);

impl<K: Clone + Eq + Hash> Room<K> {
    fn new(at_once: usize) -> Self {
        let taken = Taken { count: 0, by: HashMap::new() };
        Self { taken: Arc::new(Mutex::new(taken)), at_once: Arc::new(Semaphore::new(at_once)) }
    }

    /// A place for one more login of this party. `None`: it has its share already, or there is none left.
    fn enter(&self, whose: K) -> Option<Held<K>> {
        let mut taken = lock(&self.taken);
        let left = PLACES_MAX - taken.count;
        let has = taken.by.get(&whose).map_or(0, |waiting| waiting.count);
        // Whoever has none gets one as long as there is any.
        if left == 0 || has > left / SHARE_OF_WHAT_IS_LEFT {
            return None;
        }
        taken.count += 1;
        let waiting =
            taken.by.entry(whose.clone()).or_insert_with(|| Waiting { count: 0, turn: Arc::default() });
        waiting.count += 1;
        let turn = Arc::clone(&waiting.turn);
        Some(Held { taken: Arc::clone(&self.taken), whose, turn, at_once: Arc::clone(&self.at_once) })
    }
}

/// The place of one login.
struct Held<K: Eq + Hash> {
    taken: Arc<Mutex<Taken<K>>>,
    whose: K,
    turn: Arc<tokio::sync::Mutex<()>>,
    at_once: Arc<Semaphore>,
}

impl<K: Eq + Hash> Held<K> {
    /// Both wait in the order in which they are asked. Since a party asks for the second with one login at a time, that is one of each
    /// party after the other.
    async fn turn(&self) -> Turn {
        let own = Arc::clone(&self.turn).lock_owned().await;
        let at_once = Arc::clone(&self.at_once).acquire_owned().await;
        (own, at_once.expect("it is never closed"))
    }
}

impl<K: Eq + Hash> Drop for Held<K> {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.count -= 1;
        if let Some(waiting) = taken.by.get_mut(&self.whose) {
            waiting.count -= 1;
            if waiting.count == 0 {
                taken.by.remove(&self.whose);
            }
        }
    }
}

enum Place {
    Stranger(Held<Block>),
    Regular(Held<(Block, Arc<str>)>),
}

impl Place {
    async fn turn(&self) -> Turn {
        match self {
            Self::Stranger(held) => held.turn().await,
            Self::Regular(held) => held.turn().await,
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
