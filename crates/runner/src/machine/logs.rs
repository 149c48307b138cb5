//! What a container writes → two files of bounded size, and whoever follows.
//!
//! A line is `TIME STREAM TEXT`. When the file is full it takes the place of the one before it: of endless output the end is kept.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::broadcast;
use tokio::time::Instant;

/// How much of a run's output is kept, in bytes: two files of half of it.
pub const MOST_KEPT: u64 = 10 * 1024 * 1024;
/// What a line may have at most; longer ones are cut into several.
const LONGEST_LINE: usize = 16 * 1024;
/// What is taken of one stream in a while, as it is kept. Who writes faster waits, as for a slow pipe: endless output costs neither
/// the disk nor the other pods their time.
const MOST_IN_A_WHILE: usize = 512 * 1024;
/// That while.
const WHILE: Duration = Duration::from_millis(100);
/// What a line costs beside its text.
const LINE_COST: usize = 40;
/// What is read at once of one that writes little, and of one that writes much: most containers write little, and each has two streams.
const FIRST_PART: usize = 256;
const LARGEST_PART: usize = 16 * 1024;
/// Lines that a follower may be behind.
const FOLLOWED: usize = 1024;

/// Where a line was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
}

impl OutputStream {
    fn as_str(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Error => "stderr",
        }
    }
}

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// When it came.
    pub time: Timestamp,
    /// Without its end.
    pub text: Bytes,
}

/// The log of one run, while it is written.
#[derive(Clone, Debug)]
pub struct OutputLog {
    inner: Arc<OutputInner>,
}

#[derive(Debug)]
struct OutputInner {
    folder: PathBuf,
    half: u64,
    state: Mutex<OutputState>,
}

#[derive(Debug)]
struct OutputState {
    file: File,
    size: u64,
    /// Whether nothing more comes.
    has_ended: bool,
    /// There while somebody follows: it keeps as many lines as a follower may be behind, for each container.
    follow: Option<broadcast::Sender<OutputLine>>,
}

impl OutputLog {
    /// Begins a log in a folder, which is made where it is not there.
    pub fn begin(folder: &Path, most: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = File::options().append(true).create(true).open(current(folder))?;
        let size = file.metadata()?.len();
        let state = Mutex::new(OutputState { file, size, has_ended: false, follow: None });
        Ok(Self { inner: Arc::new(OutputInner { folder: folder.to_owned(), half: most / 2, state }) })
    }

    fn state(&self) -> MutexGuard<'_, OutputState> {
        self.inner.state.lock().expect("nobody panics with it")
    }

    /// Adds a line.
    pub fn add(&self, stream: OutputStream, text: &[u8], now: Timestamp) -> io::Result<()> {
        let mut state = self.state();
        let mut line = format!("{now:.9} {} ", stream.as_str()).into_bytes();
        line.extend_from_slice(text);
        line.push(b'\n');
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if state.size > 0 && state.size + length > self.inner.half {
            fs::rename(current(&self.inner.folder), earlier(&self.inner.folder))?;
            state.file = File::options().append(true).create(true).open(current(&self.inner.folder))?;
            state.size = 0;
        }
        state.file.write_all(&line)?;
        state.size += length;
        if let Some(follow) = &state.follow
            && follow.send(OutputLine { time: now, text: Bytes::copy_from_slice(text) }).is_err()
        {
            // Nobody follows any more.
            state.follow = None;
        }
        Ok(())
    }

    /// Nothing more comes: who follows has reached the end.
    pub fn end(&self) {
        let mut state = self.state();
        (state.has_ended, state.follow) = (true, None);
    }

    /// What stands in it, at most the last lines, and what comes; no line is in both or in neither.
    pub fn open(&self, last: Option<usize>) -> io::Result<(Vec<OutputLine>, Option<broadcast::Receiver<OutputLine>>)> {
        let mut state = self.state();
        let coming = (!state.has_ended).then(|| {
            let follow = state.follow.get_or_insert_with(|| broadcast::channel(FOLLOWED).0);
            follow.subscribe()
        });
        Ok((read_log(&self.inner.folder, last)?, coming))
    }

    /// Adds everything that is read, line by line, until the other end is closed.
    pub async fn take<R: AsyncRead + Unpin>(self, stream: OutputStream, mut from: R, clock: fn() -> Timestamp) {
        let (mut line, mut part, mut pace) = (Vec::new(), vec![0; FIRST_PART], OutputPace::new());
        loop {
            let count = match from.read(&mut part).await {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            let is_full = count == part.len();
            let lines = part[..count].split(|byte| *byte == b'\n').count();
            pace.keep(count + lines * LINE_COST).await;
            for byte in &part[..count] {
                if *byte != b'\n' {
                    line.push(*byte);
                }
                if *byte == b'\n' || line.len() >= LONGEST_LINE {
                    self.add_or_drop(stream, &line, clock());
                    line.clear();
                }
            }
            if is_full && count < LARGEST_PART {
                part = vec![0; count * 2];
            }
        }
        if !line.is_empty() {
            self.add_or_drop(stream, &line, clock());
        }
    }

    /// A container goes on where its output cannot be kept: the disk may be full.
    fn add_or_drop(&self, stream: OutputStream, line: &[u8], now: Timestamp) {
        if let Err(error) = self.add(stream, line, now) {
            tracing::debug!(folder = %self.inner.folder.display(), %error, "Could not keep a line of output");
        }
    }
}

