//! What a place may be asked, as functions and their arguments.

use std::sync::Arc;

use overtake_lane::{LeaseId, Original, Outcome, Report, Seq, Status};

use crate::cluster;

use super::parts::Admission;
use super::told::{Admitted, Declined, Malformed, Part, Seen, Shown, Where};

/// Who calls, and by what.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Whose place it is, as the caller knows it: see [`Of`](super::Of). Empty: whoever's it is.
    pub of: &'a str,
    /// Who.
    pub caller: &'a str,
    /// The number of the call among those of the caller to this place; `None`: done twice if asked twice.
    pub number: Option<u64>,
}

/// One thing that a place is asked.
pub trait Asked {
    /// The function.
    const FUNCTION: &'static str;
    /// The effect must outlive the primary: that of a publish or settlement must, that of a lease need not, since a lost lease gives the message once more.
    const IS_PROMISE: bool = true;
    /// What it comes to.
    type Answer;

    /// The function to call; another than [`Self::FUNCTION`] where this request may be done with full memory, and others of its kind may not.
    fn function(&self) -> &'static str {
        Self::FUNCTION
    }

    /// Adds its arguments to those that every call has.
    fn arguments(&self, arguments: &mut Vec<Vec<u8>>);

    /// What an answer says.
    ///
    /// # Errors
    /// [`Malformed`]: it is none of this library.
    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed>;

    /// All arguments after the key.
    fn all_arguments(&self, call: Call<'_>) -> Vec<Vec<u8>> {
        let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default().into();
        let mut all = vec![call.of.as_bytes().to_vec(), call.caller.as_bytes().to_vec(), number(call.number)];
        self.arguments(&mut all);
        all
    }
}

pub(super) fn text(number: impl ToString) -> Vec<u8> {
    number.to_string().into_bytes()
}

pub(super) fn maybe(number: Option<impl ToString>) -> Vec<u8> {
    number.map(text).unwrap_or_default()
}

/// A priority as it was given, in a word.
pub(super) fn given(original: Original) -> Vec<u8> {
    match original {
        Original::Missing => b"m".to_vec(),
        Original::Number(number) => format!("n{number}").into_bytes(),
        Original::Name => b"w".to_vec(),
    }
}

/// Who has other terms hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Whoever declares the queue. Refused where what is there would be misunderstood; nothing is dropped before the next message comes.
    Declared,
    /// A policy. Never refused; of what is over its limits the least urgent goes at once, a thousand in a call.
    ByPolicy,
}

/// Makes the place, or has other terms hold for it.
#[derive(Clone, Debug)]
pub struct Configure<'a> {
    /// Not before the one that holds, or nothing changes.
    pub version: u64,
    /// What holds from now on, as [`Terms::json`](super::Terms::json) says it: the same for many places.
    pub terms: &'a str,
    /// Who says so.
    pub said: Said,
    /// How its queue is defined, as the definitions have it: for whoever finds the place when those are lost. Empty at all places of a queue but the first.
    pub queue: &'a [u8],
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configured {
    /// The place was not there before.
    pub is_new: bool,
    /// The version that holds there now: a later one where somebody else was quicker, or definitions went back.
    pub version: u64,
}

impl Asked for Configure<'_> {
    const FUNCTION: &'static str = "ot_configure";
    /// Definitions say what holds, and do wait: a place that is behind is told again.
    const IS_PROMISE: bool = false;
    type Answer = Result<Configured, Declined>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        let said = match self.said {
            Said::Declared => "declared",
            Said::ByPolicy => "policy",
        };
        arguments.extend([
            text(self.version),
            self.terms.as_bytes().to_vec(),
            said.into(),
            self.queue.to_vec(),
        ]);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        what.or_declined_all(|parts| {
            let [is_new, version] = parts else { return Err(Malformed) };
            Ok(Configured { is_new: Part(is_new).number()? == 1, version: Part(version).count()? })
        })
    }
}

/// Has nothing left of the place: whoever asks it from now on is answered that it is gone, and so is who has an earlier version hold there, as
/// it was under way meanwhile. Answers whether there was something.
#[derive(Clone, Copy, Debug)]
pub struct Forget {
    /// The version of the definitions from which on the queue is not there.
    pub version: u64,
}

impl Forget {
    /// As a call to the place whose keys begin so, if it is this queue's.
    #[must_use]
    pub fn call_of(self, base: &str, of: &str) -> cluster::Call {
        let call = Call { of, caller: "", number: None };
        let args = self.all_arguments(call).into_iter().map(Into::into).collect();
        cluster::Call::write_below(Self::FUNCTION, base, args)
    }
}

