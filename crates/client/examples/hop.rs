//! Hands on what comes into one queue to another, in the scope of each message: `hop amqp://HOST:PORT FROM TO`, until its standard input ends.

use overtake_client::{Client, Message, Received};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "a program for people")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, from, to] = &words[..] else { return Err("usage: hop amqp://HOST:PORT FROM TO".into()) };
    let client = Client::connect(url).await?;
    let (next, to) = (client.clone(), to.clone());
    let handling = client
        .handle(from, 4, move |message: Received| {
            let (next, to) = (next.clone(), to.clone());
            async move { next.publish(&to, Message::new(message.body().clone())).await }
        })
        .await?;
    println!("ready");
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    handling.stop().await?;
    client.close().await;
    Ok(())
}
