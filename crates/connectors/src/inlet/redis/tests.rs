//! The inlet against a real server.

use std::time::Duration;

use overtake_engine::SystemClock;
use redis::aio::MultiplexedConnection;
use redis::{Client, Value};

use super::*;
use crate::inlet::{Fate, Incoming};
use crate::servers::Server;

/// So long nothing takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection of somebody else.
async fn somebody(server: &Server) -> MultiplexedConnection {
    let client = Client::open(format!("redis://127.0.0.1:{}", server.port)).expect("a URL");
    client.get_multiplexed_async_connection().await.expect("it answers")
}

async fn said(to: &mut MultiplexedConnection, words: &str) -> Value {
    let mut words = words.split(' ');
    let mut command = cmd(words.next().expect("a command"));
    command.arg(words.collect::<Vec<_>>());
    command.query_async(to).await.expect("an answer")
}

fn origin(server: &Server, change: impl FnOnce(&mut RedisSource)) -> RedisOrigin {
    origin_of("overtake-s", server, change)
}

fn origin_of(known_as: &str, server: &Server, change: impl FnOnce(&mut RedisSource)) -> RedisOrigin {
    let mut source = RedisSource {
        url: format!("redis://127.0.0.1:{}", server.port),
        streams: vec!["jobs".to_owned()],
        start: StreamStart::Beginning,
        ..RedisSource::default()
    };
    change(&mut source);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    source.origin(Vault::ANY, known_as, &clock).expect("it can be")
}

async fn bodies(inlet: &mut dyn Inlet, max: usize) -> String {
    let all = tokio::time::timeout(PATIENCE, inlet.receive(max)).await;
    let all = all.expect("in time").expect("received");
    let text = |one: &Incoming| String::from_utf8_lossy(&one.body).into_owned();
    all.iter().map(text).collect::<Vec<_>>().join(" ")
}

async fn settle(inlet: &mut dyn Inlet, count: usize) {
    inlet.settle(vec![Fate::Taken; count]).await.expect("settled");
}

#[tokio::test]
async fn what_was_received_and_not_settled_comes_again_after_an_end() {
    let Some(server) = Server::redis(&[]) else { return };
    let (mut other, origin) = (somebody(&server).await, origin(&server, |_| ()));
    for body in ["a", "b", "c"] {
        said(&mut other, &format!("XADD jobs * body {body}")).await;
    }
    let mut inlet = origin.connect().await.expect("connected");
    assert_eq!(bodies(&mut *inlet, 2).await, "a b");
    drop(inlet);
    let mut inlet = origin.connect().await.expect("connected");
    assert_eq!(bodies(&mut *inlet, 10).await, "a b");
    settle(&mut *inlet, 2).await;
    assert_eq!(bodies(&mut *inlet, 10).await, "c");
    inlet.settle(vec![Fate::Refused]).await.expect("settled");
    let pending = said(&mut other, "XPENDING jobs overtake-s").await;
    assert_eq!(pending, Value::Array(vec![Value::Int(0), Value::Nil, Value::Nil, Value::Nil]));
}

