//! Addresses of pods → addresses that the loopback interface carries, each with a label that says whose it is.
//!
//! Any address of 127.0.0.0/8 can be listened on without this. Programs that listen on what interfaces carry only (`named`
//! does) need it.

pub mod message;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, recv, sendto, socket_with};

use crate::machine::leftovers::process_entry;
use message::{KernelAnswer, LabelledAddress};

/// What the label of every address begins with that a runner added.
pub const LABEL: &str = "lo:ptl";
const INTERFACE: &str = "lo";
/// Answers that are read for one question at most.
const MOST_READS: usize = 10_000;
/// Digits of a process and of when it was born, in a label of at most 15 letters.
const PROCESS_DIGITS: usize = 5;
const BORN_DIGITS: usize = 4;

/// What became of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarryOutcome {
    /// The interface carries it.
    Carried,
    /// Somebody else had it carried before.
    Taken,
    /// This process may not change interfaces.
    NotAllowed,
}

/// The loopback interface, for one process.
#[derive(Clone, Debug)]
pub struct Loopback {
    interface: u32,
    label: String,
}

impl Loopback {
    /// The interface, for this process.
    pub fn open() -> io::Result<Self> {
        let interface = netdevice::name_to_index(&socket()?, INTERFACE)?;
        let process = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        let born = process_entry(process).map_or(0, |entry| entry.born);
        Ok(Self { interface, label: label(process, born) })
    }

    /// Whether this process may add addresses. It is found out by taking one away that nobody has.
    pub fn may_change(&self) -> io::Result<bool> {
        match ask(&message::remove(self.interface, Ipv4Addr::new(127, 77, 255, 255)))?.as_slice() {
            [KernelAnswer::Outcome(code)] if is(*code, rustix::io::Errno::PERM) => Ok(false),
            _ => Ok(true),
        }
    }

