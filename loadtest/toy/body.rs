//! The three bodies the toy sends. A type of its own, because a boxed body costs an allocation and
//! a virtual call in each answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// What follows the head of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// Sent with a content length.
    Whole(Option<Bytes>),
    /// Sent in chunks, then ended: how an event stream of one message looks.
    Streamed(Option<Bytes>),
    /// One chunk, then open until the client goes.
    Open(Option<Bytes>),
}

impl Body {
    /// A body of known length; it may be empty.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// A chunked body that ends.
    pub(crate) fn streamed(bytes: Bytes) -> Self {
        Self::Streamed(Some(bytes))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) | Self::Streamed(bytes) => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            // Pending without a waker is meant: hyper itself watches for the end of the connection.
            Self::Open(bytes) => match bytes.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None) | Self::Streamed(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Streamed(_) | Self::Open(_) => SizeHint::default(),
        }
    }
}
