//! Pods that come and go → an address of 127.77.0.0/16 for each, the same again for a pod that had one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What the runner does with an address that nobody of its own has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressUse {
    /// It can be a pod's.
    Free,
    /// Somebody else of this machine has it.
    Taken,
}

/// The addresses of a runner's pods.
#[derive(Clone, Debug)]
pub struct AddressPool {
    by_pod: BTreeMap<String, Ipv4Addr>,
    taken: BTreeSet<u16>,
    /// Where the next search begins, so that an address that was given back is not soon another pod's.
    next: u16,
}

/// The first and the last address of the range are nobody's.
const NUMBERS: std::ops::Range<u16> = 1..u16::MAX;

impl AddressPool {
    /// An empty one that begins at a place of its range: runners of one machine begin at different ones.
    pub fn starting_at(number: u16) -> Self {
        let next = number.clamp(NUMBERS.start, NUMBERS.end - 1);
        Self { by_pod: BTreeMap::new(), taken: BTreeSet::new(), next }
    }

    /// Sets an address aside that a pod had with an earlier runner. What another pod has, and what is not of the range, is not.
    pub fn remember(&mut self, pod: &str, address: Ipv4Addr) {
        let Some(number) = number_of(address) else { return };
        if !self.by_pod.contains_key(pod) && self.taken.insert(number) {
            self.by_pod.insert(pod.to_owned(), address);
        }
    }

    /// The address that a pod has.
    pub fn address_of(&self, pod: &str) -> Option<Ipv4Addr> {
        self.by_pod.get(pod).copied()
    }

    /// Gives a pod an address: its own from before, else the next that is free. None where all are taken.
    pub fn take(&mut self, pod: &str, mut usable: impl FnMut(Ipv4Addr) -> AddressUse) -> Option<Ipv4Addr> {
        if let Some(own) = self.address_of(pod) {
            if usable(own) == AddressUse::Free {
                return Some(own);
            }
            self.give_back(pod);
        }
        let after = (self.next..NUMBERS.end).chain(NUMBERS.start..self.next);
        let mut free = after.filter(|number| !self.taken.contains(number));
        let number = free.find(|number| usable(address(*number)) == AddressUse::Free)?;
        self.taken.insert(number);
        self.next = if number + 1 < NUMBERS.end { number + 1 } else { NUMBERS.start };
        self.by_pod.insert(pod.to_owned(), address(number));
        Some(address(number))
    }

    /// The pod needs it no more; gives back which one it was.
    pub fn give_back(&mut self, pod: &str) -> Option<Ipv4Addr> {
        let address = self.by_pod.remove(pod)?;
        if let Some(number) = number_of(address) {
            self.taken.remove(&number);
        }
        Some(address)
    }

    /// No pod has one any more; gives back which ones they were.
    pub fn clear(&mut self) -> Vec<Ipv4Addr> {
        self.taken.clear();
        std::mem::take(&mut self.by_pod).into_values().collect()
    }
}

fn address(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 77, high, low)
}

/// Where an address is in the range.
fn number_of(address: Ipv4Addr) -> Option<u16> {
    match address.octets() {
        [127, 77, high, low] => Some(u16::from_be_bytes([high, low])).filter(|number| NUMBERS.contains(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: fn(Ipv4Addr) -> AddressUse = |_| AddressUse::Free;

    fn at(third: u8, fourth: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 77, third, fourth)
    }

    #[test]
    fn pods_get_one_address_after_the_other_and_keep_it() {
        let mut pool = AddressPool::starting_at(255);

        assert_eq!(pool.take("a", FREE), Some(at(0, 255)));
        assert_eq!(pool.take("b", FREE), Some(at(1, 0)));
        assert_eq!(pool.take("a", FREE), Some(at(0, 255)));
    }

    #[test]
    fn an_address_that_was_given_back_is_the_last_to_be_given_again() {
        let mut pool = AddressPool::starting_at(1);
        pool.take("a", FREE);

        assert_eq!(pool.give_back("a"), Some(at(0, 1)));

        assert_eq!(pool.take("b", FREE), Some(at(0, 2)));
        assert_eq!(pool.give_back("a"), None);
    }

    #[test]
    fn a_pod_that_is_remembered_has_its_address_before_any_other_pod() {
        let mut pool = AddressPool::starting_at(7);
        pool.remember("old", at(0, 7));
        pool.remember("thief", at(0, 7));
        pool.remember("far", Ipv4Addr::new(10, 0, 0, 7));

        assert_eq!(pool.take("new", FREE), Some(at(0, 8)));
        assert_eq!(pool.take("old", FREE), Some(at(0, 7)));
        assert_eq!(pool.address_of("thief"), None);
        assert_eq!(pool.address_of("far"), None);
    }

    #[test]
    fn addresses_that_somebody_else_has_are_passed_over() {
        let mut pool = AddressPool::starting_at(1);
        pool.remember("old", at(0, 9));
        let others =
            |address| if address == at(0, 1) || address == at(0, 9) { AddressUse::Taken } else { AddressUse::Free };

        assert_eq!(pool.take("old", others), Some(at(0, 2)));
        assert_eq!(pool.take("new", others), Some(at(0, 3)));
    }

    #[test]
    fn the_search_goes_round_and_ends() {
        let mut pool = AddressPool::starting_at(u16::MAX);

        assert_eq!(pool.take("a", FREE), Some(at(255, 254)));
        assert_eq!(pool.take("b", FREE), Some(at(0, 1)));
        assert_eq!(pool.take("c", |_| AddressUse::Taken), None);
    }
}
