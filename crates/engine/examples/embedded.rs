//! Overtake inside a program: no server, no sockets, one directory.
//!
//! Reports are made one after the other, urgent ones first; what is not done when the program ends is there when it
//! starts again. Run it with `cargo run -p overtake-engine --example embedded`.

use std::path::Path;
use std::sync::Arc;

use overtake_engine::{Content, Engine, LeaseRequest, LocalEngine, NewMessage, Target};
use overtake_lane::{Given, Outcome, Refusal, Scheme, Settings};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A queue of named priorities, where a report that failed three times is put aside.
fn settings() -> Settings {
    Settings { scheme: Scheme::Named, delivery_limit: 3, ..Settings::default() }
}

fn report(priority: &str, what: &str) -> NewMessage {
    NewMessage {
        to: Target::Queue("reports".into()),
        priority: Given::from(priority),
        // Asking twice for the same report makes one.
        id: Some(what.to_owned()),
        content: Content { body: what.to_owned().into(), ..Content::default() },
        ..NewMessage::default()
    }
}

/// Does the most urgent report, if there is one, and says which.
async fn do_one(engine: &LocalEngine) -> Result<Option<String>> {
    let lease = LeaseRequest::new(Arc::from("reports"), 1);
    let Some(leased) = engine.lease(lease).await?.pop() else { return Ok(None) };
    let what = String::from_utf8_lossy(&leased.content.body).into_owned();
    // Here the work is done. Had it failed: `Outcome::Nack`; could it never be done: `Outcome::Reject`.
    match engine.settle(vec![leased.receipt], Outcome::Ack).await?[0] {
        Ok(()) => Ok(Some(what)),
        Err(Refusal::StaleReceipt) => Err("it took longer than the lease: somebody else has it now".into()),
        Err(refusal) => Err(refusal.into()),
    }
}

/// One run of the program: publishes, does so many reports, and ends.
async fn run(dir: &Path, publish: Vec<NewMessage>, reports: usize) -> Result<Vec<String>> {
    let engine = LocalEngine::open(dir)?;
    engine.declare_queue("reports", settings()).await?;
    // When this returns, the messages are on the disk: they survive a power cut.
    engine.publish(publish).await?;
    let mut done = Vec::new();
    while done.len() < reports
        && let Some(what) = do_one(&engine).await?
    {
        done.push(what);
    }
    engine.close();
    Ok(done)
}

/// The whole example.
async fn example() -> Result<Vec<String>> {
    let dir = tempfile::tempdir()?;
    let reports = vec![
        report("background", "statistics of last year"),
        report("normal", "invoices of today"),
        report("critical", "alarm of the boiler"),
        report("normal", "invoices of today"),
    ];
    let mut done = run(dir.path(), reports, 2).await?;
    // The program starts again; what was not done is still there, what was is not.
    done.extend(run(dir.path(), Vec::new(), usize::MAX).await?);
    Ok(done)
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "it shows what it did")]
async fn main() -> Result<()> {
    for what in example().await? {
        println!("{what}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_example_does_what_it_says() {
        let done = super::example().await.expect("it runs");
        assert_eq!(done, ["alarm of the boiler", "invoices of today", "statistics of last year"]);
    }
}
