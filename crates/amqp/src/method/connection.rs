//! Class connection (1.4): greeting, login, limits, end.

use overtake_properties::{ShortText, TableRef};

class! { 10 "connection";
    /// The server begins: who it is and how one may log in.
    10 "start" Start<'a> {
        version_major: u8,
        version_minor: u8,
        server_properties: TableRef<'a>,
        mechanisms: &'a [u8],
        locales: &'a [u8],
    }

    /// The client chooses how to log in.
    11 "start-ok" StartOk<'a> {
        client_properties: TableRef<'a>,
        mechanism: ShortText<'a>,
        response: &'a [u8],
        locale: ShortText<'a>,
    }

    /// The server asks for more to log in with.
    20 "secure" Secure<'a> { challenge: &'a [u8] }

    /// The client answers.
    21 "secure-ok" SecureOk<'a> { response: &'a [u8] }

    /// The limits the server proposes: channels, bytes in a frame, seconds between heartbeats; 0 is none.
    30 "tune" Tune { channel_max: u16, frame_max: u32, heartbeat: u16 }

    /// The limits the client agrees to.
    31 "tune-ok" TuneOk { channel_max: u16, frame_max: u32, heartbeat: u16 }

    /// The client opens a virtual host.
    40 "open" Open<'a> { virtual_host: ShortText<'a>, capabilities: ShortText<'a>, insist: bool }

    /// It is open.
    41 "open-ok" OpenOk<'a> { known_hosts: ShortText<'a> }

    /// The end, and why; the numbers are those of the method that was at fault, or 0.
    50 "close" Close<'a> { reply_code: u16, reply_text: ShortText<'a>, class_id: u16, method_id: u16 }

    /// The end is agreed on.
    51 "close-ok" CloseOk {}

    /// The server does not take messages for now (RabbitMQ).
    60 "blocked" Blocked<'a> { reason: ShortText<'a> }

    /// It does again (RabbitMQ).
    61 "unblocked" Unblocked {}

    /// The client logs in again, as what it used expires (RabbitMQ).
    70 "update-secret" UpdateSecret<'a> { new_secret: &'a [u8], reason: ShortText<'a> }

    /// It is logged in.
    71 "update-secret-ok" UpdateSecretOk {}
}
