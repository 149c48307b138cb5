//! A pseudo terminal: what a program takes for a terminal, and the other end of it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The end that is not the program's.
#[derive(Debug)]
pub struct Terminal {
    master: OwnedFd,
    path: PathBuf,
}

impl Terminal {
    /// A new one.
    pub fn open() -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        Ok(Self { path: PathBuf::from(std::ffi::OsString::from_vec(name.into_bytes())), master })
    }

    /// What the program opens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what the program writes, and writes what it reads. Reading ends with an error once nobody has the program's end open.
    pub fn file(&self) -> io::Result<File> {
        Ok(File::from(self.master.try_clone()?))
    }

    /// Tells the program how large it is.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        Ok(tcsetwinsize(&self.master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?)
    }
}
