//! Serves the files of CC_WWW over HTTP/3.

use std::path::Path;

use bytes::Bytes;
use cc_adapter::{Error, address, file, http3, setting};
use s2n_quic::connection::Error as ConnectionError;
use s2n_quic::provider::{congestion_controller, tls};
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Connection, Server};

const REQUEST_BYTES: usize = 65536;

pub fn start(congestion: impl congestion_controller::Provider) -> Result<Server, Error> {
    let tls = tls::rustls::Server::builder()
        .with_certificate(
            Path::new(&setting("CC_CERT")?),
            Path::new(&setting("CC_KEY")?),
        )?
        .with_key_logging()? // writes only where SSLKEYLOGFILE is set
        .build()?;
    Ok(Server::builder()
        .with_tls(tls)?
        .with_io(address()?)?
        .with_congestion_controller(congestion)?
        .start()?)
}

pub async fn serve(mut server: Server) -> Result<(), Error> {
    while let Some(connection) = server.accept().await {
        tokio::spawn(async {
            if let Err(error) = answer(connection).await {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

/// Answers a connection's requests in their order, until the client closes it.
async fn answer(mut connection: Connection) -> Result<(), Error> {
    let mut control = connection.open_send_stream().await?; // open to the end, as HTTP/3 demands
    control.send(Bytes::from_static(http3::CONTROL)).await?;
    loop {
        match connection.accept_bidirectional_stream().await {
            Ok(Some(stream)) => respond(stream).await?,
            Ok(None) | Err(ConnectionError::Application { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn respond(mut stream: BidirectionalStream) -> Result<(), Error> {
    let mut request = Vec::new();
    while let Some(bytes) = stream.receive().await? {
        request.extend(bytes);
        if request.len() > REQUEST_BYTES {
            return Err("a request is too long".into());
        }
    }
    match http3::path(&request).as_deref().and_then(file) {
        Some(body) => {
            stream
                .send_vectored(&mut [http3::answer(body.len()).into(), body.into()])
                .await?
        }
        None => stream.send(http3::not_found().into()).await?,
    }
    Ok(stream.finish()?)
}
