//! The thread that looks after the journal's files: makes them and takes them back.
//!
//! Either may take the disk many milliseconds, which no commit waits for.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex};

use overtake_store::{Disk, Pool, ReadyFile, StoreError};

use super::Ask;
use super::disk_thread::News;
use super::freeze::{Freeze, SHORT};
use super::inbox::Inbox;
use crate::core::Job;

/// Work for the files thread, handed over once a batch is durable.
pub(super) struct Order {
    /// The oldest file that is needed.
    pub(super) oldest: u64,
    /// A file is wanted.
    pub(super) prepare: bool,
    /// The disk is short of room: spares go.
    pub(super) drop_spares: bool,
}

/// The channels of the files thread.
pub(super) struct Ways<D: Disk> {
    /// Files that stand ready: told to the disk thread before the broker hears of them.
    pub(super) made: Sender<ReadyFile<D::File>>,
    pub(super) jobs: Sender<Job>,
    pub(super) news: Arc<Inbox>,
    pub(super) room: Arc<Room<D>>,
}

/// Tells the broker how much room the disk has, whichever thread looks.
pub(super) struct Room<D> {
    disk: D,
    /// Held from the look to the news, so that news come in the order of the looks.
    broker: Mutex<Arc<Inbox>>,
}

impl<D: Disk> Room<D> {
    pub(super) fn new(disk: D, broker: Arc<Inbox>) -> Self {
        Self { disk, broker: Mutex::new(broker) }
    }

    /// Looks now. Whatever else the system says of the room, it is not watched.
    pub(super) fn tell(&self) {
        let broker = self.broker.lock().expect("nobody panics while looking");
        let news = match self.disk.space() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => News::DirectoryGone,
            space => News::Space(space.ok().flatten()),
        };
        broker.tell(Ask::News(news));
    }
}

/// Runs until the disk thread is gone.
pub(super) fn run<D: Disk>(mut pool: Pool<D>, orders: &Receiver<Order>, ways: &Ways<D>, freeze: &Freeze) {
    let tell = |what: News| ways.news.tell(Ask::News(what));
    let poisoned = |error: &StoreError| tell(News::Poisoned(Arc::from(error.to_string().as_str())));
    // The broker comes before a snapshot of it.
    let give_way = || {
        let gives_way = freeze.give_way(SHORT);
        // The thread that does them outlives this one.
        freeze.kept_jobs().into_iter().for_each(|job| drop(ways.jobs.send(job)));
        gives_way
    };
    let (mut oldest, mut is_preparing) = (0, false);
    loop {
        match if is_preparing { orders.try_recv() } else { orders.recv().map_err(Into::into) } {
            Ok(order) => {
                oldest = order.oldest;
                is_preparing |= order.prepare;
                if order.drop_spares {
                    give_way();
                }
                // Not when a file is released: the batch that states it may be the one after.
                let retired = freeze.retire(&mut pool, oldest);
                // A spare becomes the next file at once, so none is removed while one is wanted.
                let is_spare = order.drop_spares && !is_preparing && pool.spares() > 0;
                let gone = retired.and_then(|gone| Ok(gone + if is_spare { pool.drop_spares()? } else { 0 }));
                if gone.as_ref().is_ok_and(|gone| *gone > 0) {
                    ways.room.tell();
                }
                gone.err().iter().for_each(poisoned);
            }
            Err(TryRecvError::Empty) => match pool.prepare_some() {
                Ok(None) => {}
                Ok(Some(file)) => {
                    is_preparing = false;
                    // Told before what changed it, so that nothing is decided without.
                    ways.room.tell();
                    let news = file.news();
                    // A disk thread that is gone needs no file.
                    drop(ways.made.send(file));
                    tell(News::FileReady(news));
                }
                Err(StoreError::Full) => {
                    is_preparing = false;
                    if give_way()
                        && let Err(error) = freeze.retire(&mut pool, oldest)
                    {
                        poisoned(&error);
                        continue;
                    }
                    ways.room.tell();
                    tell(News::Full);
                }
                Err(StoreError::TooManyFiles { .. }) => {
                    is_preparing = false;
                    tell(News::TooManyFiles);
                }
                Err(error) => {
                    is_preparing = false;
                    poisoned(&error);
                }
            },
            Err(TryRecvError::Disconnected) => return,
        }
    }
}
