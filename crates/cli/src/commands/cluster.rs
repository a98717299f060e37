//! `overtake cluster`

use clap::Subcommand;
use hyper::Method;
use serde_json::{Value, json};

use super::queue::text;
use super::{Ended, Session};
use crate::address::path;
use crate::confirm::Yes;
use crate::failure::Exit;
use crate::out::{HEAD, RESET};
use crate::table::{Side, Table, number};
use crate::words;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the brokers on the same servers, the servers, and how many partitions of each queue they have.
    ///
    /// As the broker sees it, within half a second; it asks no server, so the answer comes while they are away, too.
    #[command(after_help = "\
Examples:
  overtake cluster status
  overtake cluster status --json | jq -r '.nodes[] | select(.up | not) | .trouble'")]
    Status,
    /// List queues whose definition the servers have lost: their messages are kept, and nobody is given them.
    #[command(after_help = "\
Examples:
  overtake cluster orphans
  overtake cluster orphans --json")]
    Orphans,
    /// Define a queue again whose definition was lost, as it was: its messages are delivered from then on.
    #[command(after_help = "\
Examples:
  overtake cluster adopt 1734960612
  overtake cluster adopt 1734960612 --name orders-2")]
    Adopt {
        /// The number of the queue, as `overtake cluster orphans` lists it.
        #[arg(value_name = "N", value_parser = words::whole(0..=u32::MAX))]
        number: u32,
        /// Another name than it had, where a queue has that by now.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Remove a queue whose definition was lost, with its messages.
    #[command(after_help = "\
Examples:
  overtake cluster discard 1734960612
  overtake cluster discard 1734960612 --yes")]
    Discard {
        /// The number of the queue, as `overtake cluster orphans` lists it.
        #[arg(value_name = "N", value_parser = words::whole(0..=u32::MAX))]
        number: u32,
        #[command(flatten)]
        yes: Yes,
    },
}

/// Asks the broker about its servers.
pub(crate) async fn run(command: &ClusterCommand, session: &Session) -> Ended {
    match command {
        ClusterCommand::Status => session.out.answer(&session.client.get("/v1/cluster").await?, shown)?,
        ClusterCommand::Orphans => {
            session.out.answer(&session.client.get("/v1/cluster/orphans").await?, orphans)?;
        }
        ClusterCommand::Adopt { number, name } => {
            let path = path(&["v1", "cluster", "orphans", &number.to_string(), "adopt"]);
            let answer = session.client.ask(Method::POST, &path, Some(&json!({ "name": name }))).await?;
            session.out.done(&answer.body, || {
                let said = |key: &str| text(&answer.body[key]);
                let (name, vhost, messages) =
                    (said("name"), said("vhost"), answer.body["messages"].as_u64().unwrap_or(0));
                format!("queue {name} of virtual host {vhost} is defined again, with {messages} messages")
            })?;
        }
        ClusterCommand::Discard { number, yes } => {
            yes.or_ask(&format!("Remove the queue {number} with all its messages?"))?;
            let path = path(&["v1", "cluster", "orphans", &number.to_string()]);
            let answer = session.client.ask(Method::DELETE, &path, None).await?;
            let messages = answer.body["messages"].as_u64().unwrap_or(0);
            session
                .out
                .done(&answer.body, || format!("queue {number} is removed with {messages} messages"))?;
        }
    }
    Ok(Exit::Done)
}

