//! What is shown, and what a key changes of it. Without a terminal, a clock or a broker.

use super::sort::{Sort, is_meant};
use crate::gauges::ask::{Health, Wanted};
use crate::gauges::{Holders, QueueNow, Sums};

/// Between two polls, ms: what `+` and `-` choose from.
const INTERVALS: [u64; 9] = [200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000];

/// A key, as far as it means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Esc,
    Backspace,
    Char(char),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L.
    Redraw,
}

/// What has to be done because of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Draw.
    Draw,
    /// Ask the broker at once: something else is looked at.
    Poll,
    /// Leave the terminal to the shell for a while.
    Suspend,
    /// Draw all of it: something else has written there.
    Redraw,
    /// End.
    Quit,
}

/// What is shown.
#[derive(Debug)]
pub(crate) struct State {
    /// Where the broker is, and which virtual host.
    pub(crate) url: String,
    pub(crate) vhost: String,
    pub(crate) health: Health,
    /// As they came.
    queues: Vec<QueueNow>,
    /// Those that are shown, as indices, in order.
    shown: Vec<usize>,
    /// Over those that are shown.
    pub(crate) sums: Sums,
    /// The name of the chosen queue; `None`: the first.
    chosen: Option<String>,
    /// Rows of the list above the window.
    offset: usize,
    /// Rows that fit.
    rows: usize,
    /// The queue that is open.
    pub(crate) opened: Option<String>,
    /// Lines of the opened queue above the window.
    pub(crate) scrolled: usize,
    /// Lines of the opened queue.
    lines: usize,
    pub(crate) holders: Holders,
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    /// Whether the filter is being typed in.
    pub(crate) is_typing: bool,
    pub(crate) is_paused: bool,
    pub(crate) shows_help: bool,
    /// Between two polls, ms.
    pub(crate) interval: u64,
    /// Why the broker does not answer, and since when.
    pub(crate) lost: Option<(u64, String)>,
    /// How long the last poll took, ms.
    pub(crate) took: u64,
    /// A word about what just happened, until the next key.
    pub(crate) note: String,
}

impl State {
    /// Nothing is known yet.
    pub(crate) fn new(url: &str, vhost: &str, sort: Sort, interval: u64) -> Self {
        Self {
            url: url.to_owned(),
            vhost: vhost.to_owned(),
            health: Health::default(),
            queues: Vec::new(),
            shown: Vec::new(),
            sums: Sums::default(),
            chosen: None,
            offset: 0,
            rows: 1,
            opened: None,
            scrolled: 0,
            lines: 0,
            holders: Holders::default(),
            sort,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            shows_help: false,
            interval,
            lost: None,
            took: 0,
            note: String::new(),
        }
    }

    // ---- what the broker says ----

    /// It answered.
    pub(crate) fn answered(&mut self, mut health: Health, took: u64) {
        if health.version.is_empty() {
            health.version.clone_from(&self.health.version);
        }
        (self.health, self.took, self.lost) = (health, took, None);
    }

    /// It does not answer, at `now`.
    pub(crate) fn lose(&mut self, now: u64, why: &str) {
        let since = self.lost.as_ref().map_or(now, |(since, _)| *since);
        // Where it is stands above it.
        let why = why.split_once(&format!(" at {}: ", self.url)).map_or(why, |(_, why)| why);
        self.lost = Some((since, why.to_owned()));
    }

    /// These are all queues.
    pub(crate) fn put_all(&mut self, queues: Vec<QueueNow>) {
        self.queues = queues;
        self.arrange();
    }

    /// This one is so now, or is gone, and so its messages are held.
    pub(crate) fn put_opened(&mut self, name: &str, queue: Option<QueueNow>, holders: Holders) {
        let at = self.queues.iter().position(|queue| queue.name == name);
        match (at, queue) {
            (Some(at), Some(queue)) => self.queues[at] = queue,
            (None, Some(queue)) => self.queues.push(queue),
            (Some(at), None) => drop(self.queues.remove(at)),
            (None, None) => {}
        }
        self.holders = holders;
        self.arrange();
        if self.opened.as_deref() == Some(name) && self.opened_queue().is_none() {
            self.opened = None;
            self.note = format!("queue {name} is gone");
        }
    }

    /// What to ask for.
    pub(crate) fn wanted(&self, only: Option<&str>) -> Wanted {
        match (&self.opened, only) {
            (Some(name), _) => Wanted::Opened(name.clone()),
            (None, Some(name)) => Wanted::One(name.to_owned()),
            (None, None) => Wanted::All,
        }
    }

    /// Between two polls, ms: longer where the broker takes long, so that it has a fifth of its time for this at most.
    pub(crate) fn pause(&self) -> u64 {
        self.interval.max(self.took.saturating_mul(4))
    }

    // ---- what is seen of it ----

    /// Queues of the list, in order.
    pub(crate) fn list(&self) -> impl ExactSizeIterator<Item = &QueueNow> {
        self.shown.iter().map(|at| &self.queues[*at])
    }

    /// Those in the window, and which of them is the chosen one.
    pub(crate) fn window(&self) -> (Vec<&QueueNow>, usize) {
        let window = self.list().skip(self.offset).take(self.rows).collect();
        (window, self.chosen_at().saturating_sub(self.offset))
    }

    /// The number of the first queue in the window, from 0.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// How many queues there are, shown or not.
    pub(crate) fn known(&self) -> usize {
        self.queues.len()
    }

