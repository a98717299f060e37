//! With a comparison that the tests hold: it says which password is looked at, and waits until it may go on.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::mpsc;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::directory::{Account, Change, Directory};
use crate::password::Hashing;

/// Passwords that are right are those whose text the hash was made of.
struct World {
    checks: Arc<Checks>,
    roll: Roll,
    /// Which passwords are looked at, in order.
    looked: tokio::sync::mpsc::Receiver<String>,
    /// One of them goes on for each of these.
    go_on: mpsc::SyncSender<()>,
}

fn address(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
}

/// RabbitMQ's kind of hash, since Argon2 takes long in a test.
fn hash(password: &str) -> PasswordHash {
    use base64::Engine as _;
    let salt = [1, 2, 3, 4];
    let digest = sha2::Digest::finalize(sha2::Digest::chain_update(
        <sha2::Sha256 as sha2::Digest>::new_with_prefix(salt),
        password,
    ));
    let text = base64::engine::general_purpose::STANDARD.encode([&salt[..], &digest].concat());
    PasswordHash::imported(Hashing::Sha256, &text).expect("a hash")
}

fn roll(users: &[(&str, &str)]) -> Directory {
    let mut directory = Directory::default();
    for (name, password) in users {
        let account = Account { password: Some(hash(password)), ..Account::default() };
        let put = Change::PutUser { name: (*name).into(), account };
        for entry in directory.entries(&[put]).expect("it can be made") {
            directory.fold(&entry.key, entry.value.as_deref()).expect("it can be read");
        }
    }
    directory
}

impl World {
    /// With these users and passwords.
    fn new(users: &[(&str, &str)]) -> Self {
        let (look, looked) = tokio::sync::mpsc::channel(256);
        let (go_on, may_go) = mpsc::sync_channel(256);
        let may_go = Mutex::new(may_go);
        let compare = move |hash: Option<&PasswordHash>, password: &str| {
            look.try_send(password.to_owned()).expect("the test looks");
            // Once the test is over, nothing waits.
            let _ = lock(&may_go).recv();
            hash.is_some_and(|kept| *kept == self::hash(password))
        };
        let everybody = Roll::default();
        everybody.replace(roll(users));
        let checks = Arc::new(Checks::new([7; 32], Arc::new(compare)));
        Self { checks, roll: everybody, looked, go_on }
    }

    fn begin(&self, user: &str, password: &str, from: IpAddr) -> JoinHandle<Checked> {
        let (checks, roll) = (Arc::clone(&self.checks), self.roll.clone());
        let (user, password) = (user.to_owned(), password.to_owned());
        tokio::spawn(async move { checks.check(Some(&roll), &user, &password, from).await })
    }

    /// All that can begin has begun.
    async fn settle(&self) {
        for _ in 0..64 {
            tokio::task::yield_now().await;
        }
    }

    async fn next(&mut self) -> String {
        self.looked.recv().await.expect("somebody compares")
    }

    fn go(&self) {
        self.go_on.send(()).expect("somebody compares");
    }

    /// From beginning to end, where nothing else is compared.
    async fn check(&mut self, user: &str, password: &str, from: IpAddr) -> Checked {
        self.go();
        self.begin(user, password, from).await.expect("it ends")
    }

    fn compared(&mut self) -> usize {
        std::iter::from_fn(|| self.looked.try_recv().ok()).count()
    }
}

#[tokio::test]
async fn a_right_password_is_compared_once_until_its_own_user_changes() {
    let mut world = World::new(&[("ann", "secret"), ("bob", "other")]);
    assert_eq!(world.check("ann", "secret", address(1)).await, Checked::Right);
    assert_eq!(world.compared(), 1);
    for from in [1, 2] {
        let known = world.begin("ann", "secret", address(from)).await.expect("it ends");
        assert_eq!((known, world.compared()), (Checked::Right, 0));
    }
    world.roll.replace(roll(&[("ann", "secret"), ("bob", "changed"), ("eve", "new")]));
    let known = world.begin("ann", "secret", address(1)).await.expect("it ends");
    assert_eq!((known, world.compared()), (Checked::Right, 0), "somebody else changed");
    world.roll.replace(roll(&[("ann", "changed")]));
    assert_eq!(world.check("ann", "secret", address(1)).await, Checked::Wrong(1));
    assert_eq!(world.compared(), 1);
    world.roll.replace(roll(&[]));
    assert_eq!(world.check("ann", "changed", address(1)).await, Checked::Wrong(2));
}

