//! Methods (1.3 to 1.9, 2.3.5.1): what peers ask of each other, as fields in a fixed order.
//!
//! All classes of RabbitMQ's grammar (`amqp-rabbitmq-0.9.1.json`) in both directions, with the legacy `access.request` that
//! old clients send. Which side may send a method, and when, is the connection's business. Short strings are text, but
//! where a method carries content: there they may be any bytes, as in RabbitMQ.

#[macro_use]
mod grammar;
mod field;

pub mod access;
pub mod basic;
pub mod channel;
pub mod confirm;
pub mod connection;
pub mod exchange;
pub mod queue;
pub mod tx;

use overtake_properties::Limits;

pub use field::Domain;

use crate::error::WireError;
use field::{Draft, Fields};

/// The numbers of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodId {
    /// Of its class.
    pub class: u16,
    /// Within the class.
    pub method: u16,
}

impl MethodId {
    /// Of the method in this payload, without looking at its fields.
    pub(crate) fn peek(payload: &[u8]) -> Option<Self> {
        let [c0, c1, m0, m1] = *payload.first_chunk()?;
        Some(Self { class: u16::from_be_bytes([c0, c1]), method: u16::from_be_bytes([m0, m1]) })
    }
}

/// What the grammar says of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its numbers.
    pub id: MethodId,
    /// Its name: `basic.publish`.
    pub name: &'static str,
    /// Its fields, in order.
    pub fields: &'static [(&'static str, Domain)],
}

methods! {
    connection:
        ConnectionStart Start<'a>, ConnectionStartOk StartOk<'a>,
        ConnectionSecure Secure<'a>, ConnectionSecureOk SecureOk<'a>,
        ConnectionTune Tune, ConnectionTuneOk TuneOk,
        ConnectionOpen Open<'a>, ConnectionOpenOk OpenOk<'a>,
        ConnectionClose Close<'a>, ConnectionCloseOk CloseOk,
        ConnectionBlocked Blocked<'a>, ConnectionUnblocked Unblocked,
        ConnectionUpdateSecret UpdateSecret<'a>, ConnectionUpdateSecretOk UpdateSecretOk;
    channel:
        ChannelOpen Open<'a>, ChannelOpenOk OpenOk<'a>,
        ChannelFlow Flow, ChannelFlowOk FlowOk,
        ChannelClose Close<'a>, ChannelCloseOk CloseOk;
    access:
        AccessRequest Request<'a>, AccessRequestOk RequestOk;
    exchange:
        ExchangeDeclare Declare<'a>, ExchangeDeclareOk DeclareOk,
        ExchangeDelete Delete<'a>, ExchangeDeleteOk DeleteOk,
        ExchangeBind Bind<'a>, ExchangeBindOk BindOk,
        ExchangeUnbind Unbind<'a>, ExchangeUnbindOk UnbindOk;
    queue:
        QueueDeclare Declare<'a>, QueueDeclareOk DeclareOk<'a>,
        QueueBind Bind<'a>, QueueBindOk BindOk,
        QueuePurge Purge<'a>, QueuePurgeOk PurgeOk,
        QueueDelete Delete<'a>, QueueDeleteOk DeleteOk,
        QueueUnbind Unbind<'a>, QueueUnbindOk UnbindOk;
    basic:
        BasicQos Qos, BasicQosOk QosOk,
        BasicConsume Consume<'a>, BasicConsumeOk ConsumeOk<'a>,
        BasicCancel Cancel<'a>, BasicCancelOk CancelOk<'a>,
        BasicPublish Publish<'a>, BasicReturn Return<'a>, BasicDeliver Deliver<'a>,
        BasicGet Get<'a>, BasicGetOk GetOk<'a>, BasicGetEmpty GetEmpty<'a>,
        BasicAck Ack, BasicReject Reject,
        BasicRecoverAsync RecoverAsync, BasicRecover Recover, BasicRecoverOk RecoverOk,
        BasicNack Nack;
    confirm:
        ConfirmSelect Select, ConfirmSelectOk SelectOk;
    tx:
        TxSelect Select, TxSelectOk SelectOk,
        TxCommit Commit, TxCommitOk CommitOk,
        TxRollback Rollback, TxRollbackOk RollbackOk;
}

impl<'a> Method<'a> {
    /// Reads the payload of a [`Method`](crate::FrameKind::Method) frame: class, method, fields, and nothing after them. The
    /// limits are those of each table.
    ///
    /// # Errors
    /// [`WireError::UnknownMethod`], [`WireError::Truncated`], [`WireError::Trailing`], [`WireError::NotText`],
    /// [`WireError::Table`].
    #[inline]
    pub fn decode(payload: &'a [u8], limits: &Limits) -> Result<Self, WireError> {
        let mut fields = Fields::new(payload, limits);
        let id = MethodId { class: fields.field()?, method: fields.field()? };
        let method = Self::read(id, &mut fields)?;
        fields.end()?;
        Ok(method)
    }

    /// Appends the payload of a method frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let id = self.id();
        out.extend_from_slice(&id.class.to_be_bytes());
        out.extend_from_slice(&id.method.to_be_bytes());
        self.write(&mut Draft::new(out));
    }

    /// Whether a content header and a body follow it (1.8).
    #[must_use]
    pub fn has_content(&self) -> bool {
        matches!(
            self,
            Self::BasicPublish(_) | Self::BasicReturn(_) | Self::BasicDeliver(_) | Self::BasicGetOk(_)
        )
    }
}