    /// The queue that is open.
    pub(crate) fn opened_queue(&self) -> Option<&QueueNow> {
        let name = self.opened.as_ref()?;
        self.queues.iter().find(|queue| queue.name == *name)
    }

    /// So many rows of the list fit, and so many lines there are of the opened queue.
    pub(crate) fn fit(&mut self, rows: usize, lines: usize) {
        (self.rows, self.lines) = (rows.max(1), lines);
        self.follow();
    }

    // ---- what a key does ----

    /// A key was pressed.
    pub(crate) fn key(&mut self, key: Key) -> Deed {
        self.note.clear();
        match key {
            Key::Interrupt => return Deed::Quit,
            Key::Suspend => return Deed::Suspend,
            Key::Redraw => return Deed::Redraw,
            _ if self.shows_help => self.shows_help = false,
            _ if self.is_typing => self.type_in(key),
            Key::Char('q') => return Deed::Quit,
            Key::Char('?') | Key::Char('h') => self.shows_help = true,
            Key::Char('p') => {
                self.is_paused = !self.is_paused;
                return if self.is_paused { Deed::Draw } else { Deed::Poll };
            }
            Key::Char('+') => self.step(INTERVALS.iter().find(|ms| **ms > self.interval)),
            Key::Char('-') => self.step(INTERVALS.iter().rfind(|ms| **ms < self.interval)),
            _ if self.opened.is_some() => return self.key_in_queue(key),
            _ => return self.key_in_list(key),
        }
        Deed::Draw
    }

    fn key_in_list(&mut self, key: Key) -> Deed {
        match key {
            Key::Up | Key::Char('k') => self.choose(|at, _| at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.choose(|at, _| at.saturating_add(1)),
            Key::PageUp => self.choose(usize::saturating_sub),
            Key::PageDown | Key::Char(' ') => self.choose(usize::saturating_add),
            Key::Home | Key::Char('g') => self.choose(|_, _| 0),
            Key::End | Key::Char('G') => self.choose(|_, _| usize::MAX),
            Key::Enter | Key::Char('l') => return self.open(),
            Key::Char('s') => {
                self.sort = self.sort.next();
                self.arrange();
            }
            Key::Char('/') => self.is_typing = true,
            Key::Esc if !self.filter.is_empty() => {
                self.filter.clear();
                self.arrange();
            }
            // Back to the first, whichever that will be.
            Key::Esc => self.chosen = None,
            _ => {}
        }
        self.follow();
        Deed::Draw
    }

    fn key_in_queue(&mut self, key: Key) -> Deed {
        let most = self.lines.saturating_sub(self.rows);
        let to = match key {
            Key::Esc | Key::Backspace => {
                self.opened = None;
                self.holders = Holders::default();
                return Deed::Poll;
            }
            Key::Up | Key::Char('k') => self.scrolled.saturating_sub(1),
            Key::Down | Key::Char('j') => self.scrolled + 1,
            Key::PageUp => self.scrolled.saturating_sub(self.rows),
            Key::PageDown | Key::Char(' ') => self.scrolled + self.rows,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => most,
            _ => self.scrolled,
        };
        self.scrolled = to.min(most);
        Deed::Draw
    }

    fn type_in(&mut self, key: Key) {
        match key {
            Key::Enter => self.is_typing = false,
            Key::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            Key::Backspace if self.filter.is_empty() => self.is_typing = false,
            Key::Backspace => drop(self.filter.pop()),
            Key::Char(c) => self.filter.push(c),
            _ => {}
        }
        self.arrange();
    }

    fn step(&mut self, to: Option<&u64>) {
        self.interval = to.copied().unwrap_or(self.interval);
    }

    fn open(&mut self) -> Deed {
        let Some(name) = self.list().nth(self.chosen_at()).map(|queue| queue.name.clone()) else {
            return Deed::Draw;
        };
        self.chosen = Some(name.clone());
        (self.opened, self.scrolled, self.holders) = (Some(name), 0, Holders::default());
        Deed::Poll
    }

    /// Chooses by where the chosen one is and how many rows there are.
    fn choose(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let to = to(self.chosen_at(), self.rows).min(self.shown.len().saturating_sub(1));
        let chosen = self.list().nth(to).map(|queue| queue.name.clone());
        self.chosen = chosen;
    }

    /// Where the chosen one stands in the list.
    fn chosen_at(&self) -> usize {
        let chosen = self.chosen.as_ref();
        chosen.and_then(|name| self.list().position(|queue| queue.name == *name)).unwrap_or(0)
    }

    fn arrange(&mut self) {
        let queues = &self.queues;
        let mut shown: Vec<usize> =
            (0..queues.len()).filter(|at| is_meant(&queues[*at].name, &self.filter)).collect();
        shown.sort_by(|one, other| self.sort.compare(&queues[*one], &queues[*other]));
        self.sums = shown.iter().fold(Sums::default(), |sums, at| sums.and(&queues[*at].sums));
        self.shown = shown;
        self.follow();
    }

    /// Keeps the chosen one in the window, and the window full.
    fn follow(&mut self) {
        let at = self.chosen_at();
        let most = self.shown.len().saturating_sub(self.rows).min(at);
        self.offset = self.offset.max((at + 1).saturating_sub(self.rows)).min(most);
        self.scrolled = self.scrolled.min(self.lines.saturating_sub(self.rows));
    }
}
