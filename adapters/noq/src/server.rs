//! Serves the files of CC_WWW over HTTP/3.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use noq::crypto::rustls::QuicServerConfig;
use noq::{
    ConnectionError, Endpoint, Incoming, RecvStream, SendStream, ServerConfig, TransportConfig,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;

use crate::{Congestion, Error, address, crypto, http3, setting};

const REQUEST_BYTES: usize = 65536;

pub async fn serve(congestion: Congestion) -> Result<(), Error> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(congestion);
    if let Some(folder) = env::var_os("CC_QLOG") {
        transport.qlog_from_path(folder, "noq");
    }
    let mut config = ServerConfig::with_crypto(Arc::new(tls()?));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, address()?)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async {
            if let Err(error) = answer(incoming).await {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

fn tls() -> Result<QuicServerConfig, Error> {
    let chain = CertificateDer::pem_file_iter(setting("CC_CERT")?)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(setting("CC_KEY")?)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new()); // writes only where SSLKEYLOGFILE is set
    Ok(QuicServerConfig::try_from(tls)?)
}

/// Answers a connection's requests in their order, until the client closes it.
async fn answer(incoming: Incoming) -> Result<(), Error> {
    let connection = incoming.await?;
    let mut control = connection.open_uni().await?; // open to the end, as HTTP/3 demands
    control.write_all(http3::CONTROL).await?;
    loop {
        match connection.accept_bi().await {
            Ok((send, receive)) => respond(send, receive).await?,
            Err(ConnectionError::ApplicationClosed(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn respond(mut send: SendStream, mut receive: RecvStream) -> Result<(), Error> {
    let request = receive.read_to_end(REQUEST_BYTES).await?;
    match http3::path(&request).as_deref().and_then(file) {
        Some(body) => {
            send.write_all_chunks(&mut [http3::answer(body.len()).into(), body])
                .await?
        }
        None => send.write_all(&http3::not_found()).await?,
    }
    Ok(send.finish()?)
}

/// The file of CC_WWW that a path names; none elsewhere, as a name has no slash and does not begin with a dot.
fn file(path: &str) -> Option<Bytes> {
    let name = path
        .strip_prefix('/')
        .filter(|name| !name.starts_with('.') && !name.contains('/'))?;
    fs::read(Path::new(&env::var_os("CC_WWW")?).join(name))
        .ok()
        .map(Bytes::from)
}
