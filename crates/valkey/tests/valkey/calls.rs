//! Calls when nothing is wrong: who is asked, in which order, how many at once.

use redis::Value;

use crate::story::{add, connect, list, long, no, numbers, refused};
use crate::world::{Program, World};

#[tokio::test]
async fn one_server_answers_each_call_and_a_refusal_leaves_the_others_alone() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let cluster = connect(world.nodes()).await;
        let calls = vec![add("p", 1), no("p"), add("p", 1), add("q", 2)];
        let answers = cluster.calls(long(), calls).await;
        assert_eq!(answers[0], Ok(Value::Int(1)));
        assert_eq!(refused(&answers[1]), "STALE");
        assert_eq!(answers[2], Ok(Value::Int(0)), "it was there");
        assert_eq!(answers[3], Ok(Value::Int(1)));
        assert_eq!(list(&cluster, "p").await, ["1"]);
    }
}

#[tokio::test]
async fn a_cluster_is_asked_where_the_keys_are() {
    for program in Program::all() {
        let world = World::cluster(program, 1, &[]).await;
        let cluster = connect(world.nodes()).await;
        let tags = numbers(50);
        let answers = cluster.calls(long(), tags.iter().map(|tag| add(tag, 1)).collect()).await;
        assert!(answers.iter().all(|answer| *answer == Ok(Value::Int(1))), "{answers:?}");
        let counts = cluster.counts();
        assert_eq!((counts.moves, counts.retries), (0, 0), "nobody had to say where else to go");
        assert_eq!(counts.nodes.len(), 3);
        assert!(counts.batches <= 12, "gathered: {}", counts.batches);
    }
}

#[tokio::test]
async fn calls_of_one_slot_are_done_in_the_order_in_which_they_were_asked_for() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let cluster = connect(world.nodes()).await;
        let mut waiting = tokio::task::JoinSet::new();
        for tag in 0..4 {
            let cluster = std::sync::Arc::clone(&cluster);
            waiting.spawn(async move {
                let tag = tag.to_string();
                let one = cluster.calls(long(), (0..300).map(|id| add(&tag, id)).collect());
                let another = cluster.calls(long(), (300..600).map(|id| add(&tag, id)).collect());
                tokio::join!(biased; one, another);
                assert_eq!(list(&cluster, &tag).await, numbers(600));
            });
        }
        waiting.join_all().await;
    }
}

#[tokio::test]
async fn calls_that_are_asked_for_meanwhile_go_out_together() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let cluster = connect(world.nodes()).await;
        let mut waiting = tokio::task::JoinSet::new();
        for id in 0..2_000 {
            let cluster = std::sync::Arc::clone(&cluster);
            waiting.spawn(async move { cluster.call(long(), add("p", id)).await });
        }
        waiting.join_all().await;
        let counts = cluster.counts();
        assert_eq!(counts.calls, 2_000);
        assert!(counts.batches < 500, "{} pipelines", counts.batches);
    }
}
