//! The same without a screen: a frame as text, or a line of JSON for each poll.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::state::State;
use super::theme::SHADES;
use super::{Feed, Plan, RETRY, lists};
use crate::commands::{Ended, Session};
use crate::failure::{Exit, Failure};
use crate::gauges::{Quantile, QueueNow, bar, figures};
use crate::table::{Side, Table, count, number, one_line};

/// Cells of a bar.
const BAR: usize = 12;

/// Polls twice, so that there are rates, and prints a frame.
pub(super) async fn once(plan: &Plan, feed: &mut Feed, session: &Session) -> Ended {
    let mut state = State::new(session.client.url(), session.client.vhost(), plan.sort, plan.interval);
    feed.first(&mut state).await?;
    sleep(Duration::from_millis(plan.interval)).await;
    again(feed, &mut state).await?;
    session.out.text(&text(&state))?;
    Ok(Exit::Done)
}

/// A line for each poll, the first without rates; with `--once` only the second. What the broker does not answer is a line, too.
pub(super) async fn lines(plan: &Plan, feed: &mut Feed, session: &Session) -> Ended {
    let mut state = State::new(session.client.url(), session.client.vhost(), plan.sort, plan.interval);
    feed.first(&mut state).await?;
    if !plan.once {
        session.out.json(&line(&state))?;
    }
    loop {
        let lost = if state.lost.is_some() { RETRY } else { Duration::ZERO };
        sleep(lost.max(Duration::from_millis(state.pause()))).await;
        match again(feed, &mut state).await {
            Ok(()) => {}
            Err(failure) if plan.once || failure.exit() == Exit::Denied => return Err(failure),
            Err(failure) => state.lose(feed.now(), failure.what()),
        }
        session.out.json(&line(&state))?;
        if plan.once {
            return Ok(Exit::Done);
        }
    }
}

async fn again(feed: &mut Feed, state: &mut State) -> Result<(), Failure> {
    let wanted = state.wanted(feed.only_one());
    let poll = feed.asker.poll(&wanted).await?;
    feed.put(state, &wanted, poll);
    Ok(())
}

fn line(state: &State) -> Value {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ms = super::millis(since_epoch);
    if let Some((_, why)) = &state.lost {
        return json!({ "at_ms": at_ms, "lost": why });
    }
    let health = &state.health;
    let queues: Vec<Value> = state.list().map(QueueNow::json).collect();
    json!({
        "at_ms": at_ms,
        "broker": {
            "url": state.url,
            "vhost": state.vhost,
            "version": health.version,
            "ready": health.not_ready.is_none(),
            "warning": health.not_ready.as_ref().or(health.warning.as_ref()),
        },
        "totals": state.sums.json(),
        "queues": queues,
    })
}

pub(super) fn text(state: &State) -> String {
    let health = &state.health;
    let how = health.not_ready.as_ref().map(|why| format!("not ready: {why}"));
    let how = how.or_else(|| health.warning.clone()).unwrap_or_else(|| "ready".to_owned());
    let vhost = if state.vhost == "/" { String::new() } else { format!(", vhost {}", state.vhost) };
    let sums = super::frame::sums(&state.sums).into_iter().map(|(text, _)| text);
    let sums =
        [count(state.list().len() as u64, "queue")].into_iter().chain(sums).collect::<Vec<_>>().join(", ");
    let head = format!("overtake {}, {}{vhost}: {how}\n{sums}\n", health.version, state.url);
    if state.list().len() == 0 { head } else { format!("{head}\n{}", table(state)) }
}

fn table(state: &State) -> String {
    let mut table = Table::new(&[
        ("QUEUE", Side::Left),
        ("READY", Side::Right),
        ("OLDEST", Side::Right),
        ("URGENT", Side::Right),
        ("WAITING", Side::Left),
        ("IN/S", Side::Right),
        ("OUT/S", Side::Right),
        ("LEASED", Side::Right),
        ("P95", Side::Right),
        ("DEAD", Side::Right),
        ("DELAYED", Side::Right),
        ("STATE", Side::Left),
    ]);
    for queue in state.list() {
        let sums = &queue.sums;
        table.row(vec![
            one_line(&queue.name, usize::MAX),
            number(sums.ready),
            lists::age(sums),
            lists::urgent(queue),
            shades(queue),
            figures::rate(sums.in_rate),
            figures::rate(sums.out_rate),
            number(sums.leased),
            queue.p95.map_or_else(|| "-".to_owned(), Quantile::text),
            number(sums.dead),
            number(sums.delayed),
            queue.words(),
        ]);
    }
    table.text()
}

/// A bar of what is ready.
fn shades(queue: &QueueNow) -> String {
    let cells = bar(queue.ready_by_heat(), BAR);
    SHADES.iter().zip(cells).flat_map(|(shade, cells)| std::iter::repeat_n(*shade, cells)).collect()
}
