//! The holes of other priority queues, closed: each test is one of them, over the wire.

use crate::broker::Broker;
use crate::words::n;

const TEN: (&str, overtake_properties::Value<'static>) = ("x-max-priority", n(9));

#[test]
fn the_urgent_one_goes_first() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    assert_eq!(ann.declare("q", &[TEN]), "q 0 0");
    ann.publish("q", "a:1 b:9 c:5 d:9");
    assert_eq!(ann.take_all("q"), "b d c a");
}
