//! What a configuration says of itself to people, without secrets and without a connection.

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
    pub fn database_name(&self) -> &str {
        match &self.url {
            Url::Plain(url) => url,
            Url::Secret(_) => "a database whose address is secret",
        }
    }

    /// Where rows go.
    #[must_use]
    pub fn sink_name(&self) -> &str {
        match &self.sink {
            SinkOf::Broker { url, .. } => url,
            #[cfg(feature = "redis")]
            SinkOf::Streams { server, .. } => &server.url,
        }
    }
}
