//! Limits of what is out at once over several places, by slots that the first of them grants.

use overtake_lane::PlaceNumber;
use redis::Value;

use super::ask::{Asked, text};
use super::told::{Malformed, Part};

/// What a place says of its slots of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The limit: the level of a lane; `None`: that of the queue.
    pub lane: Option<i32>,
    /// How many it was ever granted.
    pub granted: u64,
    /// How many it ever gave back.
    pub returned: u64,
    /// How many it has that nothing is in.
    pub idle: u64,
}

impl Slots {
    pub(super) fn read(part: Part<'_>) -> Result<Self, Malformed> {
        let [lane, granted, returned, idle] = part.parts()? else { return Err(Malformed) };
        let lane = match Part(lane).text()? {
            "" => None,
            level => Some(level.parse().map_err(|_| Malformed)?),
        };
        let [granted, returned, idle] = [granted, returned, idle].map(|number| Part(number).count());
        Ok(Self { lane, granted: granted?, returned: returned?, idle: idle? })
    }
}

fn name(lane: Option<i32>) -> Vec<u8> {
    lane.map(text).unwrap_or_default()
}

/// Grants slots to a place: asked of the first one. Answers how many that place was ever granted; and where none is left, which places have some, and how many those were ever granted.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Of which limit.
    pub lane: Option<i32>,
    /// To which place.
    pub place: PlaceNumber,
    /// How many more it would have.
    pub wants: u32,
    /// What others said that the first place may not have heard yet: places, how many each was ever granted, and gave back.
    pub heard: Vec<(PlaceNumber, u64, u64)>,
}

impl Asked for Grant {
    const FUNCTION: &'static str = "ot_grant";
    type Answer = (u64, Vec<(PlaceNumber, u64)>);

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([name(self.lane), text(self.place), text(self.wants)]);
        for (place, granted, returned) in &self.heard {
            arguments.extend([text(place), text(granted), text(returned)]);
        }
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let [granted, held @ ..] = what.parts()? else { return Err(Malformed) };
        let (held, []) = held.as_chunks::<2>() else { return Err(Malformed) };
        let one = |[place, granted]: &[Value; 2]| {
            let place = PlaceNumber::try_from(Part(place).count()?).map_err(|_| Malformed)?;
            Ok((place, Part(granted).count()?))
        };
        Ok((Part(granted).count()?, held.iter().map(one).collect::<Result<_, _>>()?))
    }
}

/// Has a place give back the slots of a limit that nothing is in.
#[derive(Clone, Copy, Debug)]
pub struct GiveBackSlots {
    /// Of which limit.
    pub lane: Option<i32>,
    /// How many it was ever granted, which it may not have heard.
    pub granted: u64,
}

impl Asked for GiveBackSlots {
    const FUNCTION: &'static str = "ot_give_back_slots";
    type Answer = ();

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([name(self.lane), text(self.granted)]);
    }

    fn read(&self, _: Part<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}
