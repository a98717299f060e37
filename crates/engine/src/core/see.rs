//! Looking without changing.

use std::sync::Arc;

use overtake_lane::{Cursor, Exchange, HeaderValue, MessageView, Query, Refusal};

use super::{Answer, Core};
use crate::api::{Browse, BrowsedMessage, Page};

impl<T> Core<T> {
    pub(super) fn exchanges(&self) -> Vec<(Arc<str>, Exchange)> {
        let all = self.broker.topology().exchanges();
        all.map(|(name, exchange)| (Arc::clone(name), exchange.clone())).collect()
    }

    pub(super) fn browse(&self, queue: &str, browse: &Browse) -> Result<Page, Refusal> {
        let (messages, next) = self.find(queue, browse)?;
        let messages = messages.into_iter().map(|message| BrowsedMessage {
            content: Arc::clone(self.contents.get(message.place)),
            message,
            position: None,
            position_in_priority: None,
        });
        Ok(Page { messages: messages.collect(), next })
    }

    /// The messages that a filter takes.
    pub(super) fn find(
        &self,
        queue: &str,
        browse: &Browse,
    ) -> Result<(Vec<MessageView>, Option<Cursor>), Refusal> {
        let filter = &browse.filter;
        let priority = match &filter.priority {
            None => None,
            Some(given) => Some(self.broker.map_priority(queue, given)?),
        };
        let query = Query {
            status: filter.status,
            priority,
            key: filter.key.clone(),
            order: browse.order,
            limit: browse.limit,
            cursor: browse.cursor,
        };
        self.broker.browse(queue, &query, &mut |message| {
            let headers = &self.contents.get(message.place).headers;
            filter
                .headers
                .iter()
                .all(|(name, value)| headers.get(name).is_some_and(|header| says(header, value)))
        })
    }

    pub(super) fn message(&self, queue: &str, id: &str) -> Result<Answer, Refusal> {
        let (message, position, position_in_priority) = self.broker.message(queue, id)?;
        let content = Arc::clone(self.contents.get(message.place));
        Ok(Answer::Message(Box::new(BrowsedMessage { message, content, position, position_in_priority })))
    }
}

fn says(header: &HeaderValue, text: &str) -> bool {
    match header {
        HeaderValue::Text(value) => value == text,
        HeaderValue::Int(value) => text.parse() == Ok(*value),
        HeaderValue::Bool(value) => text.parse() == Ok(*value),
    }
}
