//! As much of HTTP/3 (RFC 9114) and of its header compression, QPACK (RFC 9204), as a GET and its answer need.
//!
//! Bytes only: streams are the caller's. QPACK's dynamic table is never used, as neither side's settings allow one.

use crate::Error;

/// How each side's control stream begins: the stream's type, and a SETTINGS frame in which all is as by default.
pub const CONTROL: &[u8] = &[0x00, 0x04, 0x00];

const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// All of a request's stream.
pub fn request(authority: &str, path: &str) -> Vec<u8> {
    let mut block = vec![0, 0, 0xc0 | 17, 0xc0 | 23]; // no dynamic table; :method: GET, :scheme: https
    field(&mut block, 0, authority);
    field(&mut block, 1, path);
    frame(HEADERS, &block)
}

/// What precedes an answer's body: its headers, and the head of the one DATA frame that is the rest of the stream.
pub fn answer(length: usize) -> Vec<u8> {
    let mut block = vec![0, 0, 0xc0 | 25]; // :status: 200
    field(&mut block, 4, &length.to_string()); // content-length
    let mut bytes = frame(HEADERS, &block);
    number(&mut bytes, DATA);
    number(&mut bytes, length as u64);
    bytes
}

pub fn not_found() -> Vec<u8> {
    frame(HEADERS, &[0, 0, 0xc0 | 27])
}

/// The path that a GET request, all of its stream, asks for; None for any other request.
pub fn path(mut stream: &[u8]) -> Option<String> {
    loop {
        let (kind, length) = (take_number(&mut stream)?, take_number(&mut stream)?);
        let content = take(&mut stream, length as usize)?;
        if kind == HEADERS {
            return value(content, ":path")
                .filter(|_| value(content, ":method").as_deref() == Some("GET"));
        }
    }
}

/// The body of an answer of which the size is known, as it arrives.
pub struct Download {
    pub received: usize,
    size: usize,
    answer: Answer,
}

impl Download {
    pub fn new(size: usize) -> Self {
        let answer = Answer::default();
        Self {
            received: 0,
            size,
            answer,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.received >= self.size
    }

    /// Takes what came next on the stream, or None at its end. An error where this cannot become the body any more.
    pub fn take(&mut self, arrived: Option<&[u8]>) -> Result<(), Error> {
        let (received, size) = (self.received, self.size);
        let bytes =
            arrived.ok_or_else(|| format!("the body ended after {received} of {size} bytes"))?;
        self.received += self
            .answer
            .read(bytes)
            .ok_or("the server does not speak HTTP/3")?;
        match self.answer.status.as_deref() {
            None | Some("200") => Ok(()),
            Some(status) => Err(format!("the server answered {status}").into()),
        }
    }
}

/// An answer as it arrives.
#[derive(Default)]
struct Answer {
    status: Option<String>,
    /// The beginning of a frame that is not whole yet.
    begun: Vec<u8>,
    /// How much of a DATA frame is still to come.
    left: usize,
}

impl Answer {
    /// How many bytes of the body are among those that arrived; None where they are not HTTP/3.
    fn read(&mut self, mut arrived: &[u8]) -> Option<usize> {
        let mut body = 0;
        loop {
            let part = self.left.min(arrived.len());
            (body, self.left, arrived) = (body + part, self.left - part, &arrived[part..]);
            if arrived.is_empty() {
                return Some(body);
            }
            // Byte by byte, as few bytes are not of the body.
            self.begun.push(arrived[0]);
            arrived = &arrived[1..];
            let mut frame = &self.begun[..];
            let (Some(kind), Some(length)) = (take_number(&mut frame), take_number(&mut frame))
            else {
                continue;
            };
            if kind == DATA {
                self.left = length as usize;
            } else if frame.len() < length as usize {
                continue;
            } else if kind == HEADERS && self.status.is_none() {
                self.status = Some(value(frame, ":status")?);
            }
            self.begun.clear();
        }
    }
}

fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    number(&mut bytes, kind);
    number(&mut bytes, content.len() as u64);
    bytes.extend(content);
    bytes
}

