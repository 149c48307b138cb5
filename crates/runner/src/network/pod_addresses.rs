//! A pod → its address, carried by the loopback interface where this process may have it so.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Mutex;

use super::address_pool::{AddressPool, AddressUse};
use super::loopback::{CarryOutcome, Loopback};

/// Whether the loopback interface carries an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// It does: every program can listen there.
    Yes,
    /// It does not: programs can that take an address as they are told.
    No,
}

/// A pod's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodAddress {
    /// The address.
    pub address: Ipv4Addr,
    /// Whether the interface carries it.
    pub carried: Carried,
}

/// The addresses of all pods of a runner. What is carried for them goes when this goes.
#[derive(Debug)]
pub(super) struct PodAddresses {
    pool: Mutex<AddressPool>,
    /// The interface, where it may be changed.
    loopback: Option<Loopback>,
}

impl PodAddresses {
    /// None yet. `first` is where the search for free ones begins.
    pub(super) fn new(loopback: Option<Loopback>, first: u16) -> Self {
        Self { pool: Mutex::new(AddressPool::starting_at(first)), loopback }
    }

    /// A pod had this address with an earlier runner.
    pub(super) fn remember(&self, pod: &str, address: Ipv4Addr) {
        self.pool.lock().expect("nobody panics with it").remember(pod, address);
    }

    /// Whether addresses are carried.
    pub(super) fn are_carried(&self) -> Carried {
        if self.loopback.is_some() { Carried::Yes } else { Carried::No }
    }

    /// Gives a pod an address. None where all are taken.
    pub(super) fn take(&self, pod: &str) -> Option<PodAddress> {
        let mut carried = Carried::No;
        let address = self.pool.lock().expect("nobody panics with it").take(pod, |address| {
            let (usage, is_carried) = self.carry(address);
            carried = is_carried;
            usage
        })?;
        Some(PodAddress { address, carried })
    }

    fn carry(&self, address: Ipv4Addr) -> (AddressUse, Carried) {
        match self.loopback.as_ref().map(|loopback| loopback.carry(address)) {
            Some(Ok(CarryOutcome::Carried)) => (AddressUse::Free, Carried::Yes),
            Some(Ok(CarryOutcome::Taken)) => (AddressUse::Taken, Carried::No),
            None | Some(Ok(CarryOutcome::NotAllowed)) => (AddressUse::Free, Carried::No),
            Some(Err(error)) => {
                tracing::warn!(%address, %error, "The loopback interface does not carry a pod's address");
                (AddressUse::Free, Carried::No)
            }
        }
    }

    /// The pod needs its address no more.
    pub(super) fn give_back(&self, pod: &str) {
        if let Some(address) = self.pool.lock().expect("nobody panics with it").give_back(pod) {
            self.drop_address(address);
        }
    }

    fn drop_address(&self, address: Ipv4Addr) {
        let Some(Err(error)) = self.loopback.as_ref().map(|loopback| loopback.drop_address(address)) else { return };
        tracing::warn!(%address, %error, "The loopback interface still carries the address of a pod that is gone");
    }

    /// Takes away what earlier runners left that are gone.
    pub(super) fn drop_leftovers(&self) -> io::Result<usize> {
        self.loopback.as_ref().map_or(Ok(0), Loopback::drop_leftovers)
    }

    /// Gives all addresses back.
    pub(super) fn give_back_all(&self) {
        for address in self.pool.lock().expect("nobody panics with it").clear() {
            self.drop_address(address);
        }
    }
}

impl Drop for PodAddresses {
    fn drop(&mut self) {
        self.give_back_all();
    }
}
