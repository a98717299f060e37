//! What a configuration says of itself to people, without secrets and without a connection.

use overtake_peer::masked;

use super::{Config, SinkOf, Url};
use crate::database::Database;
use crate::error::Error;

impl Config {
    /// Every statement that makes the table and its indexes, in their order. The database is not asked.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the URL is a secret that cannot be read.
    pub fn schema(&self) -> Result<Vec<String>, Error> {
        Ok(Database::schema_of(self.address()?.dialect(), &self.table, self.notify))
    }

    /// Where the table is.
    #[must_use]
    pub fn database_name(&self) -> String {
        match &self.url {
            Url::Plain(url) => masked(url),
            Url::Secret(_) => "a database whose address is secret".to_owned(),
        }
    }

    /// The lanes of the streams that rows go to; nothing where they go to a broker.
    #[cfg(feature = "redis")]
    #[must_use]
    pub fn lanes(&self) -> Option<&overtake_streams::Lanes> {
        match &self.sink {
            SinkOf::Broker { .. } => None,
            SinkOf::Streams { settings, .. } => Some(&settings.layout.lanes),
        }
    }

    /// Where rows go.
    #[must_use]
    pub fn sink_name(&self) -> String {
        match &self.sink {
            SinkOf::Broker { url, .. } => masked(url),
            #[cfg(feature = "redis")]
            SinkOf::Streams { server, .. } => masked(&server.url),
        }
    }
}
