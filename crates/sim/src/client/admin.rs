//! Administrators: other settings, other priorities, removing, replaying, looking.

use std::sync::Arc;

use overtake_engine::core::Request;
use overtake_engine::{Browse, Change, Filter, Select};
use overtake_lane::{
    Binding, BrowseOrder, Command, Destination, Given, HeaderValue, Outcome, PolicyKind, Status,
};

use super::Role;
use crate::draw;
use crate::world::World;

impl World {
    pub(super) fn admin(&mut self, at: usize) {
        let queue = self.some_queue();
        if self.plan.is_deep && self.rng().once_in(2) {
            let select = self.selects_some();
            self.asks(at, change(queue, select, Change::Remove));
            return;
        }
        let request = match self.rng().below(16) {
            0..=2 => self.redeclares(&queue),
            3 if self.rng().once_in(6) => {
                let (if_empty, if_unused) = (self.rng().once_in(2), self.rng().once_in(2));
                Some(Request::Do(Command::DeleteQueue { name: queue, if_empty, if_unused }))
            }
            4 | 5 => {
                let select = self.selects(&queue);
                let scheme = self.settings_of(&queue).map(|settings| settings.scheme).unwrap_or_default();
                let priority = draw::priority(self.rng(), scheme);
                Some(change(queue, select, Change::Reprioritise(priority)))
            }
            6 => {
                let select = self.selects(&queue);
                Some(change(queue, select, Change::Remove))
            }
            7 if self.rng().once_in(3) => {
                let status = self.rng().one_of(&[
                    None,
                    Some(Status::Dead),
                    Some(Status::Delayed),
                    Some(Status::Leased),
                ]);
                Some(Request::Do(Command::Purge { queue, status, expect: None }))
            }
            8..=10 => {
                let select = self.selects(&queue);
                let promote = self.rng().once_in(3).then_some(Given::Number(3));
                Some(change(queue, select, Change::Replay(promote)))
            }
            11 => {
                let filter = self.filter();
                let order = self.rng().one_of(&[BrowseOrder::Dispatch, BrowseOrder::Published]);
                // Some pages end early.
                let looks = filter.key.is_some().then_some(7);
                let browse = Browse { filter, order, limit: 50, looks, ..Browse::default() };
                Some(Request::Browse { queue, browse })
            }
            12 => Some(Request::Queues { after: None, limit: 100 }),
            13 => Some(Request::Message { queue, id: format!("id{}", self.rng().below(12)) }),
            14 => self.rebinds(queue),
            _ => None,
        };
        if let Some(request) = request {
            self.asks(at, request);
        }
    }

    /// An administrator, or who comes first where there is none, sets metadata now and then.
    pub(super) fn remembers(&mut self, at: usize) -> bool {
        let may = at == 0 || self.clients[at].role == Role::Admin;
        if !may || !self.plan.has_metadata || !self.chance.metadata.once_in(3) {
            return false;
        }
        let request = match self.chance.metadata.once_in(12) {
            true => Request::Metadata,
            false => Request::Do(Command::SetMetadata { entries: draw::metadata(&mut self.chance.metadata) }),
        };
        self.asks(at, request);
        true
    }

    /// An administrator, or who comes first where there is none, wants messages back now and then.
    pub(super) fn wants_back(&mut self, at: usize) -> bool {
        let may = at == 0 || self.clients[at].role == Role::Admin;
        if !may || !self.plan.has_work || !self.chance.work.once_in(8) {
            return false;
        }
        let queue = self.some_queue();
        let select = self.selects(&queue);
        self.asks(at, change(queue, select, Change::Cancel));
        true
    }

    /// An attempt at a message that waits says late how it ended, now and then.
    pub(super) fn ends_late(&mut self, at: usize) -> bool {
        if !(self.plan.has_work && self.plan.ends_late && self.chance.late.once_in(6)) {
            return false;
        }
        let queue = self.chance.late.one_of(&self.names.queues);
        let Some((_, seen)) = self.audit.named(self.here, &queue) else { return false };
        let tried: Vec<_> = seen.messages.iter().filter(|message| message.count > 0).collect();
        if tried.is_empty() {
            return false;
        }
        let rng = &mut self.chance.late;
        let message = rng.one_of(&tried);
        let (id, count) = (format!("seq-{}", message.seq.0).into(), message.count);
        let attempt = if rng.once_in(4) { count + 1 } else { count };
        let outcome = rng.one_of(&[Outcome::Ack, Outcome::Reject, Outcome::Timeout, Outcome::Release]);
        let report = Box::new(draw::report(rng));
        self.asks(at, Request::Do(Command::FinishLate { queue, id, attempt, outcome, report }));
        true
    }