impl Asked for Forget {
    const FUNCTION: &'static str = "ot_forget";
    type Answer = bool;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(text(self.version));
    }

    fn read(&self, what: Part<'_>) -> Result<bool, Malformed> {
        Ok(Part(what.parts()?.first().ok_or(Malformed)?).number()? == 1)
    }
}

/// Admits messages, each for itself.
#[derive(Clone, Debug)]
pub struct Admit {
    /// Which.
    pub messages: Vec<Admission>,
    /// Says how many messages are ahead.
    pub tells: bool,
}

impl Asked for Admit {
    const FUNCTION: &'static str = "ot_admit";
    /// One for each; `None`: it was taken before, by its number.
    type Answer = Vec<Result<Option<Admitted>, Declined>>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(text(u8::from(self.tells)));
        self.messages.iter().for_each(|message| message.add(arguments));
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let one = |part| Part(part).or_declined_all(Admitted::read_some);
        what.parts()?.iter().map(one).collect()
    }
}

/// Which lanes a lease is of.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// None of a lesser level.
    pub floor: Option<i32>,
    /// Only of this level.
    pub only: Option<i32>,
    /// None of these levels.
    pub except: Vec<i32>,
    /// Only one: enough where another goes next.
    pub one: bool,
    /// Nothing that goes after this.
    pub last: Option<Where>,
}

impl Choice {
    /// Whether it is of this level, but for those that it leaves out.
    #[must_use]
    pub fn reaches(&self, level: i32) -> bool {
        self.floor.is_none_or(|floor| level >= floor) && self.only.is_none_or(|only| level == only)
    }

    /// Whether it is of this level.
    #[must_use]
    pub fn takes(&self, level: i32) -> bool {
        self.reaches(level) && !self.except.contains(&level)
    }
}

/// Leases messages.
#[derive(Clone, Debug)]
pub struct Leasing {
    /// Most messages.
    pub max: u32,
    /// Most bytes, but one message at least.
    pub max_bytes: u64,
    /// How long, ms; 0: no end of their own.
    pub term_ms: u64,
    /// With whom they end, and how long, ms, that is believed to be there if it says nothing more ([`Alive`]).
    pub holder: Option<(String, u64)>,
    /// From where.
    pub choice: Choice,
    /// Slots that the place was ever granted, by limits ([`Grant`](super::Grant)).
    pub granted: Vec<(Option<i32>, u64)>,
}

impl Asked for Leasing {
    const FUNCTION: &'static str = "ot_lease";
    const IS_PROMISE: bool = false;
    type Answer = Vec<Shown>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        let Choice { floor, only, except, one, last } = &self.choice;
        arguments.extend([
            text(self.max),
            text(self.max_bytes.min(1 << 53)),
            text(self.term_ms),
            self.holder.iter().flat_map(|(holder, _)| holder.bytes()).collect(),
            maybe(self.holder.as_ref().map(|(_, ms)| *ms)),
            maybe(*floor),
            last.map(|last| last.0.to_vec()).unwrap_or_default(),
            text(u8::from(*one)),
            self.granted_json().into_bytes(),
            maybe(*only),
        ]);
        arguments.extend(except.iter().map(text));
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        what.parts()?.iter().map(|part| Shown::read(&Part(part))).collect()
    }
}

impl Leasing {
    fn granted_json(&self) -> String {
        if self.granted.is_empty() {
            return String::new();
        }
        let name = |lane: Option<i32>| lane.map(|lane| lane.to_string()).unwrap_or_default();
        let all = self.granted.iter().map(|(lane, granted)| (name(*lane), serde_json::Value::from(*granted)));
        serde_json::Value::Object(all.collect()).to_string()
    }
}

/// How leases end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// As whoever has them says.
    By(Outcome),
    /// Whoever has them is gone.
    Lost,
    /// Nobody has them: they were given and found no taker, and are as if they had not been.
    Untaken,
}

/// Ends leases, each for itself. Answers of each whether it held.
#[derive(Clone, Debug)]
pub struct Settle {
    /// How.
    pub how: How,
    /// Which.
    pub leases: Vec<(Seq, LeaseId)>,
}

/// An outcome as functions call it, and the delay it names, ms.
pub(super) fn how_words(outcome: Outcome) -> (&'static str, Option<u64>) {
    match outcome {
        Outcome::Ack => ("ack", None),
        Outcome::Nack { delay_ms } => ("nack", delay_ms),
        Outcome::Release => ("release", None),
        Outcome::Reject => ("reject", None),
        Outcome::Timeout => ("timeout", None),
    }
}

