//! Client libraries beside each other: ours and lapin, against the same broker, which is a process of its own.
//!
//! Bodies of 256 bytes, one connection, as many publishes unconfirmed, or deliveries unacknowledged, as the window says. Client and broker share the machine, so
//! the rate is of both; how long the client itself keeps a core busy for a message is told besides. Each shape runs several times in turn with the other's, and the
//! middle of them counts.

#[cfg(feature = "references")]
mod lapin;
mod ours;

use std::time::{Duration, Instant};

use crate::Plan;
use crate::amqp::peer::{Broker, Peer};
use crate::report::Row;

const QUEUE: &str = "q";
const BODY: [u8; 256] = [b'x'; 256];
const WINDOW: u16 = 1_000;
const ROUNDS: usize = 5;

/// A library with a connection.
trait Library {
    /// Publishes so many, and ends when all are confirmed.
    fn publish(&self, count: usize);
    /// So many at a time publish one by one, each waiting for its confirm.
    fn publish_one_by_one(&self, count: usize, at_a_time: usize);
    /// Consumes so many and acknowledges each.
    fn consume(&self, count: usize);
}

/// How a library is begun.
type Begin = fn(&str) -> Box<dyn Library>;

const LIBRARIES: &[(&str, Begin)] = &[
    #[cfg(feature = "references")]
    ("lapin", |url| Box::new(lapin::Lapin::connect(url))),
    ("overtake-client", |url| Box::new(ours::Ours::connect(url, false))),
    ("overtake-client, exactly once", |url| Box::new(ours::Ours::connect(url, true))),
];

/// What is done: a name, and the work of a library.
type Shape = (&'static str, fn(&dyn Library, usize));

const SHAPES: [Shape; 3] = [
    ("publish with confirms, 1,000 unconfirmed", |library, count| library.publish(count)),
    ("publish with confirms, one by one, 64 at a time", |library, count| {
        library.publish_one_by_one(count, 64)
    }),
    ("consume and ack, window of 1,000", |library, count| library.consume(count)),
];

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let count = if plan.quick { 20_000 } else { plan.times(200_000) };
    let rounds = if plan.quick { 1 } else { ROUNDS };
    let mut rows = Vec::new();
    for (shape, (what, _)) in SHAPES.iter().enumerate() {
        if !plan.wants(what) {
            continue;
        }
        let mut took = vec![Vec::new(); LIBRARIES.len()];
        for _ in 0..rounds {
            for (library, took) in LIBRARIES.iter().zip(&mut took) {
                took.push(measure(library.1, shape, count));
            }
        }
        let middle = |all: &Vec<Measured>, of: fn(&Measured) -> Duration| {
            let mut all: Vec<Duration> = all.iter().map(of).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        for (at, (name, _)) in LIBRARIES.iter().enumerate() {
            for (aspect, of) in [
                ("", Measured::wall as fn(&Measured) -> Duration),
                (", time of the client on a core", Measured::busy),
            ] {
                let row =
                    Row::new(format!("{what}{aspect}: {name}"), "messages", count, middle(&took[at], of));
                let first = middle(&took[0], of).as_secs_f64();
                let row = if at == 0 {
                    row.reference()
                } else {
                    row.beside(first / middle(&took[at], of).as_secs_f64())
                };
                rows.push(row);
            }
        }
    }
    rows
}

#[derive(Clone, Copy)]
struct Measured {
    wall: Duration,
    busy: Duration,
}

impl Measured {
    fn wall(&self) -> Duration {
        self.wall
    }

    fn busy(&self) -> Duration {
        self.busy
    }
}

/// One round, with a broker of its own.
fn measure(begin: Begin, shape: usize, count: usize) -> Measured {
    let broker = broker();
    let url = broker.url().expect("it speaks AMQP");
    if shape == 2 {
        ours::Ours::connect(&url, false).publish(count);
    }
    let library = begin(&url);
    let (start, busy) = (Instant::now(), own_time());
    SHAPES[shape].1(&*library, count);
    Measured { wall: start.elapsed(), busy: own_time() - busy }
}

fn broker() -> Broker {
    let broker = Peer::Overtake.start("").expect("a broker");
    broker.declare(QUEUE).expect("a queue");
    broker
}

/// Time of this process on all cores (getrusage(2)).
fn own_time() -> Duration {
    let times = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(times.tv_sec as u64, times.tv_nsec as u32)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}
