//! The keys that there are.

use overtake_peer::redis::Line;
use redis::{Value, cmd};

use super::map::Place;
use super::{Cluster, Fault};

/// About so many keys are looked at in one step: a server does nothing else meanwhile.
const STEP: u32 = 1_000;

impl Cluster {
    /// The keys on all primaries that match a pattern of `SCAN`: each that is there all the time at least once.
    ///
    /// # Errors
    /// The node that did not answer, and why, as a phrase.
    pub async fn keys(&self, pattern: &str) -> Result<Vec<String>, String> {
        let mut keys = Vec::new();
        for place in self.map().primaries() {
            self.keys_at(place, pattern, &mut keys).await.map_err(|why| format!("{place}: {why}"))?;
        }
        Ok(keys)
    }

    async fn keys_at(&self, place: &Place, pattern: &str, keys: &mut Vec<String>) -> Result<(), String> {
        let mut line = self.roads.server(place)?.line().await?;
        let mut cursor = "0".to_owned();
        loop {
            let step = tokio::time::timeout(
                self.roads.nodes.patience.answer(),
                step(&mut line, &cursor, pattern, keys),
            );
            cursor = step.await.map_err(|_| "it does not answer")??;
            if cursor == "0" {
                return Ok(());
            }
        }
    }
}

/// One step; answers where the next one begins.
async fn step(
    line: &mut Line,
    cursor: &str,
    pattern: &str,
    keys: &mut Vec<String>,
) -> Result<String, String> {
    let mut scan = cmd("SCAN");
    scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(STEP);
    let answer = line.ask(&scan).await?.map_err(|fault| refused(&fault))?;
    let Value::Array(parts) = answer else {
        return Err("it answers SCAN otherwise than servers do".to_owned());
    };
    let [next, Value::Array(found)] = &parts[..] else {
        return Err("it answers SCAN otherwise than servers do".to_owned());
    };
    keys.extend(found.iter().map(super::look::text));
    Ok(super::look::text(next))
}

fn refused(fault: &Fault) -> String {
    let what_to_do = if fault.is_forbidden() { "; give the user the right +scan (ACL SETUSER)" } else { "" };
    format!("{} {}{what_to_do}", fault.code(), fault.details())
}
