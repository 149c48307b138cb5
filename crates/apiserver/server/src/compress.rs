//! An answer → the same one compressed, where it is long and the client takes it so.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{self, HeaderMap};

use crate::answer::{Answer, AnswerContent};

/// Answers up to this long are not worth it.
const THRESHOLD_BYTES: usize = 128 * 1024;

impl Answer {
    /// Compresses a long answer. Watches are sent as they come, and documents that clients keep stay what their `ETag`
    /// says.
    pub(crate) async fn compressed(mut self, request: &HeaderMap) -> Self {
        if let AnswerContent::Full(text) = &self.body
            && text.len() > THRESHOLD_BYTES
            && self.etag.is_none()
            && takes_gzip(request)
            && let Some(compressed) = compressed_apart(text.clone()).await
        {
            self.body = AnswerContent::Full(compressed);
            self.encoding = Some("gzip");
        }
        self
    }
}

/// Whether the client named `gzip`. Like the real server, weights are not read.
fn takes_gzip(request: &HeaderMap) -> bool {
    let named = request.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(',').any(|token| token.trim() == "gzip")
}

/// Compresses on a thread that holds nobody up; `None` where the server is stopping.
async fn compressed_apart(text: Bytes) -> Option<Bytes> {
    tokio::task::spawn_blocking(move || gzip(&text)).await.ok().and_then(Result::ok)
}

fn gzip(text: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 8), Compression::fast());
    encoder.write_all(text)?;
    encoder.finish().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, http::HeaderValue::from_static(value))])
    }

    fn long() -> Answer {
        Answer::json(http::StatusCode::OK, vec![b'x'; THRESHOLD_BYTES + 1])
    }

    #[test]
    fn gzip_must_be_named() {
        assert!(takes_gzip(&asking("gzip")));
        assert!(takes_gzip(&asking("deflate, gzip")));
        for other in ["", "*", "identity", "GZIP", "gzip;q=0.5"] {
            assert!(!takes_gzip(&asking(other)), "{other}");
        }
    }

    #[tokio::test]
    async fn only_long_answers_that_are_no_kept_documents_are_compressed() {
        let short = Answer::json(http::StatusCode::OK, vec![b'x'; THRESHOLD_BYTES]);
        let kept = Answer { etag: Some("\"1\"".to_owned()), ..long() };

        assert_eq!(long().compressed(&asking("gzip")).await.encoding, Some("gzip"));
        assert_eq!(long().compressed(&asking("identity")).await.encoding, None);
        assert_eq!(short.compressed(&asking("gzip")).await.encoding, None);
        assert_eq!(kept.compressed(&asking("gzip")).await.encoding, None);
    }
}
