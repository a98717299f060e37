//! Looks at each node twice a second, over a connection of its own: whether it answers, and how it is. [`Standing`](super::standing::Standing) keeps it.

use std::sync::Arc;
use std::time::Duration;

use overtake_peer::redis::Line;
use redis::cmd;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::facts::replicas;
use super::look::{Info, forbidden, text};
use super::map::Place;
use super::roads::Roads;
use super::standing::Said;

/// Between two looks at a node.
const PERIOD: Duration = Duration::from_millis(500);
/// A node that does not answer a look within this time is down.
const PATIENCE: Duration = Duration::from_millis(1_000);

/// As long as there is a cluster: looks at every node of the map, and at those that come.
pub(super) async fn probe_all(roads: Arc<Roads>) {
    let mut maps = roads.maps.subscribe();
    loop {
        let map = Arc::clone(&maps.borrow_and_update());
        for (place, sooner) in roads.standing.follow(&map) {
            roads.spawn(probe(Arc::clone(&roads), place, sooner));
        }
        if maps.changed().await.is_err() {
            return;
        }
    }
}

async fn probe(roads: Arc<Roads>, place: Place, sooner: Arc<Notify>) {
    let mut line = None;
    let mut looks = interval(PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            () = sooner.notified() => {}
        }
        let said = timeout(PATIENCE, ask(&roads, &place, line.take())).await;
        let said =
            said.unwrap_or_else(|_| Err(format!("does not answer within {} ms", PATIENCE.as_millis())));
        let said = said.map(|(said, open)| {
            line = Some(open);
            said
        });
        let is_down = said.is_err();
        if !roads.standing.tell(&place, said) {
            return;
        }
        if is_down {
            // A replica may have taken over.
            roads.look.notify_one();
        }
    }
}

/// Over the connection of before, if there is one and it is not lost; answers the connection, too.
async fn ask(roads: &Roads, place: &Place, line: Option<Line>) -> Result<(Said, Line), String> {
    if let Some(line) = line
        && let Ok(said) = ask_over(line).await
    {
        return Ok(said);
    }
    ask_over(roads.server(place)?.line().await?).await
}

async fn ask_over(mut line: Line) -> Result<(Said, Line), String> {
    let mut info = cmd("INFO");
    info.arg("server").arg("memory").arg("replication");
    let said = line.ask(&info).await?.map_err(|fault| forbidden(&fault, "INFO"))?;
    Ok((read(&Info::parse(&text(&said))), line))
}

fn read(info: &Info) -> Said {
    let number = |name: &str| info.number(name).unwrap_or(0);
    Said {
        product: info.product(),
        is_primary: info.get("role") != Some("slave"),
        // What goes to replicas and logs is not counted for `maxmemory`.
        memory_used: number("used_memory").saturating_sub(number("mem_not_counted_for_evict")),
        memory_max: number("maxmemory"),
        replicas: replicas(info),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_a_server_counts_it_for_its_limit() {
        let said = read(&Info::parse(
            "redis_version:7.0.15\r\nrole:master\r\nused_memory:100\r\nmem_not_counted_for_evict:30\r\nmaxmemory:90\r\n",
        ));
        assert_eq!((said.memory_used, said.memory_max, said.is_primary), (70, 90, true));
        assert_eq!(said.product, "Redis 7.0.15");
    }
}
