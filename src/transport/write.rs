//! Writes a request, and hears a server that answers before it has read all of it (UPS-16).

use std::io::{Error, ErrorKind};

use pingora_core::protocols::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longest status line that is looked for.
const LINE: usize = 1024;

/// Why a request did not go out whole.
pub(crate) enum Unsent {
    /// The connection broke.
    Lost(Error),
    /// The server answered with this status and read no further.
    Answered(u16),
}

/// Writes all of a request.
///
/// # Errors
/// When the server does not take it.
pub(crate) async fn whole(stream: &mut Stream, request: &[u8]) -> Result<(), Unsent> {
    // Nearly every request goes out at once; only what does not needs an ear meanwhile.
    let written = stream.write(request).await.map_err(Unsent::Lost)?;
    if let Some(rest) = request.get(written..).filter(|rest| !rest.is_empty()) {
        Box::pin(listening(stream, rest)).await?;
    }
    stream.flush().await.map_err(Unsent::Lost)
}

/// Writes while it looks for an answer.
async fn listening(stream: &mut Stream, rest: &[u8]) -> Result<(), Unsent> {
    let (mut from, mut to) = tokio::io::split(stream);
    let mut answer = Vec::new();
    let written = {
        let mut writing = std::pin::pin!(to.write_all(rest));
        tokio::select! {
            biased;
            written = &mut writing => written,
            read = from.read_buf(&mut answer) => match read {
                Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => Err(ErrorKind::ConnectionAborted.into()),
                Err(error) => Err(error),
            },
        }
    };
    let Err(error) = written else { return Ok(()) };
    // Also what was said before a connection broke under our hands.
    loop {
        match status(&answer) {
            Some(status) => return Err(Unsent::Answered(status)),
            None if answer.len() >= LINE => return Err(Unsent::Lost(error)),
            None => match from.read_buf(&mut answer).await {
                Ok(0) | Err(_) => return Err(Unsent::Lost(error)),
                Ok(_) => {}
            },
        }
    }
}

/// The status of an answer of which at least the first line is here.
fn status(answer: &[u8]) -> Option<u16> {
    let line =
        answer.split(|byte| *byte == b'\n').next().filter(|line| line.len() < answer.len())?;
    let line = std::str::from_utf8(line).ok()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.trim_end().parse().ok()
}