/// How fast a stream is.
struct OutputPace {
    since: Instant,
    taken: usize,
}

impl OutputPace {
    fn new() -> Self {
        Self { since: Instant::now(), taken: 0 }
    }

    /// Waits where too much came in this while.
    async fn keep(&mut self, more: usize) {
        self.taken += more;
        if self.taken > MOST_IN_A_WHILE {
            tokio::time::sleep_until(self.since + WHILE).await;
        }
        if self.since.elapsed() >= WHILE {
            *self = Self { since: Instant::now(), taken: 0 };
        }
    }
}

fn current(folder: &Path) -> PathBuf {
    folder.join("log")
}

fn earlier(folder: &Path) -> PathBuf {
    folder.join("log.1")
}

/// The lines of a run that are kept, at most the last of them.
pub fn read_log(folder: &Path, last: Option<usize>) -> io::Result<Vec<OutputLine>> {
    let most = last.unwrap_or(usize::MAX);
    let mut lines = VecDeque::new();
    for path in [earlier(folder), current(folder)] {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        for line in BufReader::new(file).split(b'\n') {
            // A line that was being written when the machine stopped is none.
            let Some(line) = read_line(&line?) else { continue };
            lines.push_back(line);
            if lines.len() > most {
                lines.pop_front();
            }
        }
    }
    Ok(lines.into())
}

fn read_line(line: &[u8]) -> Option<OutputLine> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let time = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    parts.next()?;
    Some(OutputLine { time, text: Bytes::copy_from_slice(parts.next()?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::at;

    fn texts(lines: &[OutputLine]) -> Vec<String> {
        lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
    }

    fn add(log: &OutputLog, text: &str) {
        log.add(OutputStream::Out, text.as_bytes(), at(1)).unwrap();
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let home = tempfile::tempdir().unwrap();
        let log = OutputLog::begin(home.path(), MOST_KEPT).unwrap();
        for text in ["one", "", "two words  and more ", "\u{e4}"] {
            add(&log, text);
        }

        let lines = read_log(home.path(), None).unwrap();

        assert_eq!(texts(&lines), ["one", "", "two words  and more ", "\u{e4}"]);
        assert_eq!(lines[0].time, at(1));
        assert_eq!(texts(&read_log(home.path(), Some(2)).unwrap()), ["two words  and more ", "\u{e4}"]);
    }

    #[test]
    fn of_endless_output_the_end_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let log = OutputLog::begin(home.path(), 2000).unwrap();
        for number in 0..1000 {
            add(&log, &number.to_string());
        }

        let lines = texts(&read_log(home.path(), None).unwrap());

        let kept: u64 = ["log", "log.1"].iter().map(|name| fs::metadata(home.path().join(name)).unwrap().len()).sum();
        assert!(kept <= 2000, "{kept}");
        assert_eq!(lines.last().map(String::as_str), Some("999"));
        assert!(lines.len() > 20, "{}", lines.len());
    }

    #[tokio::test]
    async fn who_follows_gets_every_line_once_and_then_the_end() {
        let home = tempfile::tempdir().unwrap();
        let log = OutputLog::begin(home.path(), MOST_KEPT).unwrap();
        add(&log, "before");
        let (written, coming) = log.open(None).unwrap();
        add(&log, "after");
        log.end();

        let mut coming = coming.unwrap();
        assert_eq!(texts(&written), ["before"]);
        assert_eq!(texts(&[coming.recv().await.unwrap()]), ["after"]);
        assert_eq!(coming.recv().await, Err(broadcast::error::RecvError::Closed));
        assert!(log.open(None).unwrap().1.is_none());
    }

    #[tokio::test]
    async fn who_writes_faster_than_its_output_is_taken_waits() {
        let home = tempfile::tempdir().unwrap();
        let (log, began) = (OutputLog::begin(home.path(), 4096).unwrap(), Instant::now());
        let text = "x\n".repeat(4 * MOST_IN_A_WHILE / (LINE_COST + 2));

        log.take(OutputStream::Out, text.as_bytes(), || at(2)).await;

        assert!(began.elapsed() >= WHILE * 3, "{:?}", began.elapsed());
        assert_eq!(texts(&read_log(home.path(), Some(1)).unwrap()), ["x"]);
    }

    #[tokio::test]
    async fn output_is_cut_into_lines() {
        let home = tempfile::tempdir().unwrap();
        let log = OutputLog::begin(home.path(), MOST_KEPT).unwrap();
        let long = "x".repeat(LONGEST_LINE + 3);
        let text = format!("one\n\n{long}\nlast");

        log.take(OutputStream::Error, text.as_bytes(), || at(2)).await;

        let lines = texts(&read_log(home.path(), None).unwrap());
        assert_eq!(lines, ["one", "", &long[..LONGEST_LINE], "xxx", "last"]);
    }
}