/// QUIC's number: the first two bits say in how many bytes (1, 2, 4, 8).
fn number(bytes: &mut Vec<u8>, number: u64) {
    match number {
        0..0x40 => bytes.push(number as u8),
        0x40..0x4000 => bytes.extend((number as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => bytes.extend((number as u32 | 0x8000_0000).to_be_bytes()),
        _ => bytes.extend((number | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let rest = 1 << (from.first()? >> 6);
    let bytes = take(from, rest)?;
    Some(
        bytes[1..]
            .iter()
            .fold((bytes[0] & 0x3f).into(), |number, byte| {
                number << 8 | u64::from(*byte)
            }),
    )
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    from.split_off(..length)
}

/// A header whose name is an entry of the static table and whose value is spelt out.
fn field(block: &mut Vec<u8>, name: u8, value: &str) {
    block.push(0x50 | name);
    match value.len() {
        length @ 0..127 => block.push(length as u8),
        length => block.extend([
            127,
            0x80 | (length - 127) as u8,
            ((length - 127) >> 7) as u8,
        ]),
    }
    block.extend(value.as_bytes());
}

/// The value of a header in a HEADERS frame.
fn value(mut block: &[u8], wanted: &str) -> Option<String> {
    let rest = &mut block;
    (prefixed(rest, 8)?, prefixed(rest, 7)?);
    while let Some(&first) = rest.first() {
        let (name, value) = match first {
            0xc0.. => static_entry(prefixed(rest, 6)?),
            0x50..0x60 | 0x70..0x80 => (static_entry(prefixed(rest, 4)?).0, text(rest, 7)?),
            0x20..0x40 => (text(rest, 3)?, text(rest, 7)?),
            _ => return None, // of the dynamic table
        };
        if name == wanted {
            return Some(value);
        }
    }
    None
}

/// Those entries of the static table that this file looks for.
fn static_entry(index: usize) -> (String, String) {
    let (name, value) = match index {
        1 => (":path", "/"),
        17 => (":method", "GET"),
        15..=21 => (":method", "not GET"),
        25 => (":status", "200"),
        27 => (":status", "404"),
        24..=28 | 63..=71 => (":status", "neither 200 nor 404"),
        _ => ("", ""),
    };
    (name.into(), value.into())
}

/// QPACK's number: in the last bits of a byte, and in the bytes after it where these are all ones.
fn prefixed(from: &mut &[u8], bits: u32) -> Option<usize> {
    let ones = (1 << bits) - 1;
    let mut number = usize::from(take(from, 1)?[0]) & ones;
    if number < ones {
        return Some(number);
    }
    for shift in (0..28).step_by(7) {
        let byte = usize::from(take(from, 1)?[0]);
        number += (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A text: its length in the last bits of a byte, and in the bit before them whether it is Huffman-coded.
fn text(from: &mut &[u8], bits: u32) -> Option<String> {
    let is_coded = from.first()? >> bits & 1 == 1;
    let length = prefixed(from, bits)?;
    let bytes = take(from, length)?;
    let mut plain = Vec::new();
    if is_coded {
        httlib_huffman::decode(bytes, &mut plain, httlib_huffman::DecoderSpeed::OneBit).ok()?;
    } else {
        plain.extend(bytes);
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_written() {
        for path_bytes in [1, 126, 127, 300] {
            let asked = "/".repeat(path_bytes);
            assert_eq!(path(&request("server.test:443", &asked)), Some(asked));
        }
        assert_eq!(
            path(b"\x01\x10\0\0\xd1\x51\x0b/index.html"),
            Some("/index.html".into())
        ); // RFC 9204, B.1, with :method: GET
        assert_eq!(path(b"\x01\x10\0\0\xd2\x51\x0b/index.html"), None); // HEAD
        assert_eq!(path(b"\x01\x0f\0\0\x51\x0b/index.html"), None);
        assert_eq!(path(&[1, 3, 0, 0, 0x80]), None);
    }

    #[test]
    fn an_answer_is_read_however_it_is_cut() {
        let bytes = [&[0x21, 2, 7, 7], &answer(70_000)[..], &[0; 70_000]].concat();
        for step in [1, 2, 3, 1200, bytes.len()] {
            let mut answer = Answer::default();
            let body: usize = bytes
                .chunks(step)
                .map(|arrived| answer.read(arrived).unwrap())
                .sum();
            assert_eq!((body, answer.status.as_deref()), (70_000, Some("200")));
        }
        let mut answer = Answer::default();
        assert_eq!(
            (answer.read(&not_found()), answer.status.as_deref()),
            (Some(0), Some("404"))
        );
    }

    #[test]
    fn a_download_is_complete_or_says_why_not() {
        let mut download = Download::new(5);
        download.take(Some(&answer(5))).unwrap();
        download.take(Some(b"123")).unwrap();
        assert!(!download.is_complete());
        let ended = download.take(None).unwrap_err().to_string();
        assert_eq!(ended, "the body ended after 3 of 5 bytes");
        download.take(Some(b"45")).unwrap();
        assert!(download.is_complete());

        let refused = Download::new(5).take(Some(&not_found())).unwrap_err();
        assert_eq!(refused.to_string(), "the server answered 404");
        let garbled = Download::new(5)
            .take(Some(&[1, 3, 0, 0, 0x80]))
            .unwrap_err();
        assert_eq!(garbled.to_string(), "the server does not speak HTTP/3");
    }
}