fn add_leases(arguments: &mut Vec<Vec<u8>>, leases: &[(Seq, LeaseId)]) {
    arguments.extend(leases.iter().flat_map(|(seq, lease)| [text(seq.0), text(lease.0)]));
}

impl Asked for Settle {
    const FUNCTION: &'static str = "ot_settle";
    type Answer = Vec<bool>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        let (how, delay_ms) = match self.how {
            How::By(outcome) => how_words(outcome),
            How::Lost => ("lost", None),
            How::Untaken => ("untaken", None),
        };
        arguments.extend([how.into(), maybe(delay_ms)]);
        add_leases(arguments, &self.leases);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        what.parts()?.iter().map(|part| Ok(Part(part).number()? == 1)).collect()
    }
}

/// Ends one lease with a report, which is bounded ([`Report::check`]). Answers whether it held.
#[derive(Clone, Debug)]
pub struct Finish {
    /// As whoever has it says.
    pub outcome: Outcome,
    /// Which.
    pub lease: (Seq, LeaseId),
    /// How the work went.
    pub report: Report,
}

impl Asked for Finish {
    const FUNCTION: &'static str = "ot_finish";
    type Answer = bool;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        let (how, delay_ms) = how_words(self.outcome);
        arguments.extend([how.into(), maybe(delay_ms)]);
        add_leases(arguments, &[self.lease]);
        add_report(&self.report, arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        Ok(Part(what.parts()?.first().ok_or(Malformed)?).number()? == 1)
    }
}

/// An exit code, an error, the end of the output.
pub(super) fn add_report(report: &Report, arguments: &mut Vec<Vec<u8>>) {
    let Report { exit_code, error, output } = report;
    arguments.extend([maybe(*exit_code), said(error.as_deref()), said(output.as_deref())]);
}

/// A text behind `=`, or nothing where there is none.
fn said(text: Option<&str>) -> Vec<u8> {
    text.map(|text| format!("={text}")).unwrap_or_default().into()
}

/// What became of a lease that was to last longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// It does.
    Longer,
    /// It is over.
    Over,
    /// Its message is wanted back.
    WantedBack,
}

/// Lengthens leases from now.
#[derive(Clone, Debug)]
pub struct Extend {
    /// So long, ms; 0: no end.
    pub term_ms: u64,
    /// The end of what the work has printed so far; `None`: as it was reported before.
    pub output: Option<Arc<str>>,
    /// Which.
    pub leases: Vec<(Seq, LeaseId)>,
}

impl Asked for Extend {
    const FUNCTION: &'static str = "ot_extend";
    const IS_PROMISE: bool = false;
    type Answer = Vec<Extended>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(text(self.term_ms));
        arguments.push(said(self.output.as_deref()));
        add_leases(arguments, &self.leases);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let one = |part| match Part(part).number()? {
            0 => Ok(Extended::Over),
            1 => Ok(Extended::Longer),
            2 => Ok(Extended::WantedBack),
            _ => Err(Malformed),
        };
        what.parts()?.iter().map(one).collect()
    }
}

/// Lets time pass.
#[derive(Clone, Copy, Debug)]
pub struct Sweep;

impl Asked for Sweep {
    const FUNCTION: &'static str = "ot_sweep";
    const IS_PROMISE: bool = false;
    type Answer = ();

    fn arguments(&self, _: &mut Vec<Vec<u8>>) {}

    fn read(&self, _: Part<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Whoever holds leases that end with it is there, or gone. Answers what is out to it.
#[derive(Clone, Debug)]
pub struct Alive {
    /// Who.
    pub holder: String,
    /// It is believed to be there for so long from now, ms; 0: it is gone, and what it holds goes back.
    pub ms: u64,
    /// What is out to it and unknown to it: that goes back.
    pub unknown: Option<Unknown>,
}

/// Messages that are out to a holder which knows nothing of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// By this lease, or one before it.
    pub last: LeaseId,
    /// Which.
    pub seqs: Vec<Seq>,
}

/// Most messages of a holder that is gone which go back in one call. The rest goes back in the calls that follow, whatever they ask.
pub const RETURNED_MAX: u64 = 128;

/// What is out to a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// How many messages went back; of a holder that is gone no more than [`RETURNED_MAX`].
    pub lost: u64,
    /// The last lease that was given there, to whomever.
    pub last: LeaseId,
    /// The messages that are out to it.
    pub seqs: Vec<Seq>,
}

