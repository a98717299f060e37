//! Class access, of 0-8: 0-9-1 has no more tickets, but old clients ask for one.

use overtake_properties::ShortText;

class! { 30 "access";
    /// The client asks for a ticket.
    10 "request" Request<'a> {
        realm: ShortText<'a>,
        exclusive: bool,
        passive: bool,
        active: bool,
        write: bool,
        read: bool,
    }

    /// A ticket; nobody looks at it.
    11 "request-ok" RequestOk { ticket: u16 }
}
