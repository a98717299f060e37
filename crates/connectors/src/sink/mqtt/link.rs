//! One connection that publishes.

use std::collections::BTreeMap;

use overtake_forward::Answer;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, Publish};

use super::topic::Topic;
use crate::mqtt::wire::Wire;
use crate::mqtt::{Limits, message, reason};
use crate::outbox::Outbox;
use crate::sink::{Link, LinkError, Work};

/// Most messages, and bytes, on their way at once. It is little, since nothing that is more urgent overtakes them.
const WINDOW: usize = 16;
const WINDOW_BYTES: u64 = 1 << 20;
/// Longest packet there can be, bytes (1.5.5).
const PACKET_LEN_MAX: usize = 268_435_455 + 5;

pub(super) struct MqttLink {
    wire: Wire,
    limits: Limits,
    topic: Topic,
    qos: QoS,
    retain: bool,
    /// The number of the last packet.
    number: u16,
}

/// What has no answer yet: by the number of its packet the one in the outbox, and its bytes.
type OnTheirWay = BTreeMap<u16, (usize, u64)>;

impl MqttLink {
    pub(super) fn new(wire: Wire, limits: Limits, topic: Topic, qos: QoS, retain: bool) -> Self {
        Self { wire, limits, topic, qos, retain, number: 0 }
    }

    /// # Errors
    /// Why the server will never take it, as a phrase.
    fn packet(&mut self, outbox: &Outbox<'_>, at: usize) -> Result<Publish, String> {
        let message = outbox.get(at);
        let topic = self.topic.of(message)?;
        // No number is nought (2.2.1), and few are in use at once.
        self.number = self.number.checked_add(1).unwrap_or(1);
        let properties = message::properties(message, outbox.now());
        let mut publish = Publish::new(topic, self.qos, message.body().clone(), Some(properties));
        (publish.pkid, publish.retain) = (self.number, self.retain);
        let (len, max) = (publish.size(), self.limits.packet_max.map_or(PACKET_LEN_MAX, |max| max as usize));
        if len > max {
            return Err(format!("it is a packet of {len} bytes, and the server takes {max}"));
        }
        Ok(publish)
    }

    async fn publish(
        &mut self,
        outbox: &Outbox<'_>,
        at: usize,
        on_their_way: &mut OnTheirWay,
    ) -> Result<(), LinkError> {
        let publish = match self.packet(outbox, at) {
            Ok(publish) => publish,
            Err(why) => {
                outbox.answer(at, Answer::Refused { why: why.into() });
                return Ok(());
            }
        };
        let (number, bytes) = (publish.pkid, publish.size() as u64);
        self.wire.write(&Packet::Publish(publish)).await?;
        match self.qos {
            QoS::AtMostOnce => outbox.answer(at, Answer::Accepted { bytes }),
            _ => drop(on_their_way.insert(number, (at, bytes))),
        }
        Ok(())
    }

    fn has_room(&self, on_their_way: &OnTheirWay) -> bool {
        let bytes: u64 = on_their_way.values().map(|(_, bytes)| bytes).sum();
        on_their_way.len() < WINDOW.min(self.limits.receive_max.into()) && bytes < WINDOW_BYTES
    }
}

impl Link for MqttLink {
    fn send<'a>(&'a mut self, outbox: &'a mut Outbox<'_>) -> Work<'a, Result<(), LinkError>> {
        Box::pin(async move {
            let mut on_their_way = OnTheirWay::new();
            loop {
                while self.has_room(&on_their_way) {
                    let Some(at) = outbox.next() else { break };
                    self.publish(outbox, at, &mut on_their_way).await?;
                }
                if on_their_way.is_empty() {
                    return Ok(());
                }
                if let Packet::PubAck(ack) = self.wire.next().await?
                    && let Some((at, bytes)) = on_their_way.remove(&ack.pkid)
                {
                    outbox.answer(at, reason::answer(&ack, bytes));
                }
            }
        })
    }

    fn lost(&mut self) -> Work<'_, LinkError> {
        Box::pin(async {
            loop {
                if let Err(lost) = self.wire.next().await {
                    return lost;
                }
            }
        })
    }
}
