//! Reply codes (1.2): why a method was refused, a channel or a connection closed.

/// What a reply code ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nothing.
    Nothing,
    /// The channel: a soft error.
    Channel,
    /// The connection: a hard error.
    Connection,
}

/// A reply code. Its name and scope are RabbitMQ's (`amqp-rabbitmq-0.9.1.json`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum ReplyCode {
    /// All is well.
    Success = 200,
    /// The body is longer than is allowed.
    ContentTooLarge = 311,
    /// A mandatory message reached no queue.
    NoRoute = 312,
    /// An immediate message found no consumer.
    NoConsumers = 313,
    /// An operator closed the connection.
    ConnectionForced = 320,
    /// There is no such virtual host.
    InvalidPath = 402,
    /// The user may not do that.
    AccessRefused = 403,
    /// There is no such queue or exchange.
    NotFound = 404,
    /// Another connection has it for itself.
    ResourceLocked = 405,
    /// What was asked contradicts what is.
    PreconditionFailed = 406,
    /// The bytes are no frame.
    FrameError = 501,
    /// The frame's fields make no sense.
    SyntaxError = 502,
    /// The method does not come at this time, or not from this side.
    CommandInvalid = 503,
    /// The channel is not open, or is already.
    ChannelError = 504,
    /// Content without its method, or a method amid content.
    UnexpectedFrame = 505,
    /// There is not enough of something.
    ResourceError = 506,
    /// It is forbidden, whoever asks.
    NotAllowed = 530,
    /// Nobody has written that.
    NotImplemented = 540,
    /// It is our fault.
    InternalError = 541,
}

impl ReplyCode {
    /// All, in ascending order.
    pub const ALL: [Self; 19] = [
        Self::Success,
        Self::ContentTooLarge,
        Self::NoRoute,
        Self::NoConsumers,
        Self::ConnectionForced,
        Self::InvalidPath,
        Self::AccessRefused,
        Self::NotFound,
        Self::ResourceLocked,
        Self::PreconditionFailed,
        Self::FrameError,
        Self::SyntaxError,
        Self::CommandInvalid,
        Self::ChannelError,
        Self::UnexpectedFrame,
        Self::ResourceError,
        Self::NotAllowed,
        Self::NotImplemented,
        Self::InternalError,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The reply code of that number.
    #[must_use]
    pub fn of(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|reply| reply.code() == code)
    }

    /// The name, as reply texts begin with it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "REPLY_SUCCESS",
            Self::ContentTooLarge => "CONTENT_TOO_LARGE",
            Self::NoRoute => "NO_ROUTE",
            Self::NoConsumers => "NO_CONSUMERS",
            Self::ConnectionForced => "CONNECTION_FORCED",
            Self::InvalidPath => "INVALID_PATH",
            Self::AccessRefused => "ACCESS_REFUSED",
            Self::NotFound => "NOT_FOUND",
            Self::ResourceLocked => "RESOURCE_LOCKED",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::FrameError => "FRAME_ERROR",
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::CommandInvalid => "COMMAND_INVALID",
            Self::ChannelError => "CHANNEL_ERROR",
            Self::UnexpectedFrame => "UNEXPECTED_FRAME",
            Self::ResourceError => "RESOURCE_ERROR",
            Self::NotAllowed => "NOT_ALLOWED",
            Self::NotImplemented => "NOT_IMPLEMENTED",
            Self::InternalError => "INTERNAL_ERROR",
        }
    }

    /// What it ends. On channel 0 every error ends the connection.
    #[must_use]
    pub const fn scope(self) -> Scope {
        match self {
            Self::Success => Scope::Nothing,
            Self::ContentTooLarge
            | Self::NoRoute
            | Self::NoConsumers
            | Self::AccessRefused
            | Self::NotFound
            | Self::ResourceLocked
            | Self::PreconditionFailed => Scope::Channel,
            Self::ConnectionForced
            | Self::InvalidPath
            | Self::FrameError
            | Self::SyntaxError
            | Self::CommandInvalid
            | Self::ChannelError
            | Self::UnexpectedFrame
            | Self::ResourceError
            | Self::NotAllowed
            | Self::NotImplemented
            | Self::InternalError => Scope::Connection,
        }
    }

    /// `NOT_FOUND - no queue 'q' in vhost '/'`, cut at 255 bytes as RabbitMQ cuts it.
    #[must_use]
    pub fn text(self, why: &str) -> String {
        const CUT_AT: usize = 252;
        let mut text = format!("{} - {why}", self.name());
        if text.len() > overtake_properties::SHORT_LEN_MAX {
            text.truncate(text.floor_char_boundary(CUT_AT));
            text.push_str("...");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_by_its_number() {
        for reply in ReplyCode::ALL {
            assert_eq!(ReplyCode::of(reply.code()), Some(reply));
        }
        assert!(ReplyCode::ALL.is_sorted(), "by their numbers");
        assert_eq!(ReplyCode::of(499), None);
    }

    #[test]
    fn a_reply_text_fits_a_short_string() {
        assert_eq!(ReplyCode::NotFound.text("no queue 'q'"), "NOT_FOUND - no queue 'q'");
        let long = ReplyCode::NotFound.text(&"ä".repeat(200));
        assert_eq!(long.len(), 255);
        assert!(long.ends_with("ä..."));
    }
}