    /// Has the interface carry an address.
    pub fn carry(&self, address: Ipv4Addr) -> io::Result<CarryOutcome> {
        match outcome(&message::add(self.interface, address, &self.label))? {
            0 => Ok(CarryOutcome::Carried),
            code if is(code, rustix::io::Errno::EXIST) => Ok(CarryOutcome::Taken),
            code if is(code, rustix::io::Errno::PERM) => Ok(CarryOutcome::NotAllowed),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Takes an address away; one that is not there is none to take.
    pub fn drop_address(&self, address: Ipv4Addr) -> io::Result<()> {
        match outcome(&message::remove(self.interface, address))? {
            0 => Ok(()),
            code if is(code, rustix::io::Errno::ADDRNOTAVAIL) => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// What the interface carries that a runner added.
    pub fn carried(&self) -> io::Result<Vec<LabelledAddress>> {
        let answers = ask(&message::list())?;
        let ours = answers.into_iter().filter_map(|answer| match answer {
            KernelAnswer::Address { interface, address } if interface == self.interface => Some(address),
            KernelAnswer::Address { .. } | KernelAnswer::Outcome(_) | KernelAnswer::Done => None,
        });
        Ok(ours.filter(|one| one.label.starts_with(LABEL)).collect())
    }

    /// Takes away what runners left that are gone; gives back how many addresses that were.
    pub fn drop_leftovers(&self) -> io::Result<usize> {
        let mut dropped = 0;
        for left in self.carried()?.into_iter().filter(|one| !is_of_the_living(&one.label)) {
            self.drop_address(left.address)?;
            dropped += 1;
        }
        Ok(dropped)
    }
}

fn is(code: i32, error: rustix::io::Errno) -> bool {
    code == error.raw_os_error()
}

/// The label of a process: its number, and when it was born, so that a number that was given anew is another one.
fn label(process: i32, born: u64) -> String {
    let process = digits(u64::try_from(process).unwrap_or(0), PROCESS_DIGITS);
    format!("{LABEL}{process}{}", digits(born, BORN_DIGITS))
}

/// The last digits of a number, to the base of 36.
fn digits(number: u64, count: usize) -> String {
    let mut digits = vec![0; count];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::try_from(rest % 36).expect("less than 36")];
        rest /= 36;
    }
    digits.into_iter().map(char::from).collect()
}

/// Whether the process lives that a label names. One that no runner of this sort wrote is nobody's.
fn is_of_the_living(written: &str) -> bool {
    let Some(number) = written.strip_prefix(LABEL).and_then(|rest| rest.get(..PROCESS_DIGITS)) else { return false };
    let process = i32::from_str_radix(number, 36).ok();
    let entry = process.and_then(process_entry).filter(|entry| !entry.is_dead);
    entry.is_some_and(|entry| label(entry.process, entry.born) == written)
}

fn socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// The number of the error of a change; 0 where there is none.
fn outcome(question: &[u8]) -> io::Result<i32> {
    let outcome = ask(question)?.into_iter().find_map(|answer| match answer {
        KernelAnswer::Outcome(code) => Some(code),
        KernelAnswer::Address { .. } | KernelAnswer::Done => None,
    });
    outcome.ok_or_else(|| io::Error::other("the kernel did not answer"))
}

/// Asks the kernel, and reads until its last word. It answers at once.
fn ask(question: &[u8]) -> io::Result<Vec<KernelAnswer>> {
    let socket = socket()?;
    sendto(&socket, question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answers = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    for _ in 0..MOST_READS {
        let (length, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT)?;
        let read = message::read(&buffer[..length]);
        let is_last = read.iter().any(|answer| matches!(answer, KernelAnswer::Outcome(_) | KernelAnswer::Done));
        answers.extend(read);
        if is_last {
            return Ok(answers);
        }
    }
    Err(io::Error::other("the kernel's answer has no end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_as_long_as_the_kernel_takes_and_names_one_process() {
        assert_eq!(label(4_194_304, 1), "lo:ptl2hwcg0001");
        assert_ne!(label(7, 1), label(7, 2));
        assert_ne!(label(7, 1), label(8, 1));
    }

    #[test]
    fn this_process_lives_and_one_that_had_its_number_before_does_not() {
        let own = i32::try_from(std::process::id()).unwrap();
        let born = process_entry(own).unwrap().born;

        assert!(is_of_the_living(&label(own, born)));
        assert!(!is_of_the_living(&label(own, born + 1)));
        assert!(!is_of_the_living("lo:ptl"));
        assert!(!is_of_the_living("lo:ptl~~~~~~~~~"));
    }

    #[test]
    fn addresses_that_a_runner_left_are_taken_away_and_those_of_the_living_stay() {
        let own = Loopback::open().unwrap();
        if !own.may_change().unwrap() {
            // Without the right there is nothing that could have been left.
            assert_eq!(own.carry(Ipv4Addr::new(127, 77, 254, 1)).unwrap(), CarryOutcome::NotAllowed);
            return;
        }
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let number = i32::try_from(ended.id()).unwrap();
        ended.wait().unwrap();
        let dead = Loopback { label: label(number, 1), ..own.clone() };
        let (left, kept) = (Ipv4Addr::new(127, 77, 254, 1), Ipv4Addr::new(127, 77, 254, 2));
        assert_eq!(dead.carry(left).unwrap(), CarryOutcome::Carried);
        assert_eq!(own.carry(kept).unwrap(), CarryOutcome::Carried);
        assert_eq!(own.carry(kept).unwrap(), CarryOutcome::Taken);

        let dropped = own.drop_leftovers().unwrap();

        let carried: Vec<Ipv4Addr> = own.carried().unwrap().into_iter().map(|one| one.address).collect();
        own.drop_address(kept).unwrap();
        own.drop_address(kept).unwrap();
        assert!(dropped >= 1);
        assert!(carried.contains(&kept) && !carried.contains(&left), "{carried:?}");
    }
}
