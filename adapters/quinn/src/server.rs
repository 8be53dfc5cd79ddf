//! Serves the files of CC_WWW over HTTP/3.

use std::env;
use std::fs::File;
use std::io::LineWriter;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cc_adapter::{Error, address, file, tls};
use h3::server::RequestStream;
use http::{Request, Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, Incoming, QlogConfig, QlogStream, ServerConfig, TransportConfig};

use crate::Congestion;

pub async fn serve(congestion: Congestion) -> Result<(), Error> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(congestion);
    transport.qlog_stream(qlog()?);
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

/// One file for all connections, in the folder that CC_QLOG names; each event is written at once, as a signal ends us.
fn qlog() -> Result<Option<QlogStream>, Error> {
    let Some(folder) = env::var_os("CC_QLOG") else {
        return Ok(None);
    };
    let mut config = QlogConfig::default();
    config.writer(Box::new(LineWriter::new(File::create(
        Path::new(&folder).join("quinn.sqlog"),
    )?)));
    Ok(config.into_stream())
}

/// Answers a connection's requests in their order, until the client closes it.
async fn answer(incoming: Incoming) -> Result<(), Error> {
    let mut http = h3::server::Connection::new(h3_quinn::Connection::new(incoming.await?)).await?;
    loop {
        match http.accept().await {
            Ok(Some(resolver)) => {
                let (request, stream) = resolver.resolve_request().await?;
                respond(request, stream).await?;
            }
            Ok(None) => return Ok(()),
            Err(error) if error.is_h3_no_error() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn respond(
    request: Request<()>,
    mut stream: RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>,
) -> Result<(), Error> {
    let Some(body) = file(request.uri().path()) else {
        stream
            .send_response(Response::builder().status(StatusCode::NOT_FOUND).body(())?)
            .await?;
        return Ok(stream.finish().await?);
    };
    stream
        .send_response(
            Response::builder()
                .header("content-length", body.len())
                .body(())?,
        )
        .await?;
    stream.send_data(body.into()).await?;
    Ok(stream.finish().await?)
}
