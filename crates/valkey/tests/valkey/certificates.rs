//! An authority, and what it has signed for this machine, as PEM files.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

pub(crate) struct Certificates {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificates {
    pub(crate) fn in_dir(dir: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("nobody");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Whoever is called as its issuer is taken for its own.
        params.distinguished_name.push(DnType::CommonName, "the authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
        let issuer = issuer.expect("a certificate");
        let key = KeyPair::generate().expect("a key");
        let params =
            CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("hosts");
        let signed = params.signed_by(&key, &issuer).expect("a certificate");
        let write = |name: &str, pem: String| {
            let path = dir.join(name);
            std::fs::write(&path, pem).expect("a file");
            path
        };
        Self {
            authority: write("authority.pem", issuer.pem()),
            certificate: write("certificate.pem", signed.pem()),
            key: write("key.pem", key.serialize_pem()),
        }
    }
}
