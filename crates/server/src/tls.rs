//! Certificates and keys of TLS listeners, and who a client certificate says that somebody is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::ServeError;
use crate::config::Tls;

/// How long a client may take to agree on TLS.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// What TLS listeners present, which may be read again: connections that are there keep what they have.
#[derive(Clone)]
pub(crate) struct Presented {
    files: Tls,
    now: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Presented {
    /// Reads the files.
    pub(crate) fn load(tls: &Tls) -> Result<Self, ServeError> {
        Ok(Self { files: tls.clone(), now: Arc::new(RwLock::new(load(tls)?)) })
    }

    /// For the next connection.
    pub(crate) fn now(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files again. What cannot be used changes nothing.
    pub(crate) fn reload(&self) -> Result<(), ServeError> {
        let read = load(&self.files)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }
}

/// Clients may show a certificate where `tls.client_ca_file` says who signs those.
fn load(tls: &Tls) -> Result<Arc<ServerConfig>, ServeError> {
    let (cert, key, ca) = (&tls.cert_file.value, &tls.key_file.value, &tls.client_ca_file.value);
    let chain = certificates(cert)?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(cert, error))?;
    let builder = if ca.as_os_str().is_empty() {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(ca)? {
            roots.add(certificate).map_err(|error| wrong(ca, error))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| wrong(ca, error))?;
        builder.with_client_cert_verifier(verifier)
    };
    builder.with_single_cert(chain, key_der).map(Arc::new).map_err(|error| wrong(cert, error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let all: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, error))?.collect();
    let all = all.map_err(|error| wrong(path, error))?;
    if all.is_empty() { Err(wrong(path, "there is no certificate in it")) } else { Ok(all) }
}

fn wrong(path: &Path, why: impl ToString) -> ServeError {
    ServeError::Tls { path: PathBuf::from(path), why: why.to_string() }
}

/// The common name of a certificate's subject.
pub(crate) fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject().iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
}
