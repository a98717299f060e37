//! What kind of world a seed is: how large, how fast, and which faults it knows. Each seed knows only some, so that rare
//! ones meet each other undisturbed.

use crate::rng::Rng;

/// A fault, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process is killed between two operations.
    Kill,
    /// The power fails between two operations.
    PowerCut,
    /// The process is killed in the middle of an operation of the disk.
    KillInside,
    /// The power fails in the middle of an operation of the disk.
    PowerCutInside,
    /// A sync fails, and the next ones lie.
    FailedSync,
    /// An operation of the disk fails and has no effect.
    DiskError,
    /// The disk is full for a while.
    FullDisk,
    /// The clock jumps.
    ClockJump,
    /// The whole process stands still for a while.
    Pause,
    /// A byte at rest is flipped, on a copy of the disk.
    FlippedByte,
    /// A planned stop.
    Stop,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Kill,
        Self::PowerCut,
        Self::KillInside,
        Self::PowerCutInside,
        Self::FailedSync,
        Self::DiskError,
        Self::FullDisk,
        Self::ClockJump,
        Self::Pause,
        Self::FlippedByte,
        Self::Stop,
    ];
}

/// The nature of a world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// What clients do, counted in acts, before the calm.
    pub(crate) steps: u64,
    pub(crate) queues: u64,
    pub(crate) exchanges: u64,
    /// Exchanges that are bound to each other, and come and go; 0 in most worlds.
    pub(crate) wired: u64,
    pub(crate) publishers: u64,
    pub(crate) pullers: u64,
    pub(crate) consumers: u64,
    pub(crate) admins: u64,
    /// Mean time between two acts of a client, µs.
    pub(crate) pace_us: u64,
    /// Usual time of a commit, µs.
    pub(crate) commit_us: u64,
    /// Mean time between faults, µs.
    pub(crate) fault_us: u64,
    pub(crate) faults: Vec<Fault>,
    pub(crate) segment_bytes: u64,
    pub(crate) body_max: u64,
    /// One in so many answers is lost on its way; 0: none.
    pub(crate) loses_answers: u64,
    pub(crate) default_ttl_ms: u64,
    /// Most messages that are put back at a time when a session ends.
    pub(crate) step_max: usize,
    /// Bytes of memory that messages may take.
    pub(crate) memory_bytes: u64,
    /// The low watermark, journal files; 0: none. The disk says how much room it has only while a fault bounds it.
    pub(crate) low_files: u64,
    /// Queues have no limits, so that backlogs are deep, and admins make holes in them.
    pub(crate) is_deep: bool,
    /// The disk has no room for another file while the queues drain.
    pub(crate) is_full_in_calm: bool,
    /// Queues dead-letter what they evict and refuse, and some messages are taken at once or over.
    pub(crate) is_deadly: bool,
    /// Clients that speak AMQP; 0 in most worlds.
    pub(crate) peers: u64,
    /// Clients set metadata, one of them or each administrator; large values among it in some worlds.
    pub(crate) has_metadata: bool,
    /// Virtual hosts that come and go beside `/`; 0 in most worlds.
    pub(crate) vhosts: u64,
    /// Clients set policies and remove them, and more queues have priorities that are numbers.
    pub(crate) has_policies: bool,
    /// Clients set routes, and publish into them.
    pub(crate) has_routes: bool,
    /// Queues have histories and bounds on how long work takes; clients report, and want messages back.
    pub(crate) has_work: bool,
    /// Attempts whose lease is over say how they ended, where work is noted.
    pub(crate) ends_late: bool,
    /// Queues speak of keys and of rates, and are paused; not in deep worlds, since what speaks of keys stays in memory, and at a rate
    /// much takes long.
    pub(crate) has_keys: bool,
    /// Clients are connected: they get, own queues, and all that they have ends with them.
    pub(crate) has_sessions: bool,
    /// Queues with an endpoint, which forwards what comes there over a link that fails; 0 in most worlds.
    pub(crate) endpoints: u64,
    /// Others take from those queues, too, and administrators meddle with them.
    pub(crate) is_meddled: bool,
    /// Some publishes are as large as the journal allows; 0 in most worlds: one in so many.
    pub(crate) large_batches: u64,
    /// Those who are connected also pull, from some lanes, and hold what they get.
    pub(crate) has_choosers: bool,
}

