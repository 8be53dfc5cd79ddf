//! Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES once, and prints its size and the times as one JSON line.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use cc_adapter::http3::{self, Download};
use cc_adapter::{Error, address, report, setting, tls};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, TransportConfig, VarInt};

/// The stream's receive window. The default would limit the sender where bandwidth x delay is larger than it.
const WINDOW_BYTES: u32 = 1 << 30;
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

pub async fn fetch() -> Result<(), Error> {
    let (host, port) = (setting("CC_HOSTNAME")?, setting("CC_PORT")?);
    let size: usize = setting("CC_BYTES")?.parse()?;
    let config = config()?;
    let start = Instant::now();
    // YOUR STACK, from here on: connect, send the request, receive the body.
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let connection = endpoint.connect_with(config, address()?, &host)?.await?;
    let handshake = start.elapsed();
    let mut control = connection.open_uni().await?; // stays open to the end, as HTTP/3 demands
    control.write_all(http3::CONTROL).await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    let request = http3::request(&format!("{host}:{port}"), &format!("/{size}"));
    send.write_all(&request).await?;
    send.finish()?;
    let mut download = Download::new(size);
    while !download.is_complete() {
        let chunk = receive.read_chunk(usize::MAX, true).await?;
        download.take(chunk.as_ref().map(|chunk| &chunk.bytes[..]))?;
    }
    report(download.received, start.elapsed(), handshake);
    connection.close(NO_ERROR, b"");
    endpoint.wait_idle().await; // until the close is sent
    Ok(())
}

fn config() -> Result<ClientConfig, Error> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW_BYTES));
    let tls = QuicClientConfig::try_from(tls::client()?)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    Ok(config)
}
