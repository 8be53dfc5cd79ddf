//! Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES over HTTP/3 and prints what it took as one JSON line.

use std::future::poll_fn;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Buf;
use cc_adapter::{Error, address, report, setting, tls};
use http::{Request, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, TransportConfig, VarInt};

/// quinn's default is 1.25 MB a stream, which would hold a sender back where bandwidth x delay is more.
const WINDOW_BYTES: u32 = 1 << 30;

pub async fn fetch() -> Result<(), Error> {
    let (host, port) = (setting("CC_HOSTNAME")?, setting("CC_PORT")?);
    let size: usize = setting("CC_BYTES")?.parse()?;
    let config = config()?;
    let start = Instant::now();
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let quic = endpoint.connect_with(config, address()?, &host)?.await?;
    let handshake = start.elapsed();
    let (mut driver, mut sender) = h3::client::new(h3_quinn::Connection::new(quic)).await?;
    let driving = tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });

    let request = Request::get(format!("https://{host}:{port}/{size}")).body(())?;
    let mut stream = sender.send_request(request).await?;
    stream.finish().await?;
    let status = stream.recv_response().await?.status();
    if status != StatusCode::OK {
        return Err(format!("the server answered {status}").into());
    }
    let mut received = 0;
    while received < size {
        let Some(data) = stream.recv_data().await? else {
            return Err(format!("the body ended after {received} of {size} bytes").into());
        };
        received += data.remaining();
    }
    report(received, start.elapsed(), handshake);

    // The last request's end closes the connection; the endpoint must live until that is sent.
    drop((stream, sender));
    let _ = driving.await;
    endpoint.wait_idle().await;
    Ok(())
}

fn config() -> Result<ClientConfig, Error> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW_BYTES));
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls::client()?)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}
