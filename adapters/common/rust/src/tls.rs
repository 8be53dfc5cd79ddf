//! TLS 1.3 with rustls: the server's certificate and the client's authority as the contract names them.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, KeyLogFile, RootCertStore, ServerConfig};

use crate::{Error, setting};

const HTTP3: &[u8] = b"h3";

pub fn server() -> Result<ServerConfig, Error> {
    let chain = CertificateDer::pem_file_iter(setting("CC_CERT")?)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(setting("CC_KEY")?)?;
    let mut config = ServerConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![HTTP3.to_vec()];
    config.key_log = Arc::new(KeyLogFile::new()); // writes only where SSLKEYLOGFILE is set
    Ok(config)
}

/// Trusts the one authority; rustls verifies the name by itself.
pub fn client() -> Result<ClientConfig, Error> {
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(setting("CC_CA")?)? {
        authorities.add(certificate?)?;
    }
    let mut config = ClientConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP3.to_vec()];
    Ok(config)
}

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
