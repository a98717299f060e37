//! Whom to believe that they are the broker.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::failure::Failure;

/// With the authorities of this file, else of the system; none are looked for where nothing is said under TLS.
///
/// # Errors
/// When there are none, or a file of them cannot be used.
pub(crate) fn config(is_secure: bool, ca_file: Option<&Path>) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        _ if !is_secure => {}
        Some(file) => read(file, &mut roots)?,
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(Failure::usage(
                    "this system names no authorities that sign certificates".to_owned(),
                )
                .hint("install its ca-certificates, or name a PEM file with --ca-file"));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the versions that are safe");
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn read(file: &Path, roots: &mut RootCertStore) -> Result<(), Failure> {
    let wrong = |why: String| {
        Failure::usage(format!("cannot use {}: {why}", file.display()))
            .hint("--ca-file names a PEM file with the certificates of those who sign")
    };
    let all = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    for certificate in all {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() { Err(wrong("there is no certificate in it".to_owned())) } else { Ok(()) }
}
