//! Encoded bodies, decoded as they arrive (P26, UPS-05). None is asked for: a server on the
//! same network gains nothing by it, and one that encodes its streams tends to hold events
//! back. Some encode all the same.

use std::io::{self, Write};

use crate::failure::Failure;

/// Where decoded bytes gather; refuses more than a limit at a time, since a few encoded bytes
/// can stand for gigabytes.
#[derive(Debug)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    limit: usize,
}

/// Decodes one body.
pub(crate) enum Decoder {
    Gzip(Box<flate2::write::MultiGzDecoder<Gathered>>),
    Zlib(Box<flate2::write::ZlibDecoder<Gathered>>),
    /// What some servers send as `deflate`.
    Deflate(Box<flate2::write::DeflateDecoder<Gathered>>),
    /// `deflate`, before its first byte has told which.
    Undecided(Gathered),
    Brotli(Box<brotli_decompressor::DecompressorWriter<Gathered>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Gathered>>),
}

impl Write for Gathered {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.limit {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// The decoder for a `Content-Encoding`; `None` for a body that is not encoded. Hands over
    /// at most `limit` bytes at a time.
    ///
    /// # Errors
    /// Names an encoding that is not understood.
    pub(crate) fn of(encoding: &str, limit: usize) -> Result<Option<Self>, Failure> {
        let out = Gathered { bytes: Vec::new(), limit };
        let unusable = |error: io::Error| Failure::Garbage(error.to_string());
        Ok(Some(match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => return Ok(None),
            "gzip" | "x-gzip" => Self::Gzip(Box::new(flate2::write::MultiGzDecoder::new(out))),
            "deflate" => Self::Undecided(out),
            "br" => {
                Self::Brotli(Box::new(brotli_decompressor::DecompressorWriter::new(out, 16 << 10)))
            }
            "zstd" => {
                Self::Zstd(Box::new(zstd::stream::write::Decoder::new(out).map_err(unusable)?))
            }
            other => {
                let other: String = other.chars().take(40).collect();
                let why = format!(
                    "its body is encoded as `{other}`; gzip, deflate, br and zstd are understood"
                );
                return Err(Failure::Garbage(why));
            }
        }))
    }

    /// Decodes the next bytes as far as they go.
    ///
    /// # Errors
    /// When they cannot be decoded, or stand for too much.
    pub(crate) fn push(&mut self, encoded: &[u8]) -> Result<Vec<u8>, Failure> {
        self.decide(encoded);
        let written = match self {
            Self::Gzip(decoder) => decoder.write_all(encoded).and_then(|()| decoder.flush()),
            Self::Zlib(decoder) => decoder.write_all(encoded).and_then(|()| decoder.flush()),
            Self::Deflate(decoder) => decoder.write_all(encoded).and_then(|()| decoder.flush()),
            Self::Undecided(_) => Ok(()),
            Self::Brotli(decoder) => decoder.write_all(encoded).and_then(|()| decoder.flush()),
            Self::Zstd(decoder) => decoder.write_all(encoded).and_then(|()| decoder.flush()),
        };
        let limit = self.out().limit;
        written.map_err(|error| match error.kind() {
            io::ErrorKind::OutOfMemory => Failure::TooLarge(limit),
            _ => Failure::Garbage(format!("its body cannot be decoded: {error}")),
        })?;
        Ok(std::mem::take(&mut self.out().bytes))
    }

    /// Tells zlib, which the word `deflate` means, from the bare stream by the first byte: the
    /// low half of zlib's is always 8.
    fn decide(&mut self, encoded: &[u8]) {
        if let (Self::Undecided(out), Some(first)) = (&mut *self, encoded.first()) {
            let out = Gathered { bytes: Vec::new(), limit: out.limit };
            *self = if first & 0x0f == 8 {
                Self::Zlib(Box::new(flate2::write::ZlibDecoder::new(out)))
            } else {
                Self::Deflate(Box::new(flate2::write::DeflateDecoder::new(out)))
            };
        }
    }

    fn out(&mut self) -> &mut Gathered {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
            Self::Undecided(out) => out,
            Self::Brotli(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;

    use super::Decoder;
    use crate::failure::Failure;

    const TEXT: &[u8] = "data: {\"x\":\"\u{65e5}\u{672c}\"}\n\n".as_bytes();

    fn decoded(encoding: &str, encoded: &[u8]) -> Vec<u8> {
        let mut decoder = Decoder::of(encoding, 1 << 20).unwrap().unwrap();
        let mut out = Vec::new();
        for byte in encoded.chunks(1) {
            out.extend(decoder.push(byte).unwrap());
        }
        out
    }

    #[test]
    fn ups_05_every_encoding_comes_through_byte_by_byte() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(TEXT).unwrap();
        assert_eq!(decoded("GZIP", &gzip.finish().unwrap()), TEXT);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(TEXT).unwrap();
        assert_eq!(decoded("deflate", &zlib.finish().unwrap()), TEXT);
        let mut bare = flate2::write::DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(TEXT).unwrap();
        assert_eq!(decoded("deflate", &bare.finish().unwrap()), TEXT);
        assert_eq!(decoded("zstd", &zstd::encode_all(TEXT, 1).unwrap()), TEXT);
        // Brotli of "hi": there is no encoder among the packages.
        assert_eq!(decoded("br", &[0x8b, 0x00, 0x80, b'h', b'i', 0x03]), b"hi");
    }

    #[test]
    fn a_flushed_event_comes_out_before_the_end() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(TEXT).unwrap();
        gzip.flush().unwrap();
        let mut decoder = Decoder::of("gzip", 1 << 20).unwrap().unwrap();
        assert_eq!(decoder.push(gzip.get_ref()).unwrap(), TEXT);
    }

    #[test]
    fn what_cannot_be_decoded_is_named() {
        assert!(Decoder::of("identity", 1).unwrap().is_none());
        assert!(Decoder::of("", 1).unwrap().is_none());
        let Err(Failure::Garbage(why)) = Decoder::of("snappy", 1) else { panic!("understood") };
        assert!(why.contains("`snappy`"), "{why}");
        let mut decoder = Decoder::of("gzip", 1 << 20).unwrap().unwrap();
        assert!(matches!(decoder.push(b"no gzip at all"), Err(Failure::Garbage(_))));
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..64 {
            gzip.write_all(&[0; 1 << 16]).unwrap();
        }
        let mut decoder = Decoder::of("gzip", 1 << 20).unwrap().unwrap();
        let refused = decoder.push(&gzip.finish().unwrap());
        assert!(matches!(refused, Err(Failure::TooLarge(_))));
    }
}