fn list<'v>(answer: &'v Value, key: &str) -> &'v [Value] {
    answer[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn shown(answer: &Value) -> String {
    if answer["store"] != "servers" {
        return "no cluster: this broker keeps its messages in a directory of its own (engine.kind = \"embedded\")\n".to_owned();
    }
    let mut all = format!("{HEAD}brokers{RESET}\n{}", brokers(answer));
    all.push_str(&format!("\n{HEAD}servers{RESET}\n{}", nodes(answer)));
    all.extend(
        list(answer, "nodes").iter().filter_map(|node| Some(format!("! {}\n", node["trouble"].as_str()?))),
    );
    if !list(answer, "queues").is_empty() {
        all.push_str(&format!("\n{HEAD}partitions{RESET}\n{}", queues(answer)));
    }
    all
}

fn brokers(answer: &Value) -> String {
    let columns = [("PROCESS", Side::Left), ("VERSION", Side::Left), ("SINCE", Side::Left), ("", Side::Left)];
    let mut table = Table::new(&columns);
    for broker in list(answer, "brokers") {
        let said = |key: &str| broker[key].as_str().unwrap_or("?").to_owned();
        let note = match (broker["process"] == answer["process"], broker["overdue"] == true) {
            (true, _) => "this broker",
            (false, true) => "heartbeat overdue",
            (false, false) => "",
        };
        table.row(vec![said("process"), said("version"), said("since"), note.to_owned()]);
    }
    table.text()
}

fn nodes(answer: &Value) -> String {
    let mut table = Table::new(&[
        ("ADDRESS", Side::Left),
        ("ROLE", Side::Left),
        ("STATE", Side::Left),
        ("SLOTS", Side::Right),
        ("MEMORY", Side::Right),
        ("OF", Side::Right),
        ("REPLICAS", Side::Right),
        ("LAG", Side::Right),
        ("SINCE", Side::Left),
        ("PRODUCT", Side::Left),
    ]);
    for node in list(answer, "nodes") {
        let whole = |key: &str| node[key].as_u64().unwrap_or(0);
        let state = match (node["up"] == true, node["full"] == true) {
            (false, _) => "down",
            (true, true) => "full",
            (true, false) => "up",
        };
        let max = match whole("memory_max_bytes") {
            0 => "no limit".to_owned(),
            max => mebibytes(max),
        };
        let replicas = list(node, "replicas");
        let online = replicas.iter().filter(|replica| replica["online"] == true).count();
        let lag = replicas.iter().filter_map(|replica| replica["lag_bytes"].as_u64()).max();
        let is_primary = node["role"] == "primary";
        let only_primary = |cell: String| if is_primary { cell } else { String::new() };
        table.row(vec![
            text(&node["address"]),
            text(&node["role"]),
            state.to_owned(),
            only_primary(number(whole("slots"))),
            mebibytes(whole("memory_bytes")),
            max,
            only_primary(format!("{online} of {}", replicas.len().max(whole("replicas_expected") as usize))),
            lag.map(|bytes| format!("{bytes} B")).unwrap_or_default(),
            text(&node["since"]),
            text(&node["product"]),
        ]);
    }
    table.text()
}

fn mebibytes(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

fn queues(answer: &Value) -> String {
    let mut table = Table::new(&[("VHOST", Side::Left), ("QUEUE", Side::Left), ("PARTITIONS", Side::Left)]);
    for queue in list(answer, "queues") {
        let partitions = queue["partitions"].as_object();
        let at = |(address, count): (&String, &Value)| match address.as_str() {
            "" => format!("{count} nowhere"),
            address => format!("{count} at {address}"),
        };
        let places: Vec<_> = partitions.into_iter().flatten().map(at).collect();
        table.row(vec![text(&queue["vhost"]), text(&queue["queue"]), places.join(", ")]);
    }
    table.text()
}

fn orphans(answer: &Value) -> String {
    let all = list(answer, "orphans");
    if all.is_empty() {
        return "every queue on the servers is defined\n".to_owned();
    }
    let mut table = Table::new(&[
        ("NUMBER", Side::Right),
        ("VHOST", Side::Left),
        ("QUEUE", Side::Left),
        ("PARTITIONS", Side::Right),
        ("MESSAGES", Side::Right),
    ]);
    let counted = |value: &Value| number(value.as_u64().unwrap_or(0));
    for orphan in all {
        let vhost = orphan["vhost"].as_str().unwrap_or("–").to_owned();
        let row = [orphan["number"].to_string(), vhost, text(&orphan["name"])];
        let counts = [counted(&orphan["partitions"]), counted(&orphan["messages"])];
        table.row(row.into_iter().chain(counts).collect());
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn one_screen_says_who_is_there_what_is_wrong_and_what_is_where() {
        let replica = json!({ "address": "c:1", "online": true, "lag_bytes": 14, "lag_seconds": 0 });
        let node = |address: &str, up: bool, replicas: Value| {
            json!({
                "address": address, "role": "primary", "up": up, "since": "2026-01-01T00:00:00Z", "slots": 8192, "full": false,
                "memory_bytes": 3 << 19, "memory_max_bytes": 1 << 30, "replicas_expected": 1, "replicas": replicas, "product": "Valkey 8.0.1",
            })
        };
        let mut dead = node("b:1", false, json!([]));
        dead["trouble"] = "primary b:1 is down: Connection refused; partitions there are not served".into();
        let answer = json!({
            "store": "servers", "process": "0a",
            "brokers": [
                { "process": "0a", "version": "0.4.0", "since": "2026-01-01T00:00:00Z", "overdue": false },
                { "process": "0b", "overdue": true },
            ],
            "nodes": [node("a:1", true, json!([replica])), dead],
            "queues": [{ "vhost": "/", "queue": "work", "partitions": { "a:1": 3, "b:1": 1 } }],
        });
        expect![[r#"
            brokers
            PROCESS  VERSION  SINCE
            0a       0.4.0    2026-01-01T00:00:00Z  this broker
            0b       ?        ?                     heartbeat overdue

            servers
            ADDRESS  ROLE     STATE  SLOTS   MEMORY          OF  REPLICAS   LAG  SINCE                 PRODUCT
            a:1      primary  up     8,192  1.5 MiB  1024.0 MiB    1 of 1  14 B  2026-01-01T00:00:00Z  Valkey 8.0.1
            b:1      primary  down   8,192  1.5 MiB  1024.0 MiB    0 of 1        2026-01-01T00:00:00Z  Valkey 8.0.1
            ! primary b:1 is down: Connection refused; partitions there are not served

            partitions
            VHOST  QUEUE  PARTITIONS
            /      work   3 at a:1, 1 at b:1
        "#]]
            .assert_eq(&shown(&answer).replace(&HEAD.to_string(), "").replace(&RESET.to_string(), ""));
    }
}
