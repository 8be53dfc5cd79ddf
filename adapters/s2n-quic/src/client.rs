//! Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES over HTTP/3 and prints what it took as one JSON line.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use cc_adapter::http3::{self, Download};
use cc_adapter::{Error, address, report, setting};
use s2n_quic::Client;
use s2n_quic::client::Connect;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls;

/// s2n-quic's default is 3.75 MB, which would hold a sender back where bandwidth x delay is more.
const WINDOW_BYTES: u64 = 1 << 30;
const NO_ERROR: u32 = 0x100;

pub async fn fetch() -> Result<(), Error> {
    let (host, port) = (setting("CC_HOSTNAME")?, setting("CC_PORT")?);
    let size: usize = setting("CC_BYTES")?.parse()?;
    let tls = tls::rustls::Client::builder()
        .with_certificate(Path::new(&setting("CC_CA")?))?
        .build()?;
    let limits = Limits::new()
        .with_data_window(WINDOW_BYTES)?
        .with_bidirectional_local_data_window(WINDOW_BYTES)?;
    let start = Instant::now();
    let io = (Ipv4Addr::UNSPECIFIED, 0);
    let mut client = Client::builder()
        .with_tls(tls)?
        .with_limits(limits)?
        .with_io(io)?
        .start()?;
    let mut connection = client
        .connect(Connect::new(address()?).with_server_name(host.as_str()))
        .await?;
    let handshake = start.elapsed();
    let mut control = connection.open_send_stream().await?; // open to the end, as HTTP/3 demands
    control.send(Bytes::from_static(http3::CONTROL)).await?;

    let mut stream = connection.open_bidirectional_stream().await?;
    stream
        .send(http3::request(&format!("{host}:{port}"), &format!("/{size}")).into())
        .await?;
    stream.finish()?;
    let mut download = Download::new(size);
    while !download.is_complete() {
        download.take(stream.receive().await?.as_deref())?;
    }
    report(download.received, start.elapsed(), handshake);
    connection.close(NO_ERROR.into());
    client.wait_idle().await?; // until that is sent
    Ok(())
}
