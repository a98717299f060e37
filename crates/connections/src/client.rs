//! What the user of an AMQP connection may do.

use overtake_access::{Denied, Identity, Tag};
use overtake_amqp_session::Rights;
use overtake_engine::rights::Need;

/// The user of one connection.
#[derive(Debug)]
pub(crate) struct Client(pub(crate) Identity);

impl Rights for Client {
    fn user(&self) -> &str {
        self.0.user()
    }

    fn version(&self) -> u64 {
        self.0.version()
    }

    fn may_impersonate(&self) -> bool {
        self.0.must_have(Tag::Impersonator).is_ok()
    }

    fn check(&self, vhost: &str, need: Need<'_>) -> Result<(), String> {
        self.0.must(vhost, need).map_err(|denied: Denied| denied.to_string())
    }
}