    /// The same of policies.
    pub(super) fn rules(&mut self, at: usize) -> bool {
        let may = at == 0 || self.clients[at].role == Role::Admin;
        if !may || !self.plan.has_policies || !self.chance.policies.once_in(5) {
            return false;
        }
        let exchanges = self.names.exchanges.clone();
        let (rng, is_deep) = (&mut self.chance.policies, self.plan.is_deep);
        let request = match rng.once_in(12) {
            true => Request::Policies(rng.one_of(&[PolicyKind::User, PolicyKind::Operator])),
            false => Request::Do(draw::policy(rng, &exchanges, is_deep)),
        };
        self.asks(at, request);
        true
    }

    fn redeclares(&mut self, queue: &Arc<str>) -> Option<Request> {
        let mut settings = self.own_settings_of(queue)?.clone();
        let names = &self.names;
        if self.chance.workload.once_in(4) {
            settings = draw::settings(&mut self.chance.workload, &names.queues, &names.exchanges);
        } else {
            draw::vary(&mut self.chance.workload, &mut settings, &names.queues, &names.exchanges);
        }
        if self.plan.is_deadly {
            draw::dying(&mut self.chance.deaths, &mut settings, &names.exchanges);
        }
        if self.plan.is_deep {
            draw::without_limits(&mut settings);
        }
        if self.plan.has_keys {
            draw::keyed(&mut self.chance.keys, &mut settings);
        }
        if self.plan.has_work {
            let (queues, is_deep) = (&self.names.queues, self.plan.is_deep);
            draw::working(&mut self.chance.work, &mut settings, queue, queues, is_deep);
        }
        Some(Request::Do(Command::declare(Arc::clone(queue), Box::new(settings))))
    }

    fn rebinds(&mut self, queue: Arc<str>) -> Option<Request> {
        let exchanges = self.names.exchanges.clone();
        let exchange = exchanges.first()?.clone();
        let rng = self.rng();
        let routing_key = draw::pattern(rng);
        let headers = vec![("n".to_owned(), HeaderValue::Int(rng.below(3) as i64))];
        let binding = Binding { headers, ..Binding::new(&exchange, Destination::Queue(queue), &routing_key) };
        let binding = Box::new(binding);
        Some(Request::Do(if rng.once_in(2) { Command::Bind(binding) } else { Command::Unbind(binding) }))
    }

    fn selects(&mut self, queue: &str) -> Select {
        let some_seq = self.some_seq(queue);
        match self.rng().below(4) {
            0 => Select::Id(format!("id{}", self.rng().below(12))),
            1 | 2 => some_seq.map_or(Select::Id("seq-1".to_owned()), |seq| Select::Id(format!("seq-{seq}"))),
            _ => Select::Matching(self.filter()),
        }
    }

    /// About a third of a queue; another third is never selected.
    fn selects_some(&mut self) -> Select {
        let headers = vec![("n".to_owned(), self.rng().below(2).to_string())];
        Select::Matching(Filter { headers, ..Filter::default() })
    }

    fn some_seq(&mut self, queue: &str) -> Option<u64> {
        let (_, seen) = self.audit.named(self.here, queue)?;
        let count = seen.messages.len() as u64;
        let at = self.chance.workload.below(count.max(1)) as usize;
        seen.messages.get(at).map(|message| message.seq.0)
    }

    fn filter(&mut self) -> Filter {
        let rng = self.rng();
        Filter {
            status: rng
                .once_in(4)
                .then(|| rng.one_of(&[Status::Ready, Status::Delayed, Status::Leased, Status::Dead])),
            priority: rng.once_in(4).then(|| Given::Number(rng.below(10) as i64)),
            key: rng.once_in(3).then(|| format!("k{}", rng.below(4))),
            headers: if rng.once_in(2) {
                vec![("n".to_owned(), rng.below(3).to_string())]
            } else {
                Vec::new()
            },
            ..Filter::default()
        }
    }
}

/// A change, answered when it is done.
pub(crate) fn change(queue: Arc<str>, select: Select, change: Change) -> Request {
    Request::Change { queue, select, change, only_start: false }
}
