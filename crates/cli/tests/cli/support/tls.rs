//! Streams under TLS, and certificates for them.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A stream to somebody who listens.
pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the port is served");
    stream.set_read_timeout(Some(super::PATIENCE)).expect("a time");
    stream
}

/// An authority, and what it has signed, as PEM files.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate") }
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Files with a certificate and its key.
    pub fn sign_into(&self, dir: &Path, name: &str) -> [String; 2] {
        let (certificate, key) = self.sign(name);
        [write(dir, "cert.pem", &certificate), write(dir, "key.pem", &key)]
    }

    /// A certificate and its key.
    pub fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let signed = named(name, &["localhost"]).signed_by(&key, &self.issuer).expect("a certificate");
        (signed.pem(), key.serialize_pem())
    }
}

fn named(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).expect("hosts");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

pub fn write(dir: &Path, name: &str, pem: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, pem).expect("a file");
    path.to_str().expect("text").to_owned()
}

/// A stream under TLS to somebody whom `authority` vouches for, perhaps with a certificate of one's own.
pub fn secure(
    address: &str,
    authority: &Authority,
    own: Option<&(String, String)>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("PEM");
    roots.add(root).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder =
        builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")];
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
            builder.with_client_auth_cert(chain, key).expect("they belong together")
        }
    };
    let name = "localhost".try_into().expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    StreamOwned::new(connection, connect(address))
}
