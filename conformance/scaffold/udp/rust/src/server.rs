//! Serves the files of CC_WWW over HTTP/3, until a signal ends the program.

use std::sync::Arc;

use cc_adapter::{Error, address, file, http3, tls};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    ConnectionError, Endpoint, Incoming, RecvStream, SendStream, ServerConfig, TransportConfig,
};

use crate::Congestion;

const REQUEST_BYTES: usize = 65536;

// YOUR STACK, from here on: serve, with the congestion control that was asked for and otherwise the stack's defaults.
pub async fn serve(congestion: Congestion) -> Result<(), Error> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(congestion);
    let tls = QuicServerConfig::try_from(tls::server()?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, address()?)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async {
            if let Err(error) = answer(incoming).await {
                eprintln!("my-stack: {error}");
            }
        });
    }
    Ok(())
}

/// Answers a connection's requests in order, until the client closes the connection.
async fn answer(incoming: Incoming) -> Result<(), Error> {
    let connection = incoming.await?;
    let mut control = connection.open_uni().await?; // stays open to the end, as HTTP/3 demands
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
            let head = http3::answer(body.len());
            send.write_all_chunks(&mut [head.into(), body.into()])
                .await?
        }
        None => send.write_all(&http3::not_found()).await?,
    }
    Ok(send.finish()?)
}
