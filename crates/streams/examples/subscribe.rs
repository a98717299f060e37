//! A consumer that is worked by hand: it shows an entry, and each line typed says what becomes of it: `ack`, `fail WHY`, `reject WHY`.
//!
//! ```text
//! cargo run -p overtake-streams --example subscribe -- redis://localhost:6379 customer mails
//! ```

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::io::BufRead;

use overtake_streams::{Lanes, SubscribeOptions, Subscriber};

#[tokio::main]
async fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, category, group] = &words[..] else { return Err("say URL CATEGORY GROUP".to_owned()) };
    let server = overtake_streams::server(url)?;
    let options = SubscribeOptions { lanes: Lanes::enabled(), ..SubscribeOptions::new(category, group) };
    let subscriber = Subscriber::connect(&server, options).await?;
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    loop {
        let entry = subscriber.next().await?;
        println!("{} {} attempt {}: {}", entry.stream(), entry.id(), entry.attempt(), entry.body());
        let Some(line) = lines.next() else { return subscriber.stop().await };
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("fail", why) => println!("{:?}", subscriber.fail(&entry, why).await?),
            ("reject", why) => println!("{:?}", subscriber.reject(&entry, why).await?),
            _ => println!("acknowledged: {}", subscriber.ack(&entry).await?),
        }
    }
}
