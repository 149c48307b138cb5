//! What containers wrote, as a runner of pods gives it, and as `kubectl logs` asks for it.
//!
//! A runner gives lines and their times; how many of them, since when and with which prefix is decided here, so that all
//! runners answer alike.

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;

/// A runner of pods that keeps what their containers write.
pub trait PodLogs: Send + Sync {
    /// Opens the log of a container.
    fn open(&self, source: LogSource) -> BoxFuture<'static, Result<PodLog, LogError>>;
}

/// Whose log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSource {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// One of its containers.
    pub container: String,
    /// Of which run.
    pub run: LogRun,
    /// The last lines that are asked for, if not all: others need not be given.
    pub tail_lines: Option<usize>,
}

/// A run of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRun {
    /// The one that runs, or ran last.
    Current,
    /// The one before.
    Previous,
}

/// A container's log.
pub struct PodLog {
    /// What stands in it.
    pub written: Vec<LogLine>,
    /// What is written from now on; it ends with the container. Dropped where nobody follows.
    pub coming: BoxStream<'static, LogLine>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written.
    pub time: Timestamp,
    /// Without the end of line.
    pub text: Bytes,
}

/// Why there is no log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The pod, container or run has none: a sentence for the user.
    #[error("{0}")]
    NotThere(String),
    /// It is there and cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Which lines are wanted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WantedLines {
    pub(crate) follow: bool,
    pub(crate) timestamps: bool,
    pub(crate) since: Option<Timestamp>,
    pub(crate) tail_lines: Option<usize>,
    pub(crate) limit_bytes: Option<usize>,
}

impl WantedLines {
    /// The text that is asked for. The last lines are counted before those that are too old are left out.
    pub(crate) fn text_of(self, log: PodLog) -> BoxStream<'static, Bytes> {
        let PodLog { mut written, coming } = log;
        let most = self.tail_lines.unwrap_or(usize::MAX);
        let tail = written.split_off(written.len().saturating_sub(most));
        let lines = if self.follow { stream::iter(tail).chain(coming).boxed() } else { stream::iter(tail).boxed() };
        let (since, timestamps) = (self.since, self.timestamps);
        let recent = lines.filter(move |line| std::future::ready(since.is_none_or(|since| line.time >= since)));
        let texts = recent.map(move |line| shown(&line, timestamps));
        match self.limit_bytes {
            None => texts.boxed(),
            Some(limit) => limited(texts.boxed(), limit),
        }
    }
}

fn shown(line: &LogLine, timestamps: bool) -> Bytes {
    let mut text = BytesMut::new();
    if timestamps {
        text.extend_from_slice(format!("{:.9} ", line.time).as_bytes());
    }
    text.extend_from_slice(&line.text);
    text.extend_from_slice(b"\n");
    text.freeze()
}

/// Ends as soon as so many bytes were given.
fn limited(texts: BoxStream<'static, Bytes>, limit: usize) -> BoxStream<'static, Bytes> {
    let cut = |(mut texts, left): (BoxStream<'static, Bytes>, usize)| async move {
        if left == 0 {
            return None;
        }
        let text = texts.next().await?;
        let given = text.slice(..text.len().min(left));
        let left = left - given.len();
        Some((given, (texts, left)))
    };
    stream::unfold((texts, limit), cut).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: i64, text: &'static str) -> LogLine {
        LogLine { time: Timestamp::from_second(second).unwrap(), text: Bytes::from_static(text.as_bytes()) }
    }

    async fn read(wanted: WantedLines) -> String {
        let log = PodLog {
            written: vec![line(1, "one"), line(2, "two"), line(3, "three")],
            coming: stream::iter([line(4, "four")]).boxed(),
        };
        let parts: Vec<Bytes> = wanted.text_of(log).collect().await;
        String::from_utf8(parts.concat()).unwrap()
    }

    #[tokio::test]
    async fn what_was_written_is_given_and_what_comes_is_followed() {
        assert_eq!(read(WantedLines::default()).await, "one\ntwo\nthree\n");
        assert_eq!(read(WantedLines { follow: true, ..WantedLines::default() }).await, "one\ntwo\nthree\nfour\n");
    }

    #[tokio::test]
    async fn the_last_lines_are_counted_before_old_ones_are_left_out() {
        let since = Timestamp::from_second(3).ok();

        assert_eq!(read(WantedLines { tail_lines: Some(2), ..WantedLines::default() }).await, "two\nthree\n");
        assert_eq!(read(WantedLines { tail_lines: Some(2), since, ..WantedLines::default() }).await, "three\n");
        assert_eq!(read(WantedLines { tail_lines: Some(0), follow: true, ..WantedLines::default() }).await, "four\n");
    }

    #[tokio::test]
    async fn bytes_are_limited_and_times_are_shown() {
        let times = WantedLines { timestamps: true, tail_lines: Some(1), ..WantedLines::default() };

        assert_eq!(read(WantedLines { limit_bytes: Some(6), ..WantedLines::default() }).await, "one\ntw");
        assert_eq!(read(times).await, "1970-01-01T00:00:03.000000000Z three\n");
    }
}
