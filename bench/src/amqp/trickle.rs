//! Publishers that publish one message each so often, however long confirms take, all on one thread that costs little.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::letter::{Post, now_ns};
use super::wire::readiness::Readiness;
use super::wire::{PATIENCE, Source};
use crate::spread::Spread;

/// Publishes so many, one each `gap`, by one source after the other in turns; ends when each is confirmed. Answers how long
/// each waited for its confirm.
pub(super) fn trickle(sources: &mut [Box<dyn Source>], gap: Duration, count: u64) -> Result<Spread> {
    let (mut readiness, publishers) = (Readiness::of(sources)?, sources.len() as u64);
    let (start, mut post) = (Instant::now(), Post::new(0));
    // When each was put, then how long it waited.
    let (mut waits, mut confirmed) = (Vec::new(), 0);
    while confirmed < count {
        let due = |number: usize| start + gap * number as u32;
        while (waits.len() as u64) < count && due(waits.len()) <= Instant::now() {
            let source = &mut sources[waits.len() % publishers as usize];
            let level = post.draw();
            source.put(level, post.write(level));
            waits.push(post.sent_ns());
            source.flush()?;
        }
        let is_over = waits.len() as u64 == count;
        let wait =
            if is_over { PATIENCE } else { due(waits.len()).saturating_duration_since(Instant::now()) };
        let (mut heard, before) = (false, Instant::now());
        for at in readiness.wait(wait)? {
            heard = true;
            sources[at].hear(&mut |number| {
                let wait = &mut waits[(number * publishers) as usize + at];
                *wait = now_ns() - *wait;
                confirmed += 1;
            })?;
        }
        if is_over && !heard && before.elapsed() >= PATIENCE {
            bail!("nothing came for {} s", PATIENCE.as_secs());
        }
    }
    Ok(Spread::of(waits))
}
