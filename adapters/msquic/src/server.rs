//! Serve the files of CC_WWW. msquic calls back from threads of its own: one worker for each processor, and a guest has
//! one. It waits in epoll, and sends with UDP segmentation offload.

use std::net::SocketAddr;
use std::ptr::null;
use std::sync::Arc;

use cc_adapter::{address, http3, setting, Error};
use msquic::{
    Addr, BufferRef, CertificateFile, Configuration, Connection, ConnectionEvent, ConnectionRef, Credential,
    CredentialConfig, Listener, ListenerEvent, Registration, RegistrationConfig, SendFlags, Settings, Status, Stream,
    StreamEvent, StreamOpenFlags, StreamRef, StreamShutdownFlags, StreamStartFlags,
};

use crate::keylog::{self, Secrets};
use crate::site::Site;

/// msquic copies a piece at a time into its own buffer of what is in flight; as one piece, it would copy all at once.
const PIECE_BYTES: usize = 1 << 16;
const REQUESTS: u16 = 100;
const CLIENT_UNIDIRECTIONAL_STREAMS: u16 = 3; // its control stream and two of QPACK
const INTERNAL_ERROR: u64 = 0x102;

pub fn serve(algorithm: u16) -> Result<(), Error> {
    let files = CertificateFile::new(setting("CC_KEY")?, setting("CC_CERT")?);
    let _listener = listen(algorithm, address()?, files, Arc::new(Site::default())).map_err(|e| format!("cannot serve: {e}"))?;
    loop {
        std::thread::park(); // until SIGTERM ends the process
    }
}

fn listen(
    algorithm: u16,
    address: SocketAddr,
    files: CertificateFile,
    site: Arc<Site>,
) -> Result<(Registration, Listener), Status> {
    let registration = Registration::new(&RegistrationConfig::new())?;
    let http3 = [BufferRef::from("h3")];
    let settings = Settings::new()
        .set_CongestionControlAlgorithm(algorithm)
        .set_PeerBidiStreamCount(REQUESTS)
        .set_PeerUnidiStreamCount(CLIENT_UNIDIRECTIONAL_STREAMS);
    let configuration = Configuration::open(&registration, &http3, Some(&settings))?;
    configuration.load_credential(&CredentialConfig::new().set_credential(Credential::CertificateFile(files)))?;
    let listener = Listener::open(&registration, move |_, event| {
        if let ListenerEvent::NewConnection { connection, .. } = event {
            let (site, secrets) = (site.clone(), keylog::ask(&connection)?);
            connection.set_callback_handler(move |connection, event| visit(&connection, event, &site, &secrets));
            connection.set_configuration(&configuration)?;
        }
        Ok(())
    })?;
    listener.start(&http3, Some(&Addr::from(address)))?;
    Ok((registration, listener))
}

fn visit(
    connection: &ConnectionRef,
    event: ConnectionEvent,
    site: &Arc<Site>,
    secrets: &Secrets,
) -> Result<(), Status> {
    match event {
        ConnectionEvent::Connected { .. } => {
            secrets.as_deref().map(keylog::write);
            open_control_stream(connection)?;
        }
        ConnectionEvent::PeerStreamStarted { stream, flags } => {
            let is_request = !flags.contains(StreamOpenFlags::UNIDIRECTIONAL);
            let mut exchange = Exchange { site: site.clone(), is_request, request: Vec::new(), response: None };
            stream.set_callback_handler(move |stream, event| exchange.on(&stream, event));
        }
        // From here on the handle is ours to close, which dropping it does.
        ConnectionEvent::ShutdownComplete { .. } => drop(unsafe { Connection::from_raw(connection.as_raw()) }),
        _ => {}
    }
    Ok(())
}

fn open_control_stream(connection: &Connection) -> Result<(), Status> {
    let stream = Stream::open(connection, StreamOpenFlags::UNIDIRECTIONAL, |stream, event| {
        if let StreamEvent::ShutdownComplete { .. } = event {
            drop(unsafe { Stream::from_raw(stream.as_raw()) });
        }
        Ok(())
    })?;
    stream.start(StreamStartFlags::NONE)?;
    // msquic wants the list of buffers, too, for as long as it sends.
    let buffers = Box::leak(Box::new([BufferRef::from(http3::CONTROL)]));
    unsafe {
        stream.send(buffers, SendFlags::NONE, null())?;
        stream.into_raw();
    }
    Ok(())
}

/// What happens on a stream that the client opened.
struct Exchange {
    site: Arc<Site>,
    is_request: bool,
    request: Vec<u8>,
    response: Option<Response>,
}

/// What is being sent; msquic reads it until the stream is closed.
struct Response {
    _head: Vec<u8>,
    pieces: Vec<BufferRef>,
}

impl Exchange {
    fn on(&mut self, stream: &StreamRef, event: StreamEvent) -> Result<(), Status> {
        match event {
            StreamEvent::Receive { buffers, .. } if self.is_request => {
                buffers.iter().for_each(|buffer| self.request.extend_from_slice(buffer.as_bytes()));
            }
            StreamEvent::PeerSendShutdown if self.is_request && self.response.is_none() => {
                if self.answer(stream).is_err() {
                    let _ = stream.shutdown(StreamShutdownFlags::ABORT, INTERNAL_ERROR);
                }
            }
            StreamEvent::ShutdownComplete { .. } => drop(unsafe { Stream::from_raw(stream.as_raw()) }),
            _ => {}
        }
        Ok(())
    }

    fn answer(&mut self, stream: &Stream) -> Result<(), Status> {
        let body = http3::path(&self.request).and_then(|path| self.site.read(&path));
        let head = body.map_or_else(http3::not_found, |body| http3::answer(body.len()));
        let pieces = std::iter::once(head.as_slice()).chain(body.unwrap_or_default().chunks(PIECE_BYTES));
        let pieces = pieces.map(BufferRef::from).collect();
        let pieces = &self.response.insert(Response { _head: head, pieces }).pieces;
        for (i, piece) in pieces.iter().enumerate() {
            let flags = if i + 1 == pieces.len() { SendFlags::FIN } else { SendFlags::NONE };
            unsafe { stream.send(std::slice::from_ref(piece), flags, null())? };
        }
        Ok(())
    }
}
