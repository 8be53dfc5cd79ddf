//! Serves the files of CC_WWW over HTTP/3.

use std::future::pending;
use std::sync::Arc;

use cc_adapter::{Error, address, file, http3, setting};
use dquic::qbase::error::Error as ConnectionError;
use dquic::{
    ArcConnection, CertificateDer, Dock, Endpoint, PrivateKeyDer, QuicEndpoint, RootCerts, Scopes,
    StreamReader, StreamWriter, UdpSocket,
};
use rustls_pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const REQUEST_BYTES: u64 = 65536;
/// dquic staples an OCSP response, always: this one says that there is none now (RFC 6960, 4.2.1: tryLater).
const OCSP_TRY_LATER: &[u8] = &[0x30, 3, 0x0a, 1, 3];

pub async fn serve() -> Result<(), Error> {
    RootCerts::set(certificates("CC_CA")?)?; // it offers clients to say who they are; ours does not
    let key = PrivateKeyDer::from_pem_file(setting("CC_KEY")?)?;
    let name = setting("CC_HOSTNAME")?;
    let endpoint: QuicEndpoint =
        Endpoint::new(&name, certificates("CC_CERT")?, key, OCSP_TRY_LATER.into())?.into();
    Dock::global().add(Arc::new(UdpSocket::bind(address()?)?))?;
    endpoint.listen(Scopes::ALL, |(_, _, connection)| {
        tokio::spawn(async {
            if let Err(error) = answer(connection).await {
                eprintln!("{error}");
            }
        });
    })?;
    pending().await
}

fn certificates(variable: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    Ok(CertificateDer::pem_file_iter(setting(variable)?)?.collect::<Result<_, _>>()?)
}

/// Answers a connection's requests, each in a task, as an answer ends only when all of it is acknowledged.
async fn answer(connection: ArcConnection) -> Result<(), Error> {
    let (_, mut control) = (connection.open_uni_stream().await?).ok_or("no stream is left")?;
    control.write_all(http3::CONTROL).await?; // open to the end, as HTTP/3 demands
    loop {
        match connection.accept_bi_stream().await {
            Ok((_, (receive, send))) => {
                tokio::spawn(async {
                    if let Err(error) = respond(send, receive).await {
                        eprintln!("{error}");
                    }
                });
            }
            Err(ConnectionError::App(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn respond(mut send: StreamWriter, receive: StreamReader) -> Result<(), Error> {
    let mut request = Vec::new();
    receive
        .take(REQUEST_BYTES)
        .read_to_end(&mut request)
        .await?;
    match http3::path(&request).as_deref().and_then(file) {
        Some(body) => {
            send.write_all(&http3::answer(body.len())).await?;
            send.write_all(&body).await?
        }
        None => send.write_all(&http3::not_found()).await?,
    }
    Ok(send.shutdown().await?)
}
