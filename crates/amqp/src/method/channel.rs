//! Class channel (1.5).

use overtake_properties::ShortText;

class! { 20 "channel";
    /// The client opens a channel.
    10 "open" Open<'a> { out_of_band: ShortText<'a> }

    /// It is open.
    11 "open-ok" OpenOk<'a> { channel_id: &'a [u8] }

    /// Stop sending content, or go on.
    20 "flow" Flow { active: bool }

    /// That was done.
    21 "flow-ok" FlowOk { active: bool }

    /// The end, and why; the numbers are those of the method that was at fault, or 0.
    40 "close" Close<'a> { reply_code: u16, reply_text: ShortText<'a>, class_id: u16, method_id: u16 }

    /// The end is agreed on.
    41 "close-ok" CloseOk {}
}
