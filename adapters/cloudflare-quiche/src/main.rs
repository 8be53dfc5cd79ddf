//! An HTTP/3 server on tokio-quiche, Cloudflare's own way to run quiche: `GET /NAME` is answered with a file of CC_WWW.

use bytes::Bytes;
use quiche::h3::{Header, NameValue};
use quiche::CongestionControlAlgorithm;
use std::error::Error;
use std::process::exit;
use tokio_quiche::http3::driver::{IncomingH3Headers, OutboundFrame, ServerH3Event};
use tokio_quiche::http3::settings::Http3Settings;
use tokio_quiche::metrics::DefaultMetrics;
use tokio_quiche::settings::{CertificateKind, Hooks, QuicSettings, TlsCertificatePaths};
use tokio_quiche::{ConnectionParams, ServerH3Controller, ServerH3Driver};

type Failure = Box<dyn Error + Send + Sync>;

/// Names that quiche has had. It keeps some as other names of an algorithm: the last that it accepts is the proper one.
const NAMES: [&str; 5] = ["bbr", "bbr2", "bbr2_gcongestion", "cubic", "reno"];

fn main() {
    let done = match std::env::args().nth(1).as_deref() {
        Some("server") => serve(),
        Some("describe") => Ok(describe()),
        _ => exit(64),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        exit(1);
    }
}

fn describe() {
    let known = |name: &str| name.parse::<CongestionControlAlgorithm>().ok();
    let mut names: Vec<&str> = NAMES.into_iter().filter(|name| known(name).is_some()).collect();
    names.dedup_by(|next, name| known(next) == known(name) && { *name = *next; true });
    println!("{{\"version\": \"{}\", \"algorithms\": {names:?}}}", env!("CARGO_PKG_DESCRIPTION"));
}

fn setting(name: &str) -> Result<String, Failure> {
    std::env::var(name).map_err(|_| format!("{name} is not set").into())
}

fn serve() -> Result<(), Failure> {
    let algorithm = setting("CC_CALLED")?;
    if algorithm.parse::<CongestionControlAlgorithm>().is_err() {
        exit(127);
    }
    // One thread, as the guest has one processor.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(listen(algorithm))
}

async fn listen(algorithm: String) -> Result<(), Failure> {
    let (certificate, key) = (setting("CC_CERT")?, setting("CC_KEY")?);
    let tls = TlsCertificatePaths { cert: &certificate, private_key: &key, kind: CertificateKind::X509 };
    let mut quic = QuicSettings::default();
    quic.cc_algorithm = algorithm;
    // Only BBR has pacing here, and is no BBR without. tokio-quiche's default is off, quiche's is on.
    quic.enable_pacing = true;
    // Else a Retry makes every handshake a round trip longer than those of the other servers.
    quic.disable_client_ip_validation = true;
    quic.qlog_dir = std::env::var("CC_QLOG").ok();

    let address = format!("{}:{}", setting("CC_ADDRESS")?, setting("CC_PORT")?);
    let socket = tokio::net::UdpSocket::bind(address).await?;
    let parameters = ConnectionParams::new_server(quic, tls, Hooks::default());
    let mut connections = tokio_quiche::listen([socket], parameters, DefaultMetrics)?.remove(0).into_inner();
    while let Some(connection) = connections.recv().await {
        match connection {
            Ok(connection) => {
                let (driver, controller) = ServerH3Driver::new(Http3Settings::default());
                connection.start(driver);
                tokio::spawn(answer_all(controller));
            }
            Err(error) => eprintln!("a connection failed: {error}"),
        }
    }
    Ok(())
}

async fn answer_all(mut controller: ServerH3Controller) {
    while let Some(event) = controller.event_receiver_mut().recv().await {
        if let ServerH3Event::Headers { incoming_headers, .. } = event {
            tokio::spawn(answer(incoming_headers));
        }
    }
}

/// The body is one frame: the driver sends what the window allows and keeps the rest.
async fn answer(request: IncomingH3Headers) {
    let Some(stream) = request.send.get_ref() else { return };
    let file = find(&request.headers);
    let (status, body) = match &file {
        Some(body) => (&b"200"[..], body.clone()),
        None => (&b"404"[..], Bytes::new()),
    };
    let length = body.len().to_string();
    let headers = vec![Header::new(b":status", status), Header::new(b"content-length", length.as_bytes())];
    // It fails where the client has gone, which is not ours to report.
    if stream.send(OutboundFrame::Headers(headers, None)).await.is_ok() {
        let _ = stream.send(OutboundFrame::Body(body, true)).await;
    }
}

/// The file that the path names, mapped; None where there is none, or the path is more than a name.
fn find(headers: &[Header]) -> Option<Bytes> {
    let path = headers.iter().find(|header| header.name() == b":path")?.value();
    let name = std::str::from_utf8(path).ok()?.strip_prefix('/')?;
    if name.is_empty() || name.contains(['/', '.']) {
        return None;
    }
    let file = std::fs::File::open(format!("{}/{name}", setting("CC_WWW").ok()?)).ok()?;
    // Sound as long as nobody shortens the file, and nobody does during a transfer.
    Some(Bytes::from_owner(unsafe { memmap2::Mmap::map(&file) }.ok()?))
}
