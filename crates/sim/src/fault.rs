//! What breaks, and when.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use overtake_engine::Options;
use overtake_engine::core::{Core, Opened};
use overtake_lane::Step;
use overtake_store::{Fault as DiskFault, OnDamage, Operation, OperationKind, StoreError};

use crate::audit::Audit;
use crate::check::refold as refolding;
use crate::failure::{Checked, Promise, broken, hold};
use crate::plan::Fault;
use crate::refold::{Refold, copy, refold};
use crate::world::{Event, World};

impl World {
    /// Something breaks, and something else will.
    pub(crate) fn strike(&mut self) -> Checked {
        if self.is_calm {
            return Ok(());
        }
        let after = self.chance.faults.within(self.plan.fault_us / 4, self.plan.fault_us * 2);
        self.at(after, Event::Break);
        let fault = self.chance.faults.one_of(&self.plan.faults);
        self.tell(|| format!("FAULT {fault:?}"));
        match fault {
            Fault::Kill if self.life.is_some() => {
                self.count(fault);
                self.disk.kill();
                self.forget_hook();
                self.die("killed");
            }
            Fault::PowerCut => {
                self.count(fault);
                self.disk.power_cut();
                self.forget_hook();
                self.die("the power failed");
            }
            Fault::KillInside => self.strike_inside(fault, DiskFault::Kill),
            Fault::PowerCutInside => self.strike_inside(fault, DiskFault::PowerCut),
            Fault::FailedSync => {
                self.count(fault);
                self.disk.fail_next_sync();
            }
            Fault::DiskError => self.fail_once(),
            Fault::FullDisk => {
                self.count(fault);
                let room = self.chance.disk.below(3 * self.plan.segment_bytes);
                self.disk.set_capacity(Some(self.disk.used() + room));
                let relief = self.chance.disk.within(1, self.plan.fault_us * 2);
                self.at(relief, Event::Relief);
            }
            Fault::ClockJump => self.jump(),
            Fault::Pause => {
                self.count(fault);
                let pause = self.chance.clock.heavy(40_000);
                self.paused_until = self.paused_until.max(self.now_us + pause);
                self.excused_until = self.excused_until.max(self.paused_until);
            }
            Fault::FlippedByte => self.flip()?,
            Fault::Stop if self.life.is_some() => self.stop()?,
            Fault::Kill | Fault::Stop => {}
        }
        Ok(())
    }

    fn jump(&mut self) {
        self.count(Fault::ClockJump);
        let far = self.chance.clock.one_of(&[5, 300, 5_000, 3_600_000]);
        let jump = self.chance.clock.below(2 * far) as i64 - far as i64;
        self.offset_ms += jump;
        if self.chance.steps.once_in(4) {
            let days = self.chance.steps.within(1, 2) as i64 * 24 * 3_600_000;
            self.offset_ms += if self.chance.steps.once_in(2) { days } else { -days };
        }
        self.excused_until = self.excused_until.max(self.now_us);
        self.alarm_at = None;
        self.turn_soon(100);
    }

    /// The next operations of the disk go well, then the process or the machine is gone.
    fn strike_inside(&mut self, fault: Fault, what: DiskFault) {
        self.count(fault);
        let struck = Arc::clone(&self.struck);
        self.hook(what, move || struck.store(true, Ordering::Relaxed));
    }

    /// The next operations of the disk go well, then one fails.
    fn fail_once(&mut self) {
        self.count(Fault::DiskError);
        self.hook(DiskFault::Error(std::io::ErrorKind::Other), || {});
    }