impl Plan {
    pub(crate) fn draw(seed: u64, steps: Option<u64>) -> Self {
        let rng = &mut Rng::new(seed, "plan");
        // What was thought of later draws from a stream of its own, so that the kept seeds stay what they were.
        let later = &mut Rng::new(seed, "many queues");
        let many_queues = later.once_in(12).then(|| later.within(8, 24));
        let memory = &mut Rng::new(seed, "memory");
        let disk = &mut Rng::new(seed, "watermarks");
        let wiring = &mut Rng::new(seed, "wired exchanges");
        let amqp = &mut Rng::new(seed, "speaks amqp");
        let forwards = &mut Rng::new(seed, "endpoints of a world");
        let apart = &mut Rng::new(seed, "virtual hosts");
        let is_deadly = Rng::new(seed, "deadly").once_in(3);
        let low_files = if disk.once_in(3) { disk.within(1, 4) } else { 0 };
        let faults = Fault::ALL.iter().copied().filter(|_| rng.below(5) < 2).collect();
        // Some worlds last longer, so that much of the journal is given back.
        let drawn = if rng.once_in(16) { rng.within(1_000, 2_500) } else { rng.within(60, 420) };
        let pace_us = rng.one_of(&[500, 2_000, 8_000, 30_000]);
        let few_queues = rng.within(1, 4);
        let memory_bytes = memory.one_of(&[0, 0, 4 << 10, 16 << 10, 64 << 10, 128 << 20]);
        let plan = Self {
            steps: steps.unwrap_or(drawn),
            queues: many_queues.unwrap_or(few_queues),
            exchanges: rng.below(3),
            wired: if wiring.once_in(3) { wiring.within(2, 5) } else { 0 },
            publishers: rng.within(1, 4),
            pullers: rng.below(4),
            consumers: rng.below(4),
            admins: rng.below(2),
            pace_us,
            commit_us: rng.one_of(&[50, 200, 1_000, 10_000]),
            fault_us: pace_us * rng.within(5, 40),
            faults,
            segment_bytes: if rng.once_in(6) { 128 << 10 } else { 64 << 10 },
            body_max: rng.one_of(&[16, 300, 2_000, 2_000, 6_000, 12_000]),
            loses_answers: rng.one_of(&[0, 0, 40, 8]),
            step_max: Rng::new(seed, "ends of sessions").one_of(&[1, 1, 3, 512]),
            memory_bytes,
            low_files,
            is_deep: false,
            is_full_in_calm: rng.once_in(6),
            is_deadly,
            peers: if amqp.once_in(3) { amqp.within(1, 4) } else { 0 },
            has_metadata: Rng::new(seed, "metadata of a world").once_in(3),
            vhosts: if apart.once_in(3) { apart.within(1, 3) } else { 0 },
            has_policies: Rng::new(seed, "policies of a world").once_in(3),
            has_routes: Rng::new(seed, "routes of a world").once_in(3),
            has_keys: Rng::new(seed, "keys of a world").once_in(3),
            has_work: Rng::new(seed, "work of a world").once_in(3),
            ends_late: Rng::new(seed, "late ends of a world").once_in(2),
            has_sessions: Rng::new(seed, "connected").once_in(3),
            endpoints: if forwards.once_in(3) { forwards.within(1, 2) } else { 0 },
            is_meddled: forwards.once_in(3),
            large_batches: Rng::new(seed, "large batches of a world").one_of(&[0, 0, 0, 0, 0, 4]),
            has_choosers: Rng::new(seed, "choosers").once_in(2),
            default_ttl_ms: rng.one_of(&[0, 0, 0, 5_000]),
        };
        let plan = if memory.once_in(6) { plan.deep(memory) } else { plan };
        // In the smallest files no batch takes more than what is always prepared.
        if plan.large_batches > 0 { Self { segment_bytes: 256 << 10, ..plan } } else { plan }
    }

    /// Much is published and little taken.
    fn deep(self, rng: &mut Rng) -> Self {
        Self {
            is_deep: true,
            has_keys: false,
            queues: 1,
            publishers: 5,
            pullers: 1,
            consumers: rng.below(2),
            admins: rng.within(3, 6),
            body_max: rng.one_of(&[16, 300]),
            memory_bytes: rng.one_of(&[4 << 10, 8 << 10, 16 << 10]),
            ..self
        }
    }
}
