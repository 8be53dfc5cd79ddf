//! Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES over HTTP/3 and prints what it took as one JSON line.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use cc_adapter::http3::{self, Download};
use cc_adapter::{Error, address, report, setting, tls};
use noq::crypto::rustls::QuicClientConfig;
use noq::{ClientConfig, Endpoint, TransportConfig, VarInt};

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
    let handshake = start.elapsed();
    let mut control = connection.open_uni().await?; // open to the end, as HTTP/3 demands
    control.write_all(http3::CONTROL).await?;

    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&http3::request(
        &format!("{host}:{port}"),
        &format!("/{size}"),
    ))
    .await?;
    send.finish()?;
    let mut download = Download::new(size);
    while !download.is_complete() {
        download.take(receive.read_chunk(usize::MAX).await?.as_deref())?;
    }
    report(download.received, start.elapsed(), handshake);
    connection.close(NO_ERROR, b"");
    endpoint.wait_idle().await; // until that is sent
    Ok(())
}

fn config() -> Result<ClientConfig, Error> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW_BYTES));
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls::client()?)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}
