//! A binding as a client declares it.

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{Destination as To, Link, Refused};
use overtake_engine::headers_of;
use overtake_lane::{Binding, Destination, HeadersMatch};

use super::Arguments;

/// What the client wants. Arguments are headers to be met, for an exchange that goes by them.
///
/// # Errors
/// A source that cannot have bindings, or an argument that cannot be, by name.
pub fn binding(link: &Link, vhost: &str) -> Result<Binding, Refused> {
    if link.source.is_empty() {
        return Err(Refused::because(
            ReplyCode::AccessRefused,
            "operation not permitted on the default exchange",
        ));
    }
    let to = match &link.destination {
        To::Queue(name) => Destination::Queue(name.as_str().into()),
        To::Exchange(name) => Destination::Exchange(name.as_str().into()),
    };
    let table = link.arguments.view();
    let mut headers = headers_of(table);
    headers.remove("x-match");
    let arguments = Arguments::new(table, "exchange", &link.source, vhost);
    let matching = match arguments.text("x-match")? {
        None | Some("all") => HeadersMatch::All,
        Some("any") => HeadersMatch::Any,
        Some("all-with-x") => HeadersMatch::AllWithX,
        Some("any-with-x") => HeadersMatch::AnyWithX,
        Some(_) => return Err(arguments.wrong("x-match", "expected all, any, all-with-x or any-with-x")),
    };
    Ok(Binding {
        headers: headers.into_iter().collect(),
        matching,
        arguments: table.as_bytes().to_vec(),
        ..Binding::new(&link.source, to, &link.routing_key)
    })
}
