//! Connections of clients: sockets, TLS, AMQP and HTTP, and the loops that accept them.
//!
//! ```text
//! listener ─▶ accept ─▶ Amqp ─▶ Conversation ─▶ Session of the engine
//!                    ─▶ Http ─▶ axum routes
//! ```
//!
//! The server says where to listen and when to stop ([`Term`]). A connection gets a task of its own.

mod accept;
mod amqp;
mod body;
mod budget;
mod client;
mod crowd;
mod descriptors;
mod door;
mod guard;
mod http;
mod output;
mod patience;
mod seen;
mod socket;
mod tls;

pub use accept::{Accepting, Term};
pub use amqp::{Amqp, Bounds};
pub use budget::{Budget, Held};
pub use crowd::Crowd;
pub use descriptors::Descriptors;
pub use door::Doors;
pub use guard::Hosts;
pub use http::{Http, RESERVE};
pub use tls::{BadFile, Files, Presented};

/// The allocator of the binary. glibc's spends a fifth of the broker's time on merging small pieces while millions of messages pass.
/// It is chosen here, since its functions are compiled where it is.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
