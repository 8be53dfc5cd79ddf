//! Serves the files of CC_WWW over HTTP/3.

use std::env;
use std::sync::Arc;

use cc_adapter::{Error, address, file, http3, tls};
use noq::crypto::rustls::QuicServerConfig;
use noq::{
    ConnectionError, Endpoint, Incoming, RecvStream, SendStream, ServerConfig, TransportConfig,
};

use crate::Congestion;

const REQUEST_BYTES: usize = 65536;

pub async fn serve(congestion: Congestion) -> Result<(), Error> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(congestion);
    if let Some(folder) = env::var_os("CC_QLOG") {
        transport.qlog_from_path(folder, "noq");
    }
    let mut config =
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls::server()?)?));
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
            send.write_all_chunks(&mut [http3::answer(body.len()).into(), body.into()])
                .await?
        }
        None => send.write_all(&http3::not_found()).await?,
    }
    Ok(send.finish()?)
}
