//! Channels, heard wherever their slots go.

use overtake_valkey::cluster::{Heard, Slot, Subscription};

use crate::story::connect;
use crate::world::{Program, QUICK, World};

async fn gap(subscription: &mut Subscription) {
    while subscription.next().await.expect("open") != Heard::Gap {}
}

/// Says it until it is heard: where nobody listens a message is gone.
async fn heard_again(world: &World, at: usize, subscription: &mut Subscription, word: &str) {
    gap(subscription).await;
    world.ask(at, &format!("SPUBLISH {{p}}:heads {word}")).await;
    loop {
        match subscription.next().await.expect("open") {
            Heard::Message(message) if message == word.as_bytes() => return,
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_receiver_hears_a_gap_when_it_begins_to_hear_and_then_what_is_said() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let cluster = connect(world.nodes()).await;
        let mut subscription = cluster.subscribe("{p}:heads".into()).await;
        let mut another = cluster.subscribe("{p}:heads".into()).await;
        let mut third = cluster.subscribe("{q}:heads".into()).await;
        for subscription in [&mut subscription, &mut another, &mut third] {
            assert_eq!(subscription.next().await, Some(Heard::Gap));
        }
        world.ask(0, "SPUBLISH {p}:heads 7").await;
        world.ask(0, "SPUBLISH {q}:heads 8").await;
        assert_eq!(subscription.next().await, Some(Heard::Message("7".into())));
        assert_eq!(another.next().await, Some(Heard::Message("7".into())));
        assert_eq!(third.next().await, Some(Heard::Message("8".into())), "and nothing of the others");
        let mut late = cluster.subscribe("{p}:heads".into()).await;
        assert_eq!(late.next().await, Some(Heard::Gap));
        drop(cluster);
        assert_eq!(late.next().await, None);
    }
}

#[tokio::test]
async fn a_channel_is_heard_where_its_slot_goes_and_after_its_server_came_back() {
    for program in Program::all() {
        let mut world = World::cluster(program, 1, &QUICK).await;
        let mut nodes = world.nodes();
        nodes.patience.look_ms = 100;
        let cluster = connect(nodes).await;
        let slot = Slot::of(b"p");
        let from = world.primary_of(0, slot).await.expect("held");
        let to = (from + 1) % 3;
        let mut subscription = cluster.subscribe("{p}:heads".into()).await;
        heard_again(&world, from, &mut subscription, "before").await;
        world.move_slot(slot, from, to).await;
        heard_again(&world, to, &mut subscription, "moved").await;
        world.servers[to].kill();
        let new = world.until_taken_over(from, slot, to).await;
        heard_again(&world, new, &mut subscription, "taken-over").await;
    }
}

#[tokio::test]
async fn a_paused_server_costs_its_receivers_a_gap_and_no_more() {
    for program in Program::all() {
        let world = World::cluster(program, 1, &QUICK).await;
        let mut nodes = world.nodes();
        nodes.patience.look_ms = 100;
        let cluster = connect(nodes).await;
        let slot = Slot::of(b"p");
        let from = world.primary_of(0, slot).await.expect("held");
        let mut subscription = cluster.subscribe("{p}:heads".into()).await;
        gap(&mut subscription).await;
        world.servers[from].pause();
        let new = world.until_taken_over((from + 1) % 3, slot, from).await;
        heard_again(&world, new, &mut subscription, "taken-over").await;
        world.servers[from].resume();
        world.until_whole().await;
        world.ask(new, "SPUBLISH {p}:heads on").await;
        assert_eq!(subscription.next().await, Some(Heard::Message("on".into())));
    }
}

#[tokio::test]
async fn a_slow_receiver_hears_a_gap_and_holds_up_nobody() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let cluster = connect(world.nodes()).await;
        let mut slow = cluster.subscribe("{p}:heads".into()).await;
        let mut quick = cluster.subscribe("{p}:heads".into()).await;
        gap(&mut slow).await;
        gap(&mut quick).await;
        for number in 0..1_000 {
            world.ask(0, &format!("SPUBLISH {{p}}:heads {number}")).await;
            let message = Heard::Message(number.to_string().into());
            assert_eq!(quick.next().await, Some(message), "the quick one hears it all");
        }
        assert_eq!(slow.next().await, Some(Heard::Gap));
    }
}
