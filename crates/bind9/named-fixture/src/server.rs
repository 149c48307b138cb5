//! A configuration → a running named; it ends when the value is dropped, by its process id alone.

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use crate::{configuration::NamedConfiguration, programs::programs};

/// named listens for the DNS on addresses that an interface has, and loopback has one alone; so every server has ports of its own,
/// below those that systems give to connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// How long a server may take to begin or to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running named.
#[derive(Debug)]
pub struct NamedServer {
    folder: TempDir,
    dns: u16,
    control: u16,
    configuration: NamedConfiguration,
    child: Option<Child>,
}

impl NamedServer {
    /// Starts a server and waits until it serves; nothing where there is no named.
    ///
    /// # Panics
    /// When it does not come up: then its log is in the message.
    pub fn start(configuration: NamedConfiguration) -> Option<Self> {
        programs()?;
        let folder = tempfile::Builder::new().prefix("named-").tempdir().expect("a temporary folder can be made");
        for (name, content) in configuration.files() {
            fs::write(folder.path().join(name), content).expect("the server's folder can be written");
        }
        let [dns, control] = [free_port(), free_port()];
        let mut server = Self { folder, dns, control, configuration, child: None };
        server.start_again();
        Some(server)
    }

    /// Where it answers to the DNS.
    pub fn dns(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.dns).into()
    }

    /// Where its control channel is.
    pub fn control(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.control).into()
    }

    /// The folder that it works in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it has logged since it was last started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Writes another configuration, which the server reads when it is told to, or when it is started again.
    pub fn write_configuration(&mut self, configuration: NamedConfiguration) {
        self.configuration = configuration;
        let text = self.configuration.render(self.folder(), self.dns(), self.control());
        fs::write(self.folder().join("named.conf"), text).expect("the server's folder can be written");
    }

    /// Starts it again after it ended, on the same address and in the same folder, and waits until it serves.
    ///
    /// # Panics
    /// When it does not come up: then its log is in the message.
    pub fn start_again(&mut self) {
        self.kill();
        self.write_configuration(self.configuration.clone());
        let log = File::create(self.log_file()).expect("the server's folder can be written");
        let child = self
            .program()
            .arg("-g")
            .arg("-c")
            .arg(self.folder().join("named.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.expect("named can be run"));
        self.wait_until_it_serves();
    }

    /// Ends it as a person would (SIGTERM) and waits for that.
    pub fn stop(&mut self) {
        self.signal(Signal::TERM);
        let ended =
            self.child.as_mut().is_none_or(|child| until(PATIENCE, || child.try_wait().ok().flatten()).is_some());
        if !ended {
            self.kill();
        }
        self.child = None;
    }

    /// Ends it at once (SIGKILL).
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _waited: io::Result<ExitStatus> = child.wait();
        }
    }

    /// Has it stand still, connections and all (SIGSTOP), and waits until it does: a server that hangs.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        if let Some(id) = self.id() {
            let _stopped = waitpid(Some(id), WaitOptions::UNTRACED);
        }
    }

    /// Has it go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id() {
            let _gone = kill_process(id, signal);
        }
    }

    /// named, or faketime with it: both become it, so that the process id is named's own.
    fn program(&self) -> Command {
        let folder = programs().expect("looked for when it was first started");
        let named = folder.join("named");
        let Some(clock) = &self.configuration.clock else { return Command::new(named) };
        let mut command = Command::new(folder.join("faketime"));
        command.arg("-f").arg(clock).arg(named);
        command
    }

    fn id(&self) -> Option<Pid> {
        self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok()).and_then(Pid::from_raw)
    }

    fn log_file(&self) -> PathBuf {
        self.folder().join("named.log")
    }

    fn wait_until_it_serves(&mut self) {
        let started = until(PATIENCE, || {
            let log = self.log();
            let failed =
                ["could not listen", "address in use", "exiting (due to"].iter().any(|words| log.contains(words));
            (failed || log.lines().any(|line| line.ends_with(" running"))).then_some(!failed)
        });
        assert!(started == Some(true), "named at {} does not serve:\n{}", self.dns(), self.log());
    }
}

impl Drop for NamedServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody has: the first free one, beginning at another place in each process so that two do not try the same ones.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let width = u32::from(PORTS.end - PORTS.start);
    let begin = std::process::id().wrapping_mul(97);
    let port = |number: u32| PORTS.start + u16::try_from(number % width).expect("it is below the count of ports");
    let is_free = |port: &u16| {
        let address = (Ipv4Addr::LOCALHOST, *port);
        TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
    };
    let mut tried = (0..width).map(|_| port(begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))));
    tried.find(is_free).expect("one of twelve thousand ports is free")
}

/// Asks until there is something, for as long as is said.
pub(crate) fn until<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let found = look();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
