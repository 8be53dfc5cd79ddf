//! Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES over HTTP/3 and prints what it took as one JSON line.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use noq::crypto::rustls::QuicClientConfig;
use noq::{ClientConfig, Endpoint, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::version::TLS13;

use crate::{Error, address, crypto, http3, setting};

/// noq's default is 1.25 MB a stream, which would hold a sender back where bandwidth x delay is more.
const WINDOW_BYTES: u32 = 1 << 30;
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

pub async fn fetch() -> Result<(), Error> {
    let (host, port) = (setting("CC_HOSTNAME")?, setting("CC_PORT")?);
    let size: usize = setting("CC_BYTES")?.parse()?;
    let config = config()?;
    let start = Instant::now();
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let connection = endpoint.connect_with(config, address()?, &host)?.await?;
    let handshake_s = start.elapsed().as_secs_f64();
    let mut control = connection.open_uni().await?; // open to the end, as HTTP/3 demands
    control.write_all(http3::CONTROL).await?;

    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&http3::request(
        &format!("{host}:{port}"),
        &format!("/{size}"),
    ))
    .await?;
    send.finish()?;
    let mut answer = http3::Answer::default();
    let mut received = 0;
    while received < size {
        let Some(bytes) = receive.read_chunk(usize::MAX).await? else {
            return Err(format!("the body ended after {received} of {size} bytes").into());
        };
        received += answer
            .read(&bytes)
            .ok_or("the server does not speak HTTP/3")?;
        if let Some(status) = answer.status.as_deref().filter(|status| *status != "200") {
            return Err(format!("the server answered {status}").into());
        }
    }
    let completion_s = start.elapsed().as_secs_f64();
    println!(
        r#"{{"bytes": {received}, "completion_s": {completion_s:.6}, "handshake_s": {handshake_s:.6}}}"#
    );
    connection.close(NO_ERROR, b"");
    endpoint.wait_idle().await; // until that is sent
    Ok(())
}

fn config() -> Result<ClientConfig, Error> {
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(setting("CC_CA")?)? {
        authorities.add(certificate?)?;
    }
    let mut tls = rustls::ClientConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW_BYTES));
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}
