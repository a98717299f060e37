//! What a peer did wrong, or cannot have, and what it costs.

use crate::error::WireError;
use crate::method::MethodId;
use crate::reply::ReplyCode;

/// What ends a channel or the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) code: ReplyCode,
    /// What is said behind the name of the code.
    pub(crate) text: String,
    /// The method at fault; zeros: none.
    pub(crate) method: MethodId,
}

impl Violation {
    pub(crate) fn of(code: ReplyCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), method: MethodId::default() }
    }

    pub(crate) fn wire(error: WireError) -> Self {
        Self::of(error.reply(), error.to_string())
    }

    /// By this method, unless another one is known.
    pub(crate) fn by(mut self, method: MethodId) -> Self {
        if self.method == MethodId::default() {
            self.method = method;
        }
        self
    }
}