#[tokio::test]
async fn what_a_dead_consumer_left_is_taken_over() {
    let Some(server) = Server::redis(&[]) else { return };
    let (mut other, origin) = (somebody(&server).await, origin(&server, |source| source.claim_idle_ms = 1));
    said(&mut other, "XADD jobs * body left").await;
    let mut inlet = origin.connect().await.expect("connected");
    said(&mut other, "XREADGROUP GROUP overtake-s dead STREAMS jobs >").await;
    assert_eq!(bodies(&mut *inlet, 10).await, "left");
    settle(&mut *inlet, 1).await;
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_nothing() {
    let Some(server) = Server::redis(&[]) else { return };
    let (mut other, origin) = (somebody(&server).await, origin(&server, |_| ()));
    let mut inlet = origin.connect().await.expect("connected");
    let brief = Duration::from_millis(200);
    assert!(tokio::time::timeout(brief, inlet.receive(10)).await.is_err());
    said(&mut other, "XADD jobs * body x").await;
    assert_eq!(bodies(&mut *inlet, 10).await, "x");
}

#[tokio::test]
async fn streams_together_bring_no_more_at_once_than_is_asked_for() {
    let Some(server) = Server::redis(&[]) else { return };
    let mut other = somebody(&server).await;
    let origin = origin(&server, |source| source.streams.push("more".to_owned()));
    said(&mut other, "XADD jobs * body a").await;
    said(&mut other, "XADD more * body b").await;
    let mut inlet = origin.connect().await.expect("connected");
    assert_eq!(bodies(&mut *inlet, 1).await, "a");
    settle(&mut *inlet, 1).await;
    assert_eq!(bodies(&mut *inlet, 1).await, "b");
    settle(&mut *inlet, 1).await;
}

#[tokio::test]
async fn sources_that_name_no_group_each_have_all_entries_and_those_of_one_group_share_them() {
    let Some(server) = Server::redis(&[]) else { return };
    let mut other = somebody(&server).await;
    for body in ["a", "b"] {
        said(&mut other, &format!("XADD jobs * body {body}")).await;
    }
    for own in ["overtake-s", "overtake-s@cameras"] {
        let mut inlet = origin_of(own, &server, |_| ()).connect().await.expect("connected");
        assert_eq!(bodies(&mut *inlet, 10).await, "a b", "{own}");
        settle(&mut *inlet, 2).await;
    }
    for (member, share) in [("overtake-s", "a"), ("overtake-t", "b")] {
        let origin = origin_of(member, &server, |source| source.group = Some("shared".to_owned()));
        let mut inlet = origin.connect().await.expect("connected");
        assert_eq!(bodies(&mut *inlet, 1).await, share, "{member}");
    }
}

#[tokio::test]
async fn an_entry_that_was_deleted_while_it_was_pending_is_let_go_of() {
    let Some(server) = Server::redis(&[]) else { return };
    let (mut other, origin) = (somebody(&server).await, origin(&server, |_| ()));
    said(&mut other, "XADD jobs 1-1 body a").await;
    let mut inlet = origin.connect().await.expect("connected");
    assert_eq!(bodies(&mut *inlet, 1).await, "a");
    drop(inlet);
    said(&mut other, "XDEL jobs 1-1").await;
    said(&mut other, "XADD jobs 1-2 body b").await;
    let mut inlet = origin.connect().await.expect("connected");
    assert_eq!(bodies(&mut *inlet, 1).await, "b");
}

#[tokio::test]
async fn a_key_that_is_no_stream_and_a_user_who_may_not_are_named() {
    let Some(server) = Server::redis(&["--requirepass", "secret"]) else { return };
    let wrong = origin(&server, |_| ()).connect().await.err().expect("it may not").to_string();
    assert!(wrong.contains("NOAUTH") && wrong.contains("see to `username` and `password`"), "{wrong}");
}

#[tokio::test]
async fn a_key_that_is_no_stream_is_told_and_holds_back_no_other_and_is_read_once_it_is_one() {
    let Some(server) = Server::redis(&[]) else { return };
    let mut other = somebody(&server).await;
    said(&mut other, "SET late text").await;
    said(&mut other, "XADD jobs * body a").await;
    let origin = origin(&server, |source| {
        source.streams = ["late", "jobs"].map(str::to_owned).into();
        source.claim_idle_ms = 1;
    });
    let mut inlet = origin.connect().await.expect("connected");
    let fault = inlet.fault().expect("told");
    assert!(fault.contains("the key late holds a string and no stream"), "{fault}");
    assert_eq!(bodies(&mut *inlet, 10).await, "a");
    settle(&mut *inlet, 1).await;
    said(&mut other, "DEL late").await;
    said(&mut other, "XADD late * body b").await;
    assert_eq!(bodies(&mut *inlet, 10).await, "b");
    assert_eq!(inlet.fault(), None, "it is told once");
    settle(&mut *inlet, 1).await;
}
