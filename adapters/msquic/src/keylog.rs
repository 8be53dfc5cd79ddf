//! TLS secrets in the format of NSS, where SSLKEYLOGFILE names a file. msquic fills in a table that it is given.

use std::fs::File;
use std::io::Write;
use std::mem::{size_of, zeroed};

use msquic::ffi::{QUIC_PARAM_CONN_TLS_SECRETS, QUIC_TLS_SECRETS};
use msquic::{Api, Connection, Status};

/// A connection's table; it must outlive the handshake.
pub type Secrets = Option<Box<QUIC_TLS_SECRETS>>;

/// Ask for a connection's secrets, if the user does.
pub fn ask(connection: &Connection) -> Result<Secrets, Status> {
    if std::env::var_os("SSLKEYLOGFILE").is_none() {
        return Ok(None);
    }
    let secrets: Box<QUIC_TLS_SECRETS> = Box::new(unsafe { zeroed() });
    let (size, table) = (size_of::<QUIC_TLS_SECRETS>() as u32, &raw const *secrets);
    unsafe { Api::set_param(connection.as_raw(), QUIC_PARAM_CONN_TLS_SECRETS, size, table.cast())? };
    Ok(Some(secrets))
}

/// Once the handshake is done.
pub fn write(secrets: &QUIC_TLS_SECRETS) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let length = secrets.SecretLength as usize;
    let lines: String = [
        ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", &secrets.ClientHandshakeTrafficSecret),
        ("SERVER_HANDSHAKE_TRAFFIC_SECRET", &secrets.ServerHandshakeTrafficSecret),
        ("CLIENT_TRAFFIC_SECRET_0", &secrets.ClientTrafficSecret0),
        ("SERVER_TRAFFIC_SECRET_0", &secrets.ServerTrafficSecret0),
    ]
    .iter()
    .map(|(label, secret)| format!("{label} {} {}\n", hex(&secrets.ClientRandom), hex(&secret[..length])))
    .collect();
    let path = std::env::var_os("SSLKEYLOGFILE").unwrap_or_default();
    let written =
        File::options().create(true).append(true).open(path).and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written {
        eprintln!("cannot write SSLKEYLOGFILE: {error}");
    }
}
