//! The head of requests to one server, kept as text that is ready to be sent.

use bytes::Bytes;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Path and standing headers.
#[derive(Clone)]
pub(crate) struct Head {
    path: String,
    headers: HeaderMap,
    /// The standing headers as they go out.
    lines: Vec<u8>,
}

impl Head {
    /// `path` goes out as it is: visible ASCII, path and query.
    pub(crate) fn new(path: String) -> Self {
        Self { path, headers: HeaderMap::new(), lines: Vec::new() }
    }

    /// Adds a standing header, in the place of an earlier one of that name.
    pub(crate) fn insert(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.insert(name, value);
        self.lines.clear();
        for (name, value) in &self.headers {
            write_line(name.as_str(), value.as_bytes(), &mut self.lines);
        }
    }

    /// A whole request, head and body in one piece, so that it can go out in one write.
    pub(crate) fn request(
        &self,
        method: &Method,
        more: &[(HeaderName, HeaderValue)],
        body: &str,
    ) -> Bytes {
        let mut out = Vec::with_capacity(self.lines.len() + body.len() + 320);
        out.extend_from_slice(method.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.path.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        out.extend_from_slice(&self.lines);
        if *method == Method::POST {
            out.extend_from_slice(b"accept: application/json, text/event-stream\r\n");
            out.extend_from_slice(b"content-type: application/json\r\n");
            write_line("content-length", body.len().to_string().as_bytes(), &mut out);
        } else if *method == Method::GET {
            out.extend_from_slice(b"accept: text/event-stream\r\n");
        }
        for (name, value) in more {
            write_line(name.as_str(), value.as_bytes(), &mut out);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body.as_bytes());
        Bytes::from(out)
    }
}

fn write_line(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use http::Method;
    use http::header::{HOST, HeaderName, HeaderValue};

    use super::Head;

    #[test]
    fn a_request_is_one_piece() {
        let mut head = Head::new("/mcp/?key=a%2F".into());
        head.insert(HOST, HeaderValue::from_static("old"));
        head.insert(HOST, HeaderValue::from_static("h:1"));
        let more = [(HeaderName::from_static("mcp-name"), HeaderValue::from_static("x"))];
        assert_eq!(
            head.request(&Method::POST, &more, "{}"),
            "POST /mcp/?key=a%2F HTTP/1.1\r\nhost: h:1\r\naccept: application/json, \
             text/event-stream\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\
             mcp-name: x\r\n\r\n{}"
        );
        assert_eq!(
            head.request(&Method::DELETE, &[], ""),
            "DELETE /mcp/?key=a%2F HTTP/1.1\r\nhost: h:1\r\n\r\n"
        );
    }
}
