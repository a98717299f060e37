//! The outbox writer: in the transaction that is open, with the priority of the scope.

use overtake_client::outbox::{Event, Outbox};
use overtake_client::{Priority, with_priority};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use super::go;
use crate::support::run;

/// A table as `overtake relay init` makes it.
async fn table(dir: &std::path::Path) -> SqliteConnection {
    let (config, database) = (dir.join("relay.toml"), dir.join("app.db"));
    let text = format!(
        "[database]\nurl = \"sqlite:{}\"\n[sink.overtake]\nurl = \"amqp://guest@localhost\"\n",
        database.display()
    );
    std::fs::write(&config, text).unwrap();
    run(&["relay", "init", "--config", config.to_str().unwrap()], b"").ok();
    SqliteConnectOptions::new().filename(database).connect().await.unwrap()
}

#[test]
fn an_event_is_there_if_its_transaction_is_and_has_the_priority_of_its_scope() {
    go(async {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = table(dir.path()).await;
        let event = |name: &str| Event::new("customer", name, r#"{"id": 7}"#);
        let outbox = Outbox::new();
        with_priority(Priority::LOW, async {
            let mut lost = connection.begin().await.unwrap();
            outbox.write(&mut *lost, event("Lost")).await.unwrap();
            lost.rollback().await.unwrap();
            let mut kept = connection.begin().await.unwrap();
            outbox.write(&mut *kept, event("Kept")).await.unwrap();
            outbox.write(&mut *kept, event("Urgent").priority(Priority::CRITICAL)).await.unwrap();
            kept.commit().await.unwrap();
        })
        .await;
        outbox.write(&mut connection, event("Outside")).await.unwrap();
        let rows = "SELECT type, priority FROM outbox ORDER BY id";
        let rows: Vec<(String, i32)> = sqlx::query_as(rows).fetch_all(&mut connection).await.unwrap();
        let expect = [("Kept", -50), ("Urgent", 100), ("Outside", 0)];
        assert_eq!(rows, expect.map(|(name, priority)| (name.to_owned(), priority)));
    });
}