    fn hook(&mut self, what: DiskFault, on_strike: impl Fn() + Send + 'static) {
        let at = self.disk.counts().operations() + self.chance.disk.below(60);
        let mut is_spent = false;
        self.disk.set_hook(move |operation: &Operation<'_>| {
            if is_spent || operation.index < at || operation.kind == OperationKind::Read {
                return DiskFault::None;
            }
            is_spent = true;
            on_strike();
            what
        });
    }

    pub(crate) fn forget_hook(&mut self) {
        self.disk.clear_hook();
        self.struck.store(false, Ordering::Relaxed);
    }

    // ---- damage ----

    /// Flips a bit of a copy of the disk, and sees what a recovery makes of it.
    fn flip(&mut self) -> Checked {
        let names: Vec<String> =
            self.disk.names().into_iter().filter(|name| name.starts_with("journal-")).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.count(Fault::FlippedByte);
        let name = self.chance.disk.one_of(&names);
        let (len, used) = self.disk.read(&name).map_or((0, 0), |bytes| {
            (bytes.len() as u64, bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1))
        });
        if len == 0 {
            return Ok(());
        }
        let within = if self.chance.disk.once_in(4) { len } else { used.max(1) };
        let (at, mask) = (self.chance.disk.below(within), 1 << self.chance.disk.below(8));
        let read = |on_damage, flipped: bool| {
            let disk = copy(&self.disk);
            if flipped {
                disk.flip(&name, at, mask);
            }
            refold(disk, &self.options, on_damage, 0)
        };
        let mut whole = match read(OnDamage::Refuse, false) {
            Ok(whole) => whole,
            Err(error) => {
                return broken(Promise::Refold, format!("a copy of the store cannot be read: {error}"));
            }
        };
        self.open_skipping(&mut whole)?;
        let proven = self.life.as_ref().map(|life| life.proven);
        let came_of = match read(OnDamage::Refuse, true) {
            Ok(read) => judge_accepted(&whole, &read, proven.map(|lsn| lsn.0))?,
            Err(StoreError::Corrupt { file, at: named, .. }) => {
                hold(file == name && named <= at, Promise::Kept, || {
                    format!("byte {at} of {name} was flipped, the store says {file} at {named}")
                })?;
                "refused"
            }
            Err(error) => {
                return broken(
                    Promise::Kept,
                    format!("byte {at} of {name} was flipped, the store says {error}"),
                );
            }
        };
        *self.tally.flips.entry(came_of).or_default() += 1;
        match read(OnDamage::Skip, true) {
            Ok(read) => judge_skipped(&whole, &read, (&name, at))?,
            Err(error) => return broken(Promise::Kept, format!("skipping byte {at} of {name}: {error}")),
        }
        self.open_damaged(&name, at, mask)
    }

    /// A store that is whole is the same to an engine that may skip damage.
    fn open_skipping(&self, whole: &mut Refold) -> Checked {
        let options = Options { on_damage: OnDamage::Skip, ..self.options.clone() };
        let now = self.clock();
        match Core::<u64>::open(copy(&self.disk), &options, now) {
            Ok(Opened { core, .. }) => {
                whole.broker.wake(now, &mut Step::default());
                refolding::check_same(&Audit::of(core.broker()), &Audit::of(&whole.broker))
            }
            Err(error) => broken(Promise::Alive, format!("a whole store does not open, skipping: {error}")),
        }
    }

    /// An engine on a damaged store serves what is left.
    fn open_damaged(&mut self, name: &str, at: u64, mask: u8) -> Checked {
        let disk = copy(&self.disk);
        disk.flip(name, at, mask);
        let options = Options { on_damage: OnDamage::Skip, ..self.options.clone() };
        match Core::<u64>::open(disk, &options, self.clock()) {
            Ok(Opened { mut core, .. }) => core.tick(self.clock().after(100_000)),
            Err(error) => {
                return broken(Promise::Alive, format!("the engine does not open a damaged store: {error}"));
            }
        }
        Ok(())
    }
}

/// The store took a damaged log for a whole one: then nothing is missing, but for the end that no later commit proves.
fn judge_accepted(whole: &Refold, read: &Refold, proven: Option<u64>) -> Checked<&'static str> {
    hold(whole.records.starts_with(&read.records), Promise::Kept, || {
        "a damaged log shows something else".to_owned()
    })?;
    let lost = &whole.records[read.records.len()..];
    if lost.is_empty() {
        return Ok("harmless");
    }
    let is_unproven = proven.is_none_or(|proven| lost.iter().all(|(lsn, _)| lsn.0 >= proven));
    hold(is_unproven, Promise::Kept, || {
        format!("a flipped byte lost {} records, and nobody said so", lost.len())
    })?;
    Ok("taken for the end")
}

/// Nothing is invented, and nothing undamaged is lost.
fn judge_skipped(whole: &Refold, read: &Refold, place: (&str, u64)) -> Checked {
    let mut rest = whole.records.iter();
    let is_part = read.records.iter().all(|record| rest.any(|other| other == record));
    hold(is_part, Promise::Kept, || format!("skipping byte {} of {} invents records", place.1, place.0))?;
    let missing = whole.records.len() - read.records.len();
    let is_end = whole.records.starts_with(&read.records);
    hold(missing <= 1 || is_end, Promise::Kept, || {
        format!("skipping byte {} of {} loses {missing} records: {:?}", place.1, place.0, read.report.damage)
    })
}
