//! What a client did wrong, or cannot have, and what it costs.

use crate::error::WireError;
use crate::method::MethodId;
use crate::reply::ReplyCode;

/// What ends a channel or the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) code: ReplyCode,
    /// What is said behind the name of the code.
    pub(super) text: String,
    /// The method at fault; zeros: none.
    pub(super) method: MethodId,
}

impl Violation {
    pub(super) fn of(code: ReplyCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), method: MethodId::default() }
    }

    pub(super) fn wire(error: WireError) -> Self {
        Self::of(error.reply(), error.to_string())
    }

    /// By this method, unless another one is known.
    pub(super) fn by(mut self, method: MethodId) -> Self {
        if self.method == MethodId::default() {
            self.method = method;
        }
        self
    }
}
