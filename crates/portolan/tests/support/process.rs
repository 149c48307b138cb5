//! A command that stays: started, read line by line, stopped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::portolan;

/// Longer than anything takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A running command; killed when dropped.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// The first line from here on that contains a text.
    pub fn line_with(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("no line with {text:?} ({error}); these came: {:#?}", self.seen),
            }
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop (SIGTERM) and returns its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.ended()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs").success());
    }

    /// Waits until it has ended, and returns its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        self.child.wait().expect("the process can be waited for").code()
    }

    /// Asks it to stop, where it runs, and gives it some time: what it has started ends with it.
    pub fn end(&mut self) {
        let until = Instant::now() + PATIENCE;
        let mut is_there = matches!(self.child.try_wait(), Ok(None));
        if is_there {
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        }
        while is_there && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
            is_there = matches!(self.child.try_wait(), Ok(None));
        }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process can be killed");
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `portolan sim` on a free port, and its base URL.
pub fn simulator(arguments: &[&str]) -> (Process, String) {
    let mut process = Process::start(portolan().args(["sim", "--listen", "127.0.0.1:0"]).args(arguments));
    let url = process.line_with("Simulated Cloudflare API at ").rsplit(' ').next().expect("an address").to_owned();
    (process, url)
}

/// `portolan up` on free ports with this data directory, not started yet.
pub fn up(data: &Path) -> Command {
    let mut command = portolan();
    command.args([
        "up",
        "--listen",
        "127.0.0.1:0",
        "--sim-listen",
        "127.0.0.1:0",
        "--edge",
        "127.0.0.1:0",
        "--data-dir",
    ]);
    command.arg(data);
    command
}

/// The whole answer of an edge to `GET /` for a name.
pub fn ask_edge(edge: &str, name: &str, headers: &[(&str, &str)]) -> String {
    let mut stream = TcpStream::connect(edge.strip_prefix("http://").expect("a plain address")).expect("it listens");
    let mut request = format!("GET / HTTP/1.0\r\nhost: {name}\r\n");
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    write!(stream, "{request}\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// The body of a plain HTTP GET.
pub fn http_get(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).expect("the server listens");
    write!(stream, "GET /{path} HTTP/1.0\r\nhost: {host}\r\nauthorization: Bearer test\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.split_once("\r\n\r\n").map_or(answer.clone(), |(_, body)| body.to_owned())
}

/// The body of the answer to a plain HTTP PUT of JSON.
pub fn http_put(url: &str, body: &str) -> String {
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).expect("the server listens");
    let length = body.len();
    write!(
        stream,
        "PUT /{path} HTTP/1.0\r\nhost: {host}\r\nauthorization: Bearer test\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.split_once("\r\n\r\n").map_or(answer.clone(), |(_, body)| body.to_owned())
}

/// Asks again and again until the answer is there.
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not within {PATIENCE:?}: {what}");
}
