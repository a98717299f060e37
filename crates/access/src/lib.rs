//! Who may do what: users, rights, tokens, the gate where people log in, and what is written down of administrators.
//!
//! Rights are RabbitMQ's: for each virtual host three regular expressions over names, and tags. Who has logged in is an
//! [`Identity`], which every front end asks before it asks the engine.

mod attempts;
mod audit;
mod changes;
mod checks;
mod deeds;
mod desk;
mod desks;
mod directory;
mod gate;
mod identity;
mod import;
mod known;
mod office;
mod password;
mod right;
mod token;
mod web_session;

pub use audit::{Audit, Deed, REMEMBERED_MAX};
pub use desk::{Desk, NotDone};
pub use desks::{Credentials, Desks, PAGE_HEADER, Peer, is_of_the_page, web_session, web_session_cookie};
pub use directory::{
    Account, Change, Directory, LABEL_LEN_MAX, TOKENS_MAX, TokenDigest, Unchangeable, Unreadable, User,
    UserLimits,
};
pub use gate::{DEFAULT_VHOST, GUEST, Gate, LoginRefused, NoGate, NotChanged};
pub use identity::{Denied, Identity, Roll};
pub use import::{MOST_URGENT, waiting_without_priority};
pub use office::{NewPassword, Office, UserPut};
pub use overtake_engine::rights::Right;
pub use password::{BadPassword, Hashing, PASSWORD_LEN_MAX, PasswordHash};
pub use right::{DEFAULT_EXCHANGE, Patterns, Permission, TAGS, Tag, Tags};
pub use token::{Scope, Secret, TOKEN_PREFIX, Token};