impl Alive {
    /// The holder is gone.
    #[must_use]
    pub fn gone(holder: String) -> Self {
        Self { holder, ms: 0, unknown: None }
    }
}

impl Asked for Alive {
    const FUNCTION: &'static str = "ot_alive";
    const IS_PROMISE: bool = false;
    type Answer = Out;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([self.holder.clone().into_bytes(), text(self.ms)]);
        if let Some(Unknown { last, seqs }) = &self.unknown {
            arguments.push(text(last.0));
            arguments.extend(seqs.iter().map(|seq| text(seq.0)));
        }
    }

    fn read(&self, what: Part<'_>) -> Result<Out, Malformed> {
        let [lost, last, seqs] = what.parts()? else { return Err(Malformed) };
        let (seqs, []) = Part(seqs).bytes()?.as_chunks() else { return Err(Malformed) };
        let seqs = seqs.iter().map(|seq| Seq(u64::from_be_bytes(*seq))).collect();
        Ok(Out { lost: Part(lost).count()?, last: LeaseId(Part(last).count()?), seqs })
    }
}

/// Whether a queue is used. Answers in how many ms it has been unused for so long.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// It is, now.
    pub is_used: bool,
    /// How long it may be unused, ms.
    pub within_ms: u64,
}

impl Asked for Use {
    const FUNCTION: &'static str = "ot_use";
    const IS_PROMISE: bool = false;
    type Answer = u64;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([text(u8::from(self.is_used)), text(self.within_ms)]);
    }

    fn read(&self, what: Part<'_>) -> Result<u64, Malformed> {
        Part(what.parts()?.first().ok_or(Malformed)?).count()
    }
}

/// Admits a message that may be over at once, and leases what goes next to somebody who takes one message. Answers what came of the message, and what was leased: it, or what goes before it.
#[derive(Clone, Debug)]
pub struct Offer {
    /// How long the lease lasts, ms; 0: no end of its own.
    pub term_ms: u64,
    /// With whom it ends, and how long, ms, that is believed to be there.
    pub holder: Option<(String, u64)>,
    /// None of a lesser level.
    pub floor: Option<i32>,
    /// The message.
    pub message: Admission,
}

impl Asked for Offer {
    const FUNCTION: &'static str = "ot_offer";
    type Answer = (Result<Option<Admitted>, Declined>, Vec<Shown>);

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([
            text(self.term_ms),
            self.holder.iter().flat_map(|(holder, _)| holder.bytes()).collect(),
            maybe(self.holder.as_ref().map(|(_, ms)| *ms)),
            maybe(self.floor),
        ]);
        self.message.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let [admitted, leased] = what.parts()? else { return Err(Malformed) };
        let admitted = Part(admitted).or_declined_all(Admitted::read_some)?;
        let leased = Part(leased).parts()?.iter().map(|part| Shown::read(&Part(part)));
        Ok((admitted, leased.collect::<Result<_, _>>()?))
    }
}

/// A state in a word.
pub(super) fn word(status: Status) -> &'static str {
    match status {
        Status::Ready => "ready",
        Status::Delayed => "delayed",
        Status::Leased => "leased",
        Status::Dead => "dead",
    }
}

/// The gauges of a place.
#[derive(Clone, Copy, Debug)]
pub struct View;

impl Asked for View {
    const FUNCTION: &'static str = "ot_view";
    const IS_PROMISE: bool = false;
    type Answer = Seen;

    fn arguments(&self, _: &mut Vec<Vec<u8>>) {}

    fn read(&self, what: Part<'_>) -> Result<Seen, Malformed> {
        Seen::read(&what)
    }
}

/// A page of messages by sequence.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The last ones first.
    pub newest: bool,
    /// Where the page before ended.
    pub after: Option<Seq>,
    /// Most messages.
    pub limit: u32,
    /// With what they say.
    pub with_content: bool,
    /// Of those that stand so.
    pub statuses: Vec<Status>,
}

impl Asked for Standing {
    const FUNCTION: &'static str = "ot_browse";
    const IS_PROMISE: bool = false;
    type Answer = Vec<Shown>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(if self.newest { b"newest".to_vec() } else { b"published".to_vec() });
        arguments.push(maybe(self.after.map(|after| after.0)));
        arguments.extend([text(self.limit), text(u8::from(self.with_content))]);
        arguments.extend(self.statuses.iter().map(|status| word(*status).into()));
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        what.parts()?.iter().map(|part| Shown::read(&Part(part))).collect()
    }
}
