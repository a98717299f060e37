//! Looks at more messages than one step may, and changes of them.

use overtake_engine::core::{Answer, Core, Opened, Out, Request};
use overtake_engine::{
    Browse, Change, Content, Filter, JobState, JobView, LeaseRequest, NewMessage, Options, Page, Refused,
    Select, Started, Target,
};
use overtake_lane::{BrowseOrder, Command, ConsumerId, Given, Outcome, Refusal, Settings, Status, Time};
use overtake_store::{Committer, MemoryDisk};

const NOW: Time = Time(1_000);
const MESSAGES: u64 = 100;
/// Messages that a step looks at.
const LOOKS: usize = 7;

struct Engine {
    disk: MemoryDisk,
    core: Core<&'static str>,
    committer: Committer<MemoryDisk>,
}

type Told = (&'static str, Result<Answer, Refused>);

impl Engine {
    /// With messages in a queue.
    fn new() -> Self {
        let mut engine = Self::open(MemoryDisk::new(1));
        // What fails twice is dead.
        let settings = Settings { delivery_limit: 1, ..Settings::default() };
        let declare = Command::declare("q".into(), Box::new(settings));
        engine.ask("declare", Request::Do(declare));
        for _ in 0..MESSAGES {
            engine.publish();
        }
        engine
    }

    fn open(disk: MemoryDisk) -> Self {
        let Opened { core, committer, .. } =
            Core::open(disk.clone(), &Options::default(), NOW).expect("it opens");
        Self { disk, core, committer }
    }

    /// The power fails, and comes back: what was written by then is there.
    fn crash(mut self) -> Self {
        while let Some(batch) = self.core.take_batch() {
            self.committer.commit(&batch).expect("it is written");
        }
        let Self { disk, core, committer } = self;
        drop((core, committer));
        Self::open(disk)
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
        self.ask("publish", Request::PublishOne(Box::new(message)))
    }

    fn browse(&mut self, browse: Browse) -> Vec<Told> {
        self.ask("browse", Request::Browse { queue: "q".into(), browse })
    }

    /// A page, and after how many steps it is there.
    fn page(&mut self, browse: Browse) -> (Page, usize) {
        let mut told = self.browse(browse);
        let mut steps = 0;
        while told.is_empty() {
            told = self.step();
            steps += 1;
        }
        let Some((_, Ok(Answer::Page(page)))) = told.pop() else { panic!("a page, not {told:?}") };
        (page, steps)
    }

    fn lease_and_ack(&mut self, consumer: u64) {
        let (consumer, lease) = (ConsumerId(consumer), LeaseRequest::new("q".into(), 1));
        let (_, leased) = self.ask("lease", Request::Lease { consumer, lease }).pop().expect("told");
        let Ok(Answer::Leased(leased)) = leased else { panic!("a lease, not {leased:?}") };
        let receipts = leased.iter().map(|message| message.receipt).collect();
        self.ask("ack", Request::Do(Command::Settle { receipts, outcome: Outcome::Ack }));
    }

    /// Takes one step of the scan whose turn it is.
    fn step(&mut self) -> Vec<Told> {
        if let Some(change) = self.core.scan_on(NOW, LOOKS) {
            assert!(!self.core.must_wait(overtake_lane::Asker::default(), &change), "there is room");
            self.core.change_on(NOW, change);
        }
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
            engine.lease_and_ack(gone);
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
fn a_page_ends_after_so_many_looks_and_says_how_far_it_is() {
    for order in [BrowseOrder::Dispatch, BrowseOrder::Published, BrowseOrder::Newest] {
        let mut engine = Engine::new();
        let (mut cursor, mut pages) = (None, 0);
        loop {
            let browse = Browse { filter: none(), looks: Some(20), cursor, ..all(order) };
            let (page, steps) = engine.page(browse);
            assert!(steps <= 3, "{steps} steps of {LOOKS} looks");
            assert!(page.messages.is_empty());
            assert_eq!((page.looked_at, page.in_queue), (20, MESSAGES), "{order:?}");
            (cursor, pages) = (page.next, pages + 1);
            if pages == MESSAGES / 20 {
                break;
            }
            assert!(cursor.is_some(), "{order:?}: there is more after {pages} pages");
        }
        if cursor.is_some() {
            let (page, _) = engine.page(Browse { filter: none(), looks: Some(20), cursor, ..all(order) });
            assert_eq!((page.looked_at, page.next), (0, None), "{order:?}: it was the end");
        }
    }
}

/// Gauges tell a total at once; what must be counted is counted as far as the looks go.
#[test]
fn a_page_that_ends_early_has_a_total_only_where_that_was_counted() {
    let mut engine = Engine::new();
    let browse = Browse { looks: Some(20), limit: 5, with_total: true, ..all(BrowseOrder::Newest) };
    let (page, _) = engine.page(browse.clone());
    assert_eq!((page.messages.len(), page.total), (5, Some(MESSAGES)));
    for (looks, total) in [(20, None), (3 * MESSAGES as usize, Some(0))] {
        let browse = Browse { looks: Some(looks), filter: none(), ..browse.clone() };
        assert_eq!(engine.page(browse).0.total, total, "{looks}");
    }
}

#[test]
fn pages_of_few_looks_show_once_what_stays_whatever_comes_and_goes() {
    for order in [BrowseOrder::Dispatch, BrowseOrder::Published, BrowseOrder::Newest] {
        for limit in [1_000, 3] {
            let mut engine = Engine::new();
            let (mut seen, mut cursor, mut gone) = (Vec::new(), None, 0);
            loop {
                let (page, _) = engine.page(Browse { looks: Some(5), limit, cursor, ..all(order) });
                seen.extend(page.messages.iter().map(|shown| shown.message.seq.0));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
                engine.publish();
                engine.lease_and_ack(gone);
                gone += 1;
                assert!(gone < 2 * MESSAGES, "it comes to an end");
            }
            if order == BrowseOrder::Newest {
                seen.reverse();
            }
            assert!(seen.is_sorted_by(|a, b| a < b), "none twice, in their order: {seen:?}");
            assert!((gone + 1..=MESSAGES).all(|seq| seen.contains(&seq)), "{order:?} {limit}: {seen:?}");
        }
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

// ---- changes ----

impl Engine {
    fn change(&mut self, select: Select, change: Change) -> Vec<Told> {
        self.ask("change", Request::Change { queue: "q".into(), select, change, only_start: false })
    }

    /// Begins a change, and hears that it is a job.
    fn start(&mut self, change: Change) -> JobView {
        let select = Select::Matching(Filter::default());
        let start = Request::Change { queue: "q".into(), select, change, only_start: true };
        assert!(self.ask("start", start).is_empty(), "it is not answered before its first step");
        match self.step().pop() {
            Some(("start", Ok(Answer::Started(Started::Job(job))))) => *job,
            other => panic!("a job, not {other:?}"),
        }
    }

    /// Goes on until somebody is told something.
    fn go_on(&mut self) -> (Told, usize) {
        for steps in 1.. {
            if let Some(told) = self.step().pop() {
                return (told, steps);
            }
            assert!(self.core.is_scanning(), "somebody is told at the end");
        }
        unreachable!("it ends")
    }

    fn jobs(&mut self) -> Vec<JobView> {
        match self.ask("jobs", Request::Jobs).pop() {
            Some(("jobs", Ok(Answer::Jobs(jobs)))) => jobs,
            other => panic!("jobs, not {other:?}"),
        }
    }

    fn count(&self, status: Status) -> u64 {
        let queue = self.core.broker().all_views(NOW).next().expect("there is a queue");
        let of = |lane: &overtake_lane::LaneView| match status {
            Status::Ready => lane.ready,
            Status::Leased => lane.leased,
            _ => lane.dead,
        };
        queue.lanes.iter().map(of).sum()
    }

    /// Leases so many messages, and fails at them for good.
    fn kill(&mut self, consumer: u64, count: u32) {
        let lease = LeaseRequest::new("q".into(), count);
        let lease = Request::Lease { consumer: ConsumerId(consumer), lease };
        let Some((_, Ok(Answer::Leased(leased)))) = self.ask("lease", lease).pop() else { panic!("a lease") };
        assert_eq!(leased.len(), count as usize);
        let receipts = leased.iter().map(|message| message.receipt).collect();
        self.ask("reject", Request::Do(Command::Settle { receipts, outcome: Outcome::Reject }));
    }
}

#[test]
fn what_is_asked_while_a_change_goes_on_is_done_before_it_is_over() {
    let mut engine = Engine::new();
    assert!(engine.change(Select::Matching(Filter::default()), Change::Remove).is_empty());
    let mut steps = 0;
    let told = loop {
        assert_eq!(tickets(&engine.publish()), ["publish"]);
        steps += 1;
        if let Some(told) = engine.step().pop() {
            break told;
        }
    };
    let ("change", Ok(Answer::Count(count))) = told else { panic!("a count, not {told:?}") };
    assert_eq!(count, MESSAGES, "those that were there when it began");
    assert!(steps >= MESSAGES / LOOKS as u64, "{steps} steps");
    assert_eq!(engine.count(Status::Ready), steps, "what came meanwhile stays");
}

#[test]
fn a_change_that_takes_one_step_is_no_job() {
    let mut engine = Engine::new();
    engine.kill(1, 1);
    let filter = Filter { key: Some("none".into()), ..Filter::default() };
    let select = Select::Matching(filter);
    engine.ask(
        "many",
        Request::Change { queue: "q".into(), select, change: Change::Remove, only_start: false },
    );
    assert_eq!(engine.go_on().0.1.map(|answer| format!("{answer:?}")), Ok("Count(0)".to_owned()));
    assert_eq!(engine.jobs().len(), 1, "it looked at all of them");

    let purge = Command::Purge { queue: "q".into(), status: None, expect: None };
    engine.ask("purge", Request::Do(purge));
    let select = Select::Matching(Filter::default());
    let replay =
        Request::Change { queue: "q".into(), select, change: Change::Replay(None), only_start: true };
    engine.ask("replay", replay);
    let told = engine.step().pop();
    assert!(matches!(told, Some(("replay", Ok(Answer::Started(Started::Done(1)))))), "{told:?}");
    assert_eq!(engine.jobs().len(), 1, "one message is looked at in one step");
}

#[test]
fn a_job_tells_how_far_it_is_and_of_its_end() {
    let mut engine = Engine::new();
    let job = engine.start(Change::Reprioritise(Given::Number(9)));
    assert_eq!((job.state, job.total, job.ended), (JobState::Running, MESSAGES, None));
    assert!(job.changed > 0 && job.looked >= job.changed, "{job:?}");
    engine.step();
    let [later] = &engine.jobs()[..] else { panic!("one job") };
    assert!(later.changed > job.changed && later.id == job.id, "{later:?} after {job:?}");
    assert!(engine.ask("wait", Request::Job { id: job.id, waits: true }).is_empty(), "it is not over");
    let (told, _) = engine.go_on();
    let ("wait", Ok(Answer::Job(Some(end)))) = told else { panic!("a job, not {told:?}") };
    assert_eq!((end.state, end.changed, end.looked), (JobState::Done, MESSAGES, MESSAGES));
    assert_eq!(engine.jobs(), [*end]);
    let other = engine.ask("other", Request::Job { id: job.id + 1, waits: true }).pop();
    assert!(matches!(other, Some((_, Ok(Answer::Job(None))))), "{other:?}");
}

#[test]
fn what_comes_after_a_job_began_does_not_count_as_looked_at() {
    let mut engine = Engine::new();
    let filter = Filter { status: Some(Status::Delayed), ..Filter::default() };
    let select = Select::Matching(filter);
    let request = Request::Change { queue: "q".into(), select, change: Change::Remove, only_start: true };
    assert!(engine.ask("start", request).is_empty());
    engine.step();
    engine.publish();
    while engine.core.is_scanning() {
        engine.step();
    }
    let [job] = &engine.jobs()[..] else { panic!("one job") };
    assert_eq!((job.state, job.total, job.looked), (JobState::Done, MESSAGES, MESSAGES));
}

#[test]
fn a_job_that_is_cancelled_stays_where_it_is_also_after_a_restart() {
    let mut engine = Engine::new();
    let job = engine.start(Change::Remove);
    engine.step();
    let told = engine.ask("cancel", Request::CancelJob { id: job.id }).pop();
    let Some(("cancel", Ok(Answer::Job(Some(end))))) = told else { panic!("a job, not {told:?}") };
    assert_eq!((end.state, end.changed), (JobState::Cancelled, MESSAGES - engine.count(Status::Ready)));
    assert!(end.changed > 0 && end.changed < MESSAGES && !engine.core.is_scanning());
    let mut engine = engine.crash();
    assert!(!engine.core.is_scanning(), "it is over");
    assert_eq!(engine.jobs(), [*end]);
    let again = engine.ask("cancel", Request::CancelJob { id: job.id }).pop();
    assert!(matches!(again, Some((_, Ok(Answer::Job(Some(job))))) if job.state == JobState::Cancelled));
}

/// A dead letter that is replayed and dies again is not replayed a second time, wherever the crash is.
#[test]
fn each_message_is_changed_once_although_the_power_fails() {
    for steps in [0, 1, 5] {
        let mut engine = Engine::new();
        engine.kill(1, MESSAGES as u32);
        assert_eq!(engine.count(Status::Dead), MESSAGES);
        engine.start(Change::Replay(None));
        for _ in 0..steps {
            engine.step();
        }
        let replayed = engine.count(Status::Ready);
        assert!(replayed > 0 && replayed < MESSAGES);
        engine.kill(2, replayed as u32);
        let mut engine = engine.crash();
        let [job] = &engine.jobs()[..] else { panic!("the job is there again") };
        assert_eq!((job.state, job.changed), (JobState::Running, replayed));
        engine.ask("wait", Request::Job { id: job.id, waits: true });
        let (told, _) = engine.go_on();
        let ("wait", Ok(Answer::Job(Some(end)))) = told else { panic!("a job, not {told:?}") };
        assert_eq!((end.state, end.changed), (JobState::Done, MESSAGES));
        assert_eq!(engine.count(Status::Ready), MESSAGES - replayed, "what died again stays dead");
    }
}

#[test]
fn a_job_whose_count_is_not_the_expected_one_changes_nothing_also_after_a_restart() {
    let mut engine = Engine::new();
    // By a key, which no gauge counts.
    let filter = Filter { without_priority: true, ..Filter::default() };
    let select = Select::Counted { filter, expect: MESSAGES - 1 };
    assert!(engine.change(select, Change::Remove).is_empty());
    engine.step();
    let mut engine = engine.crash();
    let [job] = &engine.jobs()[..] else { panic!("it was to count more than a step may") };
    engine.ask("wait", Request::Job { id: job.id, waits: true });
    let (told, steps) = engine.go_on();
    let ("wait", Ok(Answer::Job(Some(end)))) = told else { panic!("a job, not {told:?}") };
    assert_eq!((end.state, end.changed), (JobState::Failed, 0));
    assert_eq!(end.refusal, Some(Refusal::CountDiffers { count: MESSAGES }));
    assert!(end.error.is_some() && steps >= MESSAGES as usize / LOOKS);
    assert_eq!(engine.count(Status::Ready), MESSAGES);
}

#[test]
fn a_job_ends_with_its_queue_and_goes_on_without_whoever_asked() {
    let mut engine = Engine::new();
    engine.change(Select::Matching(Filter::default()), Change::Remove);
    engine.core.drop_scans(|ticket| *ticket == "change");
    while engine.core.is_scanning() {
        assert!(engine.step().is_empty());
    }
    assert_eq!(engine.count(Status::Ready), 0);
    for _ in 0..MESSAGES {
        engine.publish();
    }
    engine.change(Select::Matching(Filter::default()), Change::Remove);
    engine.step();
    engine.ask(
        "delete",
        Request::Do(Command::DeleteQueue { name: "q".into(), if_empty: false, if_unused: false }),
    );
    engine.ask("declare", Request::Do(Command::declare("q".into(), Box::default())));
    let (told, _) = engine.go_on();
    assert!(matches!(told, ("change", Err(Refused { refusal: Refusal::NoSuchQueue, .. }))), "{told:?}");
}

/// Those that are over are told of for a while, and the numbers of none are given twice.
#[test]
fn only_the_newest_jobs_that_are_over_are_kept() {
    let mut engine = Engine::new();
    let mut last = 0;
    for _ in 0..103 {
        let job = engine.start(Change::Reprioritise(Given::Number(9)));
        assert!(job.id > last, "{} after {last}", job.id);
        last = job.id;
        while engine.core.is_scanning() {
            engine.step();
        }
    }
    let kept: Vec<u64> = engine.jobs().iter().map(|job| job.id).collect();
    assert_eq!((kept.len(), kept.last()), (100, Some(&last)));
    let mut engine = engine.crash();
    assert_eq!(engine.jobs().iter().map(|job| job.id).collect::<Vec<_>>(), kept);
    assert!(engine.start(Change::Remove).id > last);
}

/// Where many stay, the purged ones are removed one by one, and the others are not moved.
#[test]
fn a_purge_that_leaves_many_goes_on_step_by_step_and_after_a_crash() {
    const STAY: usize = 4_500;
    const PURGED: u64 = 500;
    let mut engine = Engine::new();
    for _ in MESSAGES..STAY as u64 + PURGED {
        engine.publish();
    }
    let mut leased = 0;
    for consumer in 0..STAY as u64 / 500 {
        let lease = LeaseRequest::new("q".into(), 500);
        let told = engine.ask("lease", Request::Lease { consumer: ConsumerId(consumer), lease });
        let [(_, Ok(Answer::Leased(some)))] = &told[..] else { panic!("a lease, not {told:?}") };
        leased += some.len();
    }
    assert_eq!(leased, STAY);
    let purge = |expect| Request::Do(Command::Purge { queue: "q".into(), status: None, expect });
    let told = engine.ask("purge", purge(Some(PURGED - 1)));
    let [(_, Err(refused))] = &told[..] else { panic!("refused, not {told:?}") };
    assert_eq!(refused.refusal, Refusal::CountDiffers { count: PURGED });
    assert!(engine.ask("purge", purge(Some(PURGED))).is_empty(), "it is not answered at once");
    engine.publish();
    while engine.count(Status::Ready) > PURGED / 2 {
        let before = engine.count(Status::Ready);
        assert!(engine.step().is_empty());
        assert!(before - engine.count(Status::Ready) <= LOOKS as u64, "a few messages a step");
    }
    let mut engine = engine.crash();
    while engine.core.is_scanning() {
        engine.step();
    }
    let job = engine.jobs().pop().expect("it is told of");
    assert_eq!((job.change.name(), job.state, job.changed), ("purge", JobState::Done, PURGED));
    assert_eq!((engine.count(Status::Ready), engine.count(Status::Leased)), (1, STAY as u64));
}

#[test]
fn a_long_purge_is_refused_as_a_short_one_is() {
    let mut engine = Engine::new();
    let by = |session, request| Request::By {
        asker: overtake_lane::Asker::connected(overtake_lane::SessionId(session)),
        request: Box::new(request),
    };
    let mut declare = Command::declare("mine".into(), Box::default());
    if let Command::DeclareQueue { identity, .. } = &mut declare {
        identity.exclusive = true;
    }
    engine.ask("declare", by(1, Request::Do(declare)));
    for _ in 0..5_000 {
        let message = NewMessage { to: Target::Queue("mine".into()), ..NewMessage::default() };
        engine.ask("publish", by(1, Request::PublishOne(Box::new(message))));
    }
    let lease = LeaseRequest::new("mine".into(), 4_600);
    engine.ask("lease", by(1, Request::Lease { consumer: ConsumerId(1), lease }));
    let purge = || Request::Do(Command::Purge { queue: "mine".into(), status: None, expect: None });
    let told = engine.ask("purge", by(2, purge()));
    let [(_, Err(refused))] = &told[..] else { panic!("refused, not {told:?}") };
    assert_eq!(refused.refusal, Refusal::QueueLocked);
    assert!(engine.ask("purge", by(1, purge())).is_empty(), "its owner may, and it takes more than a step");
}