#[tokio::test]
async fn turns_go_from_block_to_block_and_two_are_compared_at_once() {
    let mut world = World::new(&[("ann", "secret")]);
    let many: Vec<_> = (0..50).map(|at| world.begin(&format!("u{at}"), "flood", address(1))).collect();
    assert_eq!(world.next().await, "flood");
    let second = world.begin("ann", "second", address(2));
    assert_eq!(world.next().await, "second", "a block has one comparison at a time");
    let third = world.begin("ann", "third", address(3));
    world.settle().await;
    assert!(world.looked.try_recv().is_err(), "two are compared at once");
    world.go();
    world.go();
    let next = [world.next().await, world.next().await];
    assert!(next.contains(&"third".to_owned()), "it waits for one of the flood at most: {next:?}");
    drop(world.go_on);
    for login in many.into_iter().chain([second, third]) {
        assert!(matches!(login.await, Ok(Checked::Wrong(1))));
    }
}

#[tokio::test]
async fn who_is_remembered_or_a_regular_never_waits_behind_strangers() {
    let mut world = World::new(&[("ann", "secret"), ("bob", "other")]);
    assert_eq!(world.check("ann", "secret", address(1)).await, Checked::Right);
    assert_eq!(world.check("bob", "other", address(2)).await, Checked::Right);
    world.compared();
    let strangers: Vec<_> = (10..200).map(|at| world.begin("ann", "guess", address(at))).collect();
    world.next().await;
    world.next().await;
    assert_eq!(world.begin("ann", "secret", address(77)).await.expect("it ends"), Checked::Right);
    world.roll.replace(roll(&[("ann", "secret"), ("bob", "changed")]));
    let regular = world.begin("bob", "changed", address(2));
    assert_eq!(world.next().await, "changed", "while two strangers are compared");
    drop(world.go_on);
    assert_eq!(regular.await.expect("it ends"), Checked::Right);
    strangers.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn places_are_bounded_and_no_block_takes_them_all() {
    let room = Room::new(1);
    let mut held = Vec::new();
    let mut fill = |block: u32| {
        let before = held.len();
        held.extend(std::iter::from_fn(|| room.enter(block)));
        held.len() - before
    };
    assert_eq!(fill(1), PLACES_MAX / 3 + 1, "half of what is left");
    assert_eq!(fill(1), 0);
    assert!(fill(2) > 500);
    let more: usize = (3..10_000).map(&mut fill).sum();
    assert!(more > 0 && room.enter(10_000).is_none(), "in the end all are taken");
    assert_eq!(held.len(), PLACES_MAX);
    held.pop();
    assert!(room.enter(10_000).is_some(), "whoever has none gets what is left");
    drop(held);
    assert_eq!(lock(&room.taken).count, 0);
    assert!(lock(&room.taken).by.is_empty());
}

#[tokio::test]
async fn too_many_from_one_block_are_refused_at_once() {
    let mut world = World::new(&[]);
    let login = |at: usize| world.begin(&format!("u{at}"), "flood", address(1));
    let many: Vec<_> = (0..PLACES_MAX / 3 + 2).map(login).collect();
    assert_eq!(world.next().await, "flood");
    let refused = many.last().expect("many");
    while !refused.is_finished() {
        tokio::task::yield_now().await;
    }
    let elsewhere = world.begin("ann", "secret", address(2));
    assert_eq!(world.next().await, "secret");
    let mut many = many;
    assert_eq!(many.pop().expect("many").await.expect("it ends"), Checked::Crowded);
    many.iter().chain([&elsewhere]).for_each(JoinHandle::abort);
}

#[tokio::test]
async fn to_give_up_does_not_buy_another_comparison() {
    let mut world = World::new(&[]);
    let gone = world.begin("ann", "gone", address(1));
    assert_eq!(world.next().await, "gone");
    gone.abort();
    assert!(gone.await.is_err());
    let again = world.begin("bob", "again", address(1));
    world.settle().await;
    assert!(world.looked.try_recv().is_err(), "the block has its turn still");
    world.go();
    assert_eq!(world.next().await, "again");
    world.go();
    assert_eq!(again.await.expect("it ends"), Checked::Wrong(1));
}

#[tokio::test(start_paused = true)]
async fn a_name_is_slowed_wherever_it_is_guessed_and_its_owner_is_not() {
    let mut world = World::new(&[("ann", "secret")]);
    assert_eq!(world.check("ann", "secret", address(200)).await, Checked::Right);
    let began = Instant::now();
    for at in 0..20 {
        assert_eq!(world.check("ann", "guess", address(at)).await, Checked::Wrong(1));
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    let mut waits = Vec::new();
    for at in 20..25 {
        let began = Instant::now();
        assert_eq!(world.check("ann", "guess", address(at)).await, Checked::Wrong(1));
        waits.push(began.elapsed().as_millis());
    }
    assert_eq!(waits, [250, 500, 1_000, 1_000, 1_000]);

    let began = Instant::now();
    assert_eq!(world.begin("ann", "secret", address(99)).await.expect("it ends"), Checked::Right);
    world.roll.replace(roll(&[("ann", "changed")]));
    assert_eq!(
        world.check("ann", "changed", address(200)).await,
        Checked::Right,
        "ann logged in there before"
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(world.check("bob", "guess", address(1)).await, Checked::Wrong(1));
    assert_eq!(began.elapsed(), Duration::ZERO, "other names are not slowed");
}

#[tokio::test(start_paused = true)]
async fn guesses_at_once_from_everywhere_are_no_faster() {
    let mut world = World::new(&[]);
    for at in 0..25 {
        world.check("ann", "guess", address(at)).await;
    }
    let began = Instant::now();
    let many: Vec<_> = (100..110).map(|at| world.begin("ann", "guess", address(at))).collect();
    drop(world.go_on);
    for login in many {
        assert_eq!(login.await.expect("it ends"), Checked::Wrong(1));
    }
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[test]
fn a_block_is_an_address_of_ipv4_and_a_64_of_ipv6() {
    let block = |text: &str| Block::of(text.parse().expect("an address"));
    assert_eq!(block("2001:db8:0:1::1"), block("2001:db8:0:1:ffff::9"));
    assert_ne!(block("2001:db8:0:1::1"), block("2001:db8:0:2::1"));
    assert_ne!(block("10.0.0.1"), block("10.0.0.2"));
    assert_eq!(Block::of(IpAddr::V6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped())), block("10.0.0.1"));
    assert_ne!(Block::of(IpAddr::V6(Ipv6Addr::LOCALHOST)), block("10.0.0.1"));
}

/// A first login with the right password behind many wrong ones is told to try again within the bound.
#[tokio::test(start_paused = true)]
async fn a_login_behind_many_wrong_ones_of_its_name_is_answered_soon() {
    for blocks in [1, 100] {
        let mut world = World::new(&[("ann", "secret")]);
        for _ in 0..256 {
            world.go();
        }
        let wrong: Vec<_> = (0..200).map(|at| world.begin("ann", "guess", address(at % blocks))).collect();
        world.settle().await;
        let begun = Instant::now();
        let right = world.begin("ann", "secret", address(0));
        let answer = right.await.expect("it ends");
        assert!(matches!(answer, Checked::Crowded | Checked::Right), "{answer:?}");
        assert!(begun.elapsed() <= 2 * PATIENCE, "{blocks}: {:?}", begun.elapsed());
        for login in wrong {
            login.await.expect("it ends");
        }
        assert!(begun.elapsed() <= 3 * PATIENCE, "{blocks}: {:?}", begun.elapsed());
        world.compared();
    }
}
