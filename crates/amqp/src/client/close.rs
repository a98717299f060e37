//! How a channel or the connection comes to its end, and that it is told once.

use overtake_lane::Time;
use overtake_properties::ShortText;

use super::channel::{Channel, Closing};
use super::{Client, Ending, Event, Moment, Stage};
use crate::method::channel;
use crate::method::connection::{Close, CloseOk};
use crate::reply::{ReplyCode, Scope};
use crate::violation::Violation;

impl Client {
    /// Ends what must end because of what the server did: the channel, or all of it.
    pub(super) fn violated(&mut self, now: Time, channel: u16, violation: Violation) {
        let is_soft = violation.code.scope() == Scope::Channel && self.stage == Stage::Running;
        match self.channels.contains_key(&channel) && is_soft {
            true => self.end_channel(channel, &violation),
            false => self.end(now, violation),
        }
    }

    fn end_channel(&mut self, number: u16, violation: &Violation) {
        let text = violation.code.text(&violation.text);
        let close = channel::Close {
            reply_code: violation.code.code(),
            reply_text: ShortText::cut(&text),
            class_id: violation.method.class,
            method_id: violation.method.method,
        };
        let open = self.channels.entry(number).or_default();
        let was_open = open.closing == Closing::Not;
        *open = Channel { closing: Closing::Broken, ..Channel::default() };
        if was_open {
            self.say(number, close);
        }
        self.events.push(Event::ChannelClosed { channel: number, code: violation.code.code(), text });
    }

    pub(super) fn end(&mut self, now: Time, violation: Violation) {
        let Violation { code, text, method } = violation;
        let was = self.stage;
        if matches!(was, Stage::Broken | Stage::Over) {
            return;
        }
        self.patience = now.after(self.options.patience_ms);
        if was != Stage::Closing {
            let reply_text = code.text(&text);
            let reply_text = ShortText::cut(&reply_text);
            let (class_id, method_id) = (method.class, method.method);
            self.say(0, Close { reply_code: code.code(), reply_text, class_id, method_id });
        }
        self.finish(Ending::Violation { code, text });
        self.stage = Stage::Broken;
    }

    /// Asks the server to agree that it is over. What was asked before is still answered, but what is not confirmed then never
    /// will be: close when it is.
    pub fn close(&mut self, now: Time, why: &str) {
        match self.stage {
            Stage::Running => {
                let reply_text = ShortText::cut(why);
                self.say(0, Close { reply_code: 200, reply_text, class_id: 0, method_id: 0 });
                self.patience = now.after(self.options.patience_ms);
                self.stage = Stage::Closing;
            }
            Stage::Closing | Stage::Broken | Stage::Over => {}
            _ => self.finish(Ending::Asked),
        }
    }

    /// The socket has ended: the server closed it, or the network did.
    pub fn hung_up(&mut self) {
        match self.stage {
            Stage::Over => {}
            Stage::Greeting => self.finish(Ending::HungUp(Moment::Greeting)),
            Stage::LoggingIn => self.finish(Ending::HungUp(Moment::LoggingIn)),
            Stage::Opening => self.finish(Ending::HungUp(Moment::Opening)),
            Stage::Running => self.finish(Ending::HungUp(Moment::Open)),
            Stage::Closing => self.finish(Ending::Asked),
            Stage::Broken => self.stage = Stage::Over,
        }
    }

    /// It is over, which is told once.
    pub(super) fn finish(&mut self, ending: Ending) {
        if !matches!(self.stage, Stage::Broken | Stage::Over) {
            self.events.push(Event::Closed(ending));
        }
        self.channels.clear();
        self.stage = Stage::Over;
    }

    /// The server has closed it; at the login, because that is refused.
    pub(super) fn closed_by_server(&mut self, close: &Close<'_>) {
        self.say(0, CloseOk {});
        let (code, text) = (close.reply_code, close.reply_text.as_str().to_owned());
        let is_refused = self.stage == Stage::LoggingIn && code == ReplyCode::AccessRefused.code();
        self.finish(if is_refused { Ending::LoginRefused { text } } else { Ending::Server { code, text } });
    }
}
