//! Certificates and keys of TLS listeners, and who a client certificate says that somebody is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

/// How long a client may take to agree on TLS.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// The files of a TLS listener, in PEM.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate, and those between it and its CA.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The CA certificates that sign client certificates. Without them clients show none; with them client certificates are optional.
    pub client_ca: Option<PathBuf>,
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// The certificate that TLS listeners present. It may be read again: open connections keep the one they have.
#[derive(Clone)]
pub struct Presented {
    files: Files,
    now: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Presented {
    /// Reads the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn load(files: Files) -> Result<Self, BadFile> {
        let now = Arc::new(RwLock::new(load(&files)?));
        Ok(Self { files, now })
    }

    /// For the next connection.
    pub(crate) fn now(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files again; where one cannot be used, nothing changes.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn reload(&self) -> Result<(), BadFile> {
        let read = load(&self.files)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }
}

fn load(files: &Files) -> Result<Arc<ServerConfig>, BadFile> {
    let Files { cert, key, client_ca } = files;
    let chain = certificates(cert)?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(cert, error))?;
    let builder = if let Some(ca) = client_ca {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(ca)? {
            roots.add(certificate).map_err(|error| wrong(ca, error))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| wrong(ca, error))?;
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    builder.with_single_cert(chain, key_der).map(Arc::new).map_err(|error| wrong(cert, error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, BadFile> {
    let all: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, error))?.collect();
    let all = all.map_err(|error| wrong(path, error))?;
    if all.is_empty() { Err(wrong(path, "there is no certificate in it")) } else { Ok(all) }
}

fn wrong(path: &Path, why: impl ToString) -> BadFile {
    BadFile { path: PathBuf::from(path), why: why.to_string() }
}

/// The common name of a certificate's subject.
pub(crate) fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject().iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
}
