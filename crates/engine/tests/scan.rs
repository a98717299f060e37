//! Looks at more messages than one step may.

use overtake_engine::core::{Answer, Core, Opened, Out, Request};
use overtake_engine::{Browse, Content, Filter, NewMessage, Options, Refused, Target};
use overtake_lane::{BrowseOrder, Command, Outcome, Refusal, Time};
use overtake_store::{Committer, MemoryDisk};

const NOW: Time = Time(1_000);
const MESSAGES: u64 = 100;
/// Messages that a step looks at.
const LOOKS: usize = 7;

struct Engine {
    core: Core<&'static str>,
    committer: Committer<MemoryDisk>,
}

type Told = (&'static str, Result<Answer, Refused>);

impl Engine {
    /// With messages in a queue.
    fn new() -> Self {
        let Opened { core, committer, .. } =
            Core::open(MemoryDisk::new(1), &Options::default(), NOW).expect("it opens");
        let mut engine = Self { core, committer };
        let declare = Command::declare("q".into(), Box::default());
        engine.ask("declare", Request::Do(declare));
        for _ in 0..MESSAGES {
            engine.publish();
        }
        engine
    }

    /// Asks, and hears what is told by then.
    fn ask(&mut self, ticket: &'static str, request: Request) -> Vec<Told> {
        while self.core.wants_file() {
            self.core.file_ready(self.committer.prepare_file().expect("there is room"));
        }
        self.core.handle(NOW, request, ticket);
        self.hear()
    }

    fn publish(&mut self) -> Vec<Told> {
        let message = NewMessage {
            to: Target::Queue("q".into()),
            content: Content { body: vec![0; 10].into(), ..Content::default() },
            ..NewMessage::default()
        };
        self.ask("publish", Request::PublishOne(message))
    }

    fn browse(&mut self, browse: Browse) -> Vec<Told> {
        self.ask("browse", Request::Browse { queue: "q".into(), browse })
    }

    /// Takes one step of the scan whose turn it is.
    fn step(&mut self) -> Vec<Told> {
        self.core.scan_on(LOOKS);
        self.hear()
    }

    fn hear(&mut self) -> Vec<Told> {
        let outs = self.core.take_outs().into_iter();
        outs.filter_map(|out| match out {
            Out::Answer { ticket, result, .. } => Some((ticket, result)),
            _ => None,
        })
        .collect()
    }
}

fn all(order: BrowseOrder) -> Browse {
    Browse { order, limit: 1_000, ..Browse::default() }
}

/// A filter that takes none, so that everything is looked at.
fn none() -> Filter {
    Filter { headers: vec![("nope".into(), "1".into())], ..Filter::default() }
}

fn tickets(told: &[Told]) -> Vec<&'static str> {
    told.iter().map(|(ticket, _)| *ticket).collect()
}

#[test]
fn what_is_asked_while_a_scan_goes_on_is_done_before_it_is_over() {
    for order in [BrowseOrder::Dispatch, BrowseOrder::Published, BrowseOrder::Newest] {
        let mut engine = Engine::new();
        let browse = Browse { filter: none(), with_total: true, ..all(order) };
        assert!(engine.browse(browse).is_empty(), "it is not answered at once");
        let mut steps = 0;
        let page = loop {
            assert_eq!(tickets(&engine.publish()), ["publish"]);
            steps += 1;
            if let Some((ticket, result)) = engine.step().pop() {
                assert_eq!(ticket, "browse");
                break result;
            }
        };
        let Ok(Answer::Page(page)) = page else { panic!("a page, not {page:?}") };
        assert_eq!((page.messages.len(), page.next, page.total), (0, None, Some(0)));
        assert!(steps > 2 * MESSAGES / LOOKS as u64, "{steps} steps look at all of it, and count");
        assert!(!engine.core.is_scanning());
    }
}

#[test]
fn what_stays_is_seen_once_whatever_comes_and_goes() {
    for order in [BrowseOrder::Dispatch, BrowseOrder::Published, BrowseOrder::Newest] {
        let mut engine = Engine::new();
        engine.browse(all(order));
        let mut gone = 0;
        let page = loop {
            engine.publish();
            let lease = overtake_engine::LeaseRequest::new("q".into(), 1);
            let consumer = overtake_lane::ConsumerId(gone);
            let (_, leased) = engine.ask("lease", Request::Lease { consumer, lease }).pop().expect("told");
            let Ok(Answer::Leased(leased)) = leased else { panic!("a lease, not {leased:?}") };
            let receipts = leased.iter().map(|message| message.receipt).collect();
            engine.ask("ack", Request::Do(Command::Settle { receipts, outcome: Outcome::Ack }));
            gone += 1;
            if let Some((_, result)) = engine.step().pop() {
                break result;
            }
        };
        let Ok(Answer::Page(page)) = page else { panic!("a page, not {page:?}") };
        let mut seen: Vec<u64> = page.messages.iter().map(|shown| shown.message.seq.0).collect();
        if order == BrowseOrder::Newest {
            seen.reverse();
        }
        assert!(seen.is_sorted_by(|a, b| a < b), "none twice, in their order: {seen:?}");
        let stayed = gone + 1..=MESSAGES;
        assert!(stayed.clone().count() > 0 && stayed.into_iter().all(|seq| seen.contains(&seq)), "{seen:?}");
    }
}

#[test]
fn scans_take_turns() {
    let mut engine = Engine::new();
    engine.browse(Browse { filter: none(), ..all(BrowseOrder::Published) });
    let short = Browse { limit: LOOKS, ..all(BrowseOrder::Newest) };
    engine.ask("short", Request::Browse { queue: "q".into(), browse: short });
    assert!(engine.step().is_empty());
    assert_eq!(tickets(&engine.step()), ["short"], "it does not wait for the long one");
    assert!(engine.core.is_scanning());
}

#[test]
fn a_scan_ends_with_its_queue_and_with_whoever_asked() {
    let mut engine = Engine::new();
    engine.browse(Browse { filter: none(), ..all(BrowseOrder::Published) });
    engine.step();
    let delete = Command::DeleteQueue { name: "q".into(), if_empty: false, if_unused: false };
    engine.ask("delete", Request::Do(delete));
    let declare = Command::declare("q".into(), Box::default());
    engine.ask("declare", Request::Do(declare));
    let (_, result) = engine.step().pop().expect("told");
    assert_eq!(
        result.map(drop).map_err(|refused| refused.refusal),
        Err(Refusal::NoSuchQueue),
        "it is another one"
    );

    engine.browse(all(BrowseOrder::Published));
    engine.core.drop_scans(|ticket| *ticket == "browse");
    assert!(!engine.core.is_scanning());

    engine.browse(all(BrowseOrder::Published));
    assert_eq!(engine.core.abandon(), ["browse"]);
}
