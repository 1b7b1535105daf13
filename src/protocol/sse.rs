//! Event streams, read and written.
//!
//! The reader takes any line end (LF, CRLF, CR), any cut between chunks, comments and
//! unknown fields (UPS-01, UPS-02, UPS-04); text is never decoded chunk by chunk.

use memchr::{memchr, memchr2};

/// One event with data. Events without data (priming, comments) are not reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The `event` field; empty means `message`.
    pub kind: String,
    /// The data, lines joined by LF.
    pub data: Vec<u8>,
}

/// An event longer than the reader's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {0} bytes")]
pub struct TooLong(pub usize);

/// Reads a stream as its bytes arrive.
#[derive(Debug)]
pub struct Reader {
    limit: usize,
    line: Vec<u8>,
    kind: String,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    started: bool,
    /// Of the event under way; it counts once the event is complete.
    id: Option<String>,
    /// The id of the last complete event, for resuming.
    pub last_id: Option<String>,
    /// The last `retry` field seen, in milliseconds.
    pub retry_ms: Option<u64>,
}

impl Reader {
    /// A reader that refuses events of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            kind: String::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            started: false,
            id: None,
            last_id: None,
            retry_ms: None,
        }
    }

    /// Forgets what was read of an unfinished event: the stream goes on over another
    /// connection, after the last id.
    pub fn restart(&mut self) {
        self.line.clear();
        self.data.clear();
        self.kind.clear();
        self.id = None;
        (self.has_data, self.after_cr, self.started) = (false, false, false);
    }

    /// Takes the next bytes and hands over each event that they complete.
    ///
    /// # Errors
    /// When an event grows beyond the limit; the stream is of no further use.
    pub fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(Event)) -> Result<(), TooLong> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', chunk) else {
                self.line.extend_from_slice(chunk);
                return self.within_limit();
            };
            self.after_cr = chunk[end] == b'\r';
            self.line.extend_from_slice(&chunk[..end]);
            chunk = &chunk[end + 1..];
            self.within_limit()?;
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.take_line(&line) {
                each(event);
            }
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    /// The event that was under way when the stream ended. A server may forget the empty line
    /// after its last one.
    pub fn finish(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line);
        }
        self.dispatch()
    }

    fn within_limit(&self) -> Result<(), TooLong> {
        if self.line.len() + self.data.len() > self.limit {
            Err(TooLong(self.limit))
        } else {
            Ok(())
        }
    }

    fn take_line(&mut self, mut line: &[u8]) -> Option<Event> {
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            if let Some(id) = self.id.take() {
                self.last_id = Some(id);
            }
            return self.dispatch();
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            // Digits alone; a number of any other form is none, and changes nothing.
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let ms = std::str::from_utf8(value).ok().and_then(|ms| ms.parse().ok());
                self.retry_ms = ms.or(self.retry_ms);
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        self.has_data = false;
        let kind = std::mem::take(&mut self.kind);
        let data = std::mem::take(&mut self.data);
        (!data.is_empty()).then_some(Event { kind, data })
    }
}

/// Keeps a stream alive without meaning anything (HTTP-15).
pub const COMMENT: &[u8] = b": keep-alive\n\n";

/// Appends the event that only gives a client an id to go on from, and a time after which to
/// ask (F31, F32).
pub fn write_priming(id: &str, retry_ms: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("id: {id}\nretry: {retry_ms}\ndata: \n\n").as_bytes());
}

/// Appends one message as an event that can be resumed after. Otherwise as [`write_event`].
pub fn write_event_with_id(id: &str, json: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("id: {id}\n").as_bytes());
    write_event(json, out);
}

/// Appends one message as an event. Line ends inside the JSON stand between tokens, and
/// become further `data` lines.
pub fn write_event(json: &[u8], out: &mut Vec<u8>) {
    out.reserve(json.len() + 24);
    out.extend_from_slice(b"event: message\n");
    for line in json.split(|byte| *byte == b'\n' || *byte == b'\r') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Event, Reader, write_event};

    fn read(stream: &[u8], cut: usize) -> Vec<String> {
        let mut reader = Reader::new(1 << 20);
        let mut events = Vec::new();
        for chunk in stream.chunks(cut.max(1)) {
            let each =
                |event: Event| events.push(String::from_utf8_lossy(&event.data).into_owned());
            reader.push(chunk, each).expect("short events");
        }
        events
    }

    fn check(stream: &str, expect: &[&str]) {
        for cut in [1, 2, 3, 7, 1000] {
            assert_eq!(read(stream.as_bytes(), cut), expect, "cut every {cut} bytes");
        }
    }

    #[test]
    fn ups_01_any_line_end() {
        check("event: message\r\ndata: {}\r\n\r\ndata: 1\r\n\r\n", &["{}", "1"]);
        check("data: {}\n\ndata: 1\n\n", &["{}", "1"]);
        check("data: {}\r\rdata: 1\r\r", &["{}", "1"]);
    }

    #[test]
    fn ups_02_characters_cut_by_chunks() {
        check("data: {\"a\":\"日本🎉\"}\n\n", &["{\"a\":\"日本🎉\"}"]);
    }

    #[test]
    fn ups_04_comments_and_unknown_fields() {
        check(": ping\nretry: 3000\nid: 7\nfoo: bar\ndata:\n\n: x\n\ndata: {}\n\n", &["{}"]);
    }

    #[test]
    fn several_data_lines_are_joined() {
        check("data: {\ndata: }\n\n", &["{\n}"]);
    }

    #[test]
    fn the_last_event_may_lack_its_empty_line() {
        let mut reader = Reader::new(100);
        assert_eq!(reader.push(b"data: {\ndata: }", |_| panic!("not complete")), Ok(()));
        assert_eq!(reader.finish().map(|event| event.data), Some(b"{\n}".to_vec()));
        assert_eq!(reader.finish(), None);
    }

    #[test]
    fn an_event_that_was_cut_is_not_gone_on_from() {
        let mut reader = Reader::new(100);
        let read = reader.push(b"id: 1\ndata: {}\n\nid: 2\ndata: {", |_| ());
        assert_eq!((read, reader.last_id.as_deref()), (Ok(()), Some("1")));
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut reader = Reader::new(100);
        assert!(reader.push(&[b'x'; 101], |_| ()).is_err());
    }

    #[test]
    fn written_events_are_read_back() {
        let mut out = Vec::new();
        write_event(b"{\n \"a\": 1}", &mut out);
        assert_eq!(read(&out, 5), ["{\n \"a\": 1}"]);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(stream in "(data|id|event|: |x|\r|\n|\r\n|é){0,40}", cut in 1usize..9) {
            prop_assert_eq!(read(stream.as_bytes(), cut), read(stream.as_bytes(), usize::MAX));
        }
    }
}
