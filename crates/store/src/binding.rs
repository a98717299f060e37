//! A binding as bytes, as the records of the journal have it: the exchange (text); a byte, 0 to a queue or 1 to an exchange, and
//! its name (text); the routing key (text); a byte for how headers match (0 all, 1 any, 2 all with x, 3 any with x); the
//! headers (how many, then each: name as text, value); the arguments (bytes).

use overtake_lane::{Binding, Destination, HeadersMatch};

use crate::codec::{Reader, bytes, text};
use crate::value;

const MATCHINGS: [HeadersMatch; 4] =
    [HeadersMatch::All, HeadersMatch::Any, HeadersMatch::AllWithX, HeadersMatch::AnyWithX];

/// Appends a binding.
pub(crate) fn binding(out: &mut Vec<u8>, binding: &Binding) {
    let Binding { exchange, to, routing_key, headers, matching, arguments } = binding;
    text(out, exchange);
    out.push(match to {
        Destination::Queue(_) => 0,
        Destination::Exchange(_) => 1,
    });
    text(out, to.name());
    text(out, routing_key);
    let code = MATCHINGS.iter().position(|known| known == matching).expect("every way to match has a code");
    out.push(code as u8);
    value::named(out, headers.iter().map(|(name, value)| (name, value)));
    bytes(out, arguments);
}

impl Reader<'_> {
    pub(crate) fn binding(&mut self) -> Option<Binding> {
        let exchange = self.text()?.into();
        let kind = self.byte()?;
        let name = self.text()?.into();
        let to = match kind {
            0 => Destination::Queue(name),
            1 => Destination::Exchange(name),
            _ => return None,
        };
        let routing_key = self.text()?.to_owned();
        let matching = *MATCHINGS.get(usize::from(self.byte()?))?;
        let (headers, arguments) = (self.named()?, self.bytes()?.to_vec());
        Some(Binding { exchange, to, routing_key, headers, matching, arguments })
    }
}
