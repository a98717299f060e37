//! What the documentation says of scopes, as a program: `cargo run -p overtake-client --example scopes -- amqp://guest:guest@127.0.0.1:5672 http://127.0.0.1:15672`.
//!
//! It publishes into a queue `customer` of two lanes, and prints what comes out, in order.

use overtake_client::{Client, ConnectOptions, Error, Message, Priority, with_priority};

/// A command, and how urgent it is if it says so itself.
async fn process(client: &Client, command: &str, priority: Option<Priority>) -> Result<(), Error> {
    let message = Message::new(command.to_owned());
    let message = match priority {
        Some(priority) => message.priority(priority),
        None => message,
    };
    client.publish("customer", message).await
}

/// The four examples. Answers what comes out.
pub(crate) async fn run(client: &Client) -> Result<Vec<String>, Error> {
    let lanes =
        r#"{"scheme": "signed", "order": {"lanes": [{"name": "primary", "from": 0}, {"name": "backfill"}]}}"#;
    client.declare_queue("customer", lanes).await?;

    // A migration: all that is published inside has the priority of the scope.
    with_priority(Priority::LOW, async {
        for customer in 1..=3 {
            process(client, &format!("tier of customer {customer}"), None).await?;
        }
        Ok::<_, Error>(())
    })
    .await?;

    // Scopes nest, and the innermost wins.
    with_priority(Priority::LOW, async {
        process(client, "low", None).await?;
        with_priority(Priority::CRITICAL, process(client, "critical", None)).await?;
        process(client, "low again", None).await
    })
    .await?;

    // One message says its own.
    process(client, "reindex", Some(Priority::BULK)).await?;

    // It goes before the scope.
    with_priority(Priority::LOW, process(client, "critical all the same", Some(Priority::CRITICAL))).await?;

    let mut consumer = client.consume("customer", 1).await?;
    let mut all = Vec::new();
    for _ in 0..8 {
        let Some(next) = consumer.next().await else { break };
        let delivery = next?;
        let priority = delivery.priority().unwrap_or_default();
        all.push(format!("{}: {priority}", delivery.text().unwrap_or_default()));
        delivery.ack()?;
    }
    Ok(all)
}

#[tokio::main]
#[allow(dead_code, clippy::print_stdout, reason = "a program for people; its test calls `run`")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let options = ConnectOptions::new(args.next().unwrap_or_else(|| "amqp://127.0.0.1".to_owned()));
    let options = match args.next() {
        Some(http) => options.http(http),
        None => options,
    };
    for line in run(&Client::connect(options).await?).await? {
        println!("{line}");
    }
    Ok(())
}
