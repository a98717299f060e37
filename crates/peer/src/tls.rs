//! Whom to believe that they are the receiver, and how to show who asks.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::secret::Vault;

/// TLS to another system. Without anything said the authorities of the machine are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// A PEM file with the certificates of those who may sign for the other side, instead of the machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// A PEM file with the certificate to show, and those that signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// A PEM file with its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
}

impl Tls {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// How to begin TLS, where it is begun. Out of a closed vault comes one that believes nobody.
    ///
    /// # Errors
    /// Why it cannot be, as a phrase.
    pub fn client(&self, vault: Vault, is_begun: bool) -> Result<Option<Arc<ClientConfig>>, String> {
        vault.check_tls(self)?;
        is_begun.then(|| self.config(vault)).transpose()
    }

    fn config(&self, vault: Vault) -> Result<Arc<ClientConfig>, String> {
        let is_open = !vault.is_closed();
        let roots = if is_open { self.roots()? } else { RootCertStore::empty() };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider knows the versions that are safe")
            .with_root_certificates(roots);
        let config = match (&self.cert_file, &self.key_file) {
            (Some(cert), Some(key)) if is_open => {
                let certs = pem(cert)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
                builder.with_client_auth_cert(certs, key).map_err(|error| wrong(cert, &error))?
            }
            (Some(_), None) | (None, Some(_)) => {
                return Err("`cert_file` and `key_file` go together".to_owned());
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        match &self.ca_file {
            Some(file) => {
                for certificate in pem(file)? {
                    roots.add(certificate).map_err(|error| wrong(file, &error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err("this machine names no authorities that sign certificates: install its \
                                ca-certificates, or name a PEM file as `tls.ca_file`"
                        .to_owned());
                }
            }
        }
        Ok(roots)
    }
}

fn pem(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(file).map_err(|error| wrong(file, &error))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| wrong(file, &error))?;
    if all.is_empty() { Err(format!("{}: there is no certificate in it", file.display())) } else { Ok(all) }
}

fn wrong(file: &Path, error: &dyn std::error::Error) -> String {
    format!("{}: {error}", file.display())
}

/// TLS over a connection that is there.
///
/// # Errors
/// Why not, as a phrase.
pub async fn begin(
    config: Arc<ClientConfig>,
    host: &str,
    socket: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("{host} is no name that a certificate has"))?;
    TlsConnector::from(config)
        .connect(name, socket)
        .await
        .map_err(|error| format!("TLS with {host}: {}", tls_reason(&error)))
}

/// Why a connection under TLS failed, in words for people: rustls shows some faults of certificates as its own types are called.
#[must_use]
pub fn tls_reason(error: &(dyn Error + 'static)) -> String {
    match tls_fault(error) {
        Some(rustls::Error::InvalidCertificate(fault)) => certificate(fault),
        Some(rustls::Error::InvalidMessage(_)) => "the other side does not speak TLS".to_owned(),
        _ => error.to_string(),
    }
}

/// The error of TLS in an error, which may come wrapped as errors of reading or writing.
#[must_use]
pub fn tls_fault<'a>(mut error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    while let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        error = inner;
    }
    error.downcast_ref()
}

fn certificate(fault: &CertificateError) -> String {
    let fault = match fault {
        CertificateError::UnknownIssuer => "is signed by no CA that is trusted here",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "is not valid yet",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "is for other names than this one"
        }
        CertificateError::Revoked => "is revoked",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is not one of a server"
        }
        CertificateError::BadEncoding => "cannot be read",
        CertificateError::BadSignature => "has a signature that does not match its CA",
        // The verifier's own errors reach us as text only.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "is that of a CA; a server needs one of its own, signed by the CA"
        }
        other => return format!("the certificate is not accepted: {other}"),
    };
    format!("the certificate {fault}")
}
