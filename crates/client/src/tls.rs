//! Whom to believe that they are the broker, and how to show who asks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::error::Error;

/// TLS to the broker. Without anything said the authorities of the machine are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    ca_file: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// As the machine has it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A PEM file with the certificates of those who may sign for the broker, instead of the machine's.
    #[must_use]
    pub fn ca_file(self, path: impl Into<PathBuf>) -> Self {
        Self { ca_file: Some(path.into()), ..self }
    }

    /// PEM files with the certificate to show, and those that signed it, and with its key. If the URL names no user, the certificate says who
    /// logs in over AMQP; over HTTP it is no login, so leases and settings want a user in the URL.
    #[must_use]
    pub fn identity(self, cert_file: impl Into<PathBuf>, key_file: impl Into<PathBuf>) -> Self {
        Self { identity: Some((cert_file.into(), key_file.into())), ..self }
    }

    pub(crate) fn has_identity(&self) -> bool {
        self.identity.is_some()
    }

    /// # Errors
    /// A file that cannot be read, or holds something else.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider knows the versions that are safe")
            .with_root_certificates(self.roots()?);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let wrong_key = |error| wrong(key, &error);
                let parsed = PrivateKeyDer::from_pem_file(key).map_err(wrong_key)?;
                builder.with_client_auth_cert(pem(cert)?, parsed).map_err(|error| wrong(cert, &error))?
            }
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        match &self.ca_file {
            Some(path) => {
                for cert in pem(path)? {
                    roots.add(cert).map_err(|error| wrong(path, &error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        Ok(roots)
    }
}

fn pem(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certs = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, &error))?;
    let certs = certs.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(path, &error))?;
    if certs.is_empty() {
        return Err(wrong(path, &"there is no certificate"));
    }
    Ok(certs)
}

fn wrong(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::Invalid(format!("{}: {why}", path.display()))
}
