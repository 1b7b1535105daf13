//! Event streams as the HTML standard says that they are read, line by line on the whole text,
//! and the reader beside that.

use mcpm_protocol::sse::Reader;

/// What streams are made of.
pub(crate) const PARTS: [&[u8]; 22] = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"data",
    b"data:",
    b"data: {\"a\":1}",
    b"data:  x",
    b"event: e",
    b"event",
    b"id: 7",
    b"id:\0",
    b"id",
    b"retry: 30",
    b"retry: +5",
    b"retry: x",
    b": note",
    b":",
    b"\xef\xbb\xbf",
    b"\xc3\xa9",
    b"\xff",
    b"other: x",
];

/// A limit that no short stream meets, and one that some do.
const LIMITS: [usize; 2] = [1 << 20, 24];

#[derive(Debug, Default, PartialEq)]
struct Read {
    events: Vec<(String, Vec<u8>)>,
    last_id: Option<String>,
    retry_ms: Option<u64>,
}

/// Reads the stream both ways, whole and cut again and again after that many bytes; panics
/// where they do not agree.
pub(crate) fn check(stream: &[u8], cuts: &[usize]) {
    let expected = expected(stream);
    for limit in LIMITS {
        let (whole, fits) = read(stream, &[usize::MAX], limit);
        let (cut, cut_fits) = read(stream, cuts, limit);
        assert_eq!((&whole.events, fits), (&cut.events, cut_fits), "cut after {cuts:?}");
        if fits {
            assert_eq!(whole, expected);
            assert_eq!(cut, expected, "cut after {cuts:?}");
        }
        assert!(expected.events.starts_with(&whole.events));
        assert!(whole.events.iter().all(|(_, data)| data.len() <= limit));
        assert!(fits || limit == LIMITS[1] || stream.len() > limit);
    }
}

/// The reader's view, and whether it stayed within its limit.
fn read(mut stream: &[u8], cuts: &[usize], limit: usize) -> (Read, bool) {
    let mut reader = Reader::new(limit);
    let mut events = Vec::new();
    let mut fits = true;
    for cut in cuts.iter().cycle() {
        let (chunk, rest) = stream.split_at((*cut).clamp(1, stream.len().max(1)).min(stream.len()));
        fits = reader.push(chunk, |event| events.push((event.kind, event.data))).is_ok();
        stream = rest;
        if stream.is_empty() || !fits {
            break;
        }
    }
    (Read { events, last_id: reader.last_id.clone(), retry_ms: reader.retry_ms }, fits)
}

fn expected(stream: &[u8]) -> Read {
    let mut read = Read::default();
    let (mut kind, mut data, mut id) = (String::new(), Vec::<u8>::new(), None);
    for line in lines(stream) {
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = String::from_utf8_lossy(value).into_owned();
        match field {
            b"" if line.is_empty() => {
                // An event without data, or with empty data alone, says nothing in MCP.
                if data.pop().is_some() && !data.is_empty() {
                    read.events.push((kind.clone(), data.clone()));
                }
                read.last_id = id.take().or(read.last_id);
                kind.clear();
                data.clear();
            }
            b"data" => {
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            b"event" => kind = text,
            b"id" if !value.contains(&0) => id = Some(text),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                read.retry_ms = text.parse().ok().or(read.retry_ms);
            }
            _ => {}
        }
    }
    read
}

/// The complete lines.
fn lines(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![Vec::new()];
    let mut before = 0;
    for &byte in stream {
        match byte {
            b'\n' if before == b'\r' => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            _ => lines.last_mut().expect("there is always one").push(byte),
        }
        before = byte;
    }
    lines.pop();
    if let Some(first) = lines.first_mut()
        && first.starts_with(b"\xef\xbb\xbf")
    {
        first.drain(..3);
    }
    lines
}
