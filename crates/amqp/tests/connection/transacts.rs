//! Transactions (1.9): all or nothing.

use overtake_amqp::connection::{Answer, Ask, Operation, Options};
use overtake_amqp::method::{basic, channel, confirm, tx};
use overtake_lane::{Outcome, Refusal};

use crate::peer::{Peer, receipt, text};

fn transacting() -> Peer {
    let mut peer = Peer::open();
    peer.consume(1, "c", false);
    peer.consuming(9);
    peer.deliver(9, 1);
    peer.deliver(9, 2);
    peer.say(1, tx::Select {});
    peer.hears();
    peer.publish(1, "q", false, b"one");
    peer.publish(1, "nowhere", true, b"two");
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    assert_eq!(peer.asks(), [], "nothing happens before it is committed");
    peer
}

#[test]
fn a_commit_does_it_all_at_once() {
    let mut peer = transacting();
    peer.say(1, tx::Commit {});
    let asks = peer.asks();
    let [Ask::Do { token, operation: Operation::Transact { publishes, settlements }, .. }] = &asks[..] else {
        panic!("{asks:?}")
    };
    assert_eq!((publishes.len(), &settlements[..]), (2, &[(receipt(1), Outcome::Ack)][..]));
    peer.connection.answer(*token, Ok(Answer::Committed { unrouted: vec![1] }));
    let hears = peer.hears();
    assert!(hears[0].contains("NO_ROUTE") && hears[2] == "1 body two", "{hears:?}");
    assert_eq!(hears[3..], ["1 TxCommitOk(CommitOk)"]);
    peer.say(1, tx::Commit {});
    peer.answer(Ok(Answer::Committed { unrouted: vec![] }));
    assert_eq!(peer.hears(), ["1 TxCommitOk(CommitOk)"], "the next one is empty");
}

#[test]
fn a_rollback_undoes_it() {
    let mut peer = transacting();
    peer.say(1, tx::Rollback {});
    assert_eq!((peer.hears(), peer.asks()), (vec!["1 TxRollbackOk(RollbackOk)".to_owned()], vec![]));
    peer.say(1, basic::Ack { delivery_tag: 2, multiple: true });
    peer.say(1, tx::Commit {});
    let asks = peer.asks();
    let [Ask::Do { operation: Operation::Transact { publishes, settlements }, .. }] = &asks[..] else {
        panic!("{asks:?}")
    };
    assert_eq!((publishes.len(), settlements.len()), (0, 2), "the first is out again");
}

#[test]
fn a_commit_that_cannot_be_costs_the_channel_and_nothing_is_lost() {
    let mut peer = transacting();
    peer.say(1, tx::Commit {});
    peer.answer(Err(Refusal::NoSuchExchange));
    let hears = peer.hears();
    assert!(
        hears[0].contains("reply_code: 404") && hears[0].contains("class_id: 90, method_id: 20"),
        "{hears:?}"
    );
    let released: Vec<_> = peer.asks().into_iter().filter(|ask| matches!(ask, Ask::Settle { .. })).collect();
    let receipts = [1, 2].map(receipt).to_vec();
    assert_eq!(released, [Ask::Settle { receipts, outcome: Outcome::Nack { delay_ms: None } }]);
}

#[test]
fn a_channel_confirms_or_transacts() {
    let mut peer = Peer::open();
    peer.say(1, tx::Select {});
    peer.hears();
    peer.say(1, confirm::Select { no_wait: false });
    assert!(peer.hears()[0].contains("PRECONDITION_FAILED - cannot switch from tx to confirm mode"));
    let mut peer = Peer::open();
    peer.say(1, tx::Commit {});
    assert!(peer.hears()[0].contains("PRECONDITION_FAILED - channel is not transactional"));
}

/// A connection with the channels 1 and 2 that may hold 128 KiB.
fn narrow() -> Peer {
    let mut peer = Peer::open_with(Options { held_max: 128 << 10, body_max: 64 << 10, ..Options::default() });
    peer.say(2, channel::Open { out_of_band: text("") });
    peer.hears();
    peer
}

const MOST: &str =
    "PRECONDITION_FAILED - unfinished contents and uncommitted publishes of this connection would take";

#[test]
fn transactions_of_a_connection_hold_so_much_and_no_more() {
    let mut peer = narrow();
    for channel in [1, 2] {
        peer.say(channel, tx::Select {});
    }
    peer.hears();
    let body = vec![b'x'; 60 << 10];
    peer.publish(1, "q", false, &body);
    peer.publish(2, "q", false, &body);
    assert_eq!(peer.hears(), Vec::<String>::new());
    peer.publish(2, "q", false, &body);
    let hears = peer.hears();
    assert!(hears[0].contains(MOST) && hears[0].contains("maximum (131072)"), "{hears:?}");
    peer.say(2, channel::CloseOk {});
    peer.say(1, tx::Commit {});
    let asks = peer.asks();
    assert!(matches!(&asks[..], [Ask::Do { operation: Operation::Transact { .. }, .. }]), "{asks:?}");
}

#[test]
fn contents_on_their_way_hold_so_much_and_no_more() {
    let mut peer = narrow();
    peer.say(3, channel::Open { out_of_band: text("") });
    peer.hears();
    let body = vec![b'x'; 64 << 10];
    let rest = peer.begin_publish(1, "q", &body);
    assert_eq!(peer.hears(), Vec::<String>::new());
    peer.begin_publish(2, "q", &body);
    assert!(peer.hears()[0].contains(MOST), "properties and names count, too");
    peer.say(2, channel::CloseOk {});
    peer.bytes(&rest);
    assert!(matches!(&peer.asks()[..], [Ask::Publish { .. }]));
    peer.begin_publish(3, "q", &body);
    assert_eq!(peer.hears(), Vec::<String>::new(), "what is whole counts no more");
}
