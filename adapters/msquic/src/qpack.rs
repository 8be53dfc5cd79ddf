//! As much of QPACK (RFC 9204) as a server without a dynamic table needs: the method and path of a request, and the
//! head of a response. Numbers of static entries are those of its Appendix A.

const PATH: usize = 1; // with the value "/"
const CONTENT_LENGTH: u8 = 4;
const METHODS: std::ops::RangeInclusive<usize> = 15..=21;
const GET: usize = 17;
const STATUS_200: u8 = 25;
const STATUS_404: u8 = 27;

/// The path of a GET request; None for any other request, and for what cannot be decoded.
pub fn requested_path(section: &[u8]) -> Option<String> {
    let mut rest = section;
    let (required_insert_count, _base) = (integer(&mut rest, 8)?, integer(&mut rest, 7)?);
    if required_insert_count != 0 {
        return None;
    }
    let (mut path, mut is_get) = (None, false);
    while let Some(&first) = rest.first() {
        if first & 0b1100_0000 == 0b1100_0000 {
            match integer(&mut rest, 6)? {
                PATH => path = Some(b"/".to_vec()),
                GET => is_get = true,
                _ => {}
            }
        } else if first & 0b1101_0000 == 0b0101_0000 {
            let name = integer(&mut rest, 4)?;
            let value = string(&mut rest, 7)?;
            if name == PATH {
                path = Some(value);
            } else if METHODS.contains(&name) {
                is_get = value == b"GET";
            }
        } else if first & 0b1110_0000 == 0b0010_0000 {
            let name = string(&mut rest, 3)?;
            let value = string(&mut rest, 7)?;
            match name.as_slice() {
                b":path" => path = Some(value),
                b":method" => is_get = value == b"GET",
                _ => {}
            }
        } else {
            return None; // a reference to the dynamic table, which there is not
        }
    }
    path.filter(|_| is_get).and_then(|path| String::from_utf8(path).ok())
}

/// The field section of a response of this many bytes, or of one that there is nothing.
pub fn response(length: Option<usize>) -> Vec<u8> {
    let digits = length.unwrap_or(0).to_string();
    let status = if length.is_some() { STATUS_200 } else { STATUS_404 };
    let mut section = vec![0, 0, 0b1100_0000 | status, 0b0101_0000 | CONTENT_LENGTH, digits.len() as u8];
    section.extend_from_slice(digits.as_bytes());
    section
}

/// An integer of RFC 7541, 5.1, in the last `bits` bits of the first byte and those that follow.
fn integer(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let mask = (1usize << bits) - 1;
    let mut value = take(rest)? as usize & mask;
    if value < mask {
        return Some(value);
    }
    for shift in (0..28).step_by(7) {
        let byte = take(rest)? as usize;
        value += (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A string of RFC 7541, 5.2: the bit before its length says whether it is in Huffman's code.
fn string(rest: &mut &[u8], length_bits: u32) -> Option<Vec<u8>> {
    let is_huffman = *rest.first()? >> length_bits & 1 == 1;
    let length = integer(rest, length_bits)?;
    let (raw, after) = rest.split_at_checked(length)?;
    *rest = after;
    if !is_huffman {
        return Some(raw.to_vec());
    }
    let mut decoded = Vec::new();
    httlib_huffman::decode(raw, &mut decoded, httlib_huffman::DecoderSpeed::FourBits).ok()?;
    Some(decoded)
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (&first, after) = rest.split_first()?;
    *rest = after;
    Some(first)
}
