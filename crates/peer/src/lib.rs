//! Other systems: where they are ([`Address`]), whom to believe that it is them ([`Tls`]), secrets by reference ([`Secret`]), and a connection to a server that
//! is named by all of these ([`Peer`]).
//!
//! What goes wrong is said as a phrase that tells whoever sees to the settings what to do.

mod address;
mod peer;
mod reach;
#[cfg(feature = "redis")]
pub mod redis;
mod secret;
mod tls;

pub use address::{Address, Login, parse};
pub use overtake_redact::{MASK, masked};
pub use peer::{Named, Peer, Socket};
pub use reach::LinkLocal;
pub use secret::{Secret, Text, Vault};
pub use tls::{Tls, begin, tls_fault, tls_reason};
