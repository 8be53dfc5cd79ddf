//! As much of HTTP/3 (RFC 9114) as a server of files needs.

use crate::qpack;

const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// What a server's control stream (type 0) begins with: SETTINGS (type 4), of which it has none.
pub const CONTROL_STREAM: &[u8] = &[0, 4, 0];

/// The path of a GET request, from all that came on its stream.
pub fn requested_path(stream: &[u8]) -> Option<String> {
    let mut rest = stream;
    loop {
        let (kind, length) = (number(&mut rest)?, number(&mut rest)?);
        let (payload, after) = rest.split_at_checked(length.try_into().ok()?)?;
        if kind == HEADERS {
            return qpack::requested_path(payload);
        }
        rest = after; // frames of unknown types are to be ignored
    }
}

/// All of a response that comes before its body.
pub fn response_head(length: Option<usize>) -> Vec<u8> {
    let section = qpack::response(length);
    let mut head = Vec::new();
    put_number(&mut head, HEADERS);
    put_number(&mut head, section.len() as u64);
    head.extend_from_slice(&section);
    if let Some(length @ 1..) = length {
        put_number(&mut head, DATA);
        put_number(&mut head, length as u64);
    }
    head
}

/// A variable-length integer of RFC 9000, 16.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let size = 1usize << (rest.first()? >> 6);
    let (bytes, after) = rest.split_at_checked(size)?;
    *rest = after;
    let value = bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    Some(value & (u64::MAX >> (66 - 8 * size)))
}

fn put_number(to: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => to.push(value as u8),
        0x40..0x4000 => to.extend((value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => to.extend((value as u32 | 0x8000_0000).to_be_bytes()),
        _ => to.extend((value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}
