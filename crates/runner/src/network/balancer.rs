//! A client, the time and who serves → whom to ask, in which order.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// How many are tried for one request.
const MOST_TRIES: usize = 8;
/// How many clients are remembered; then those go that were not seen for the longest time.
const MOST_CLIENTS: usize = 8192;

/// Gives the requests of a port to those that serve it, in turn.
#[derive(Clone, Debug, Default)]
pub struct Balancer {
    backends: Vec<SocketAddrV4>,
    next: usize,
    affinity: Option<Duration>,
    clients: HashMap<Ipv4Addr, StickyClient>,
}

/// A client that stays with a backend.
#[derive(Clone, Copy, Debug)]
struct StickyClient {
    backend: SocketAddrV4,
    seen: Instant,
}

impl Balancer {
    /// These serve from now on. Clients of those that are gone are free to go elsewhere.
    pub fn serve(&mut self, backends: Vec<SocketAddrV4>, affinity: Option<Duration>) {
        self.backends = backends;
        self.affinity = affinity;
        if affinity.is_none() {
            self.clients.clear();
        }
        let backends = &self.backends;
        self.clients.retain(|_, client| backends.contains(&client.backend));
    }

    /// Whether nobody serves.
    pub fn is_empty(&self) -> bool {
        self.backends.is_empty()
    }

    /// Whether this one serves.
    pub fn has(&self, backend: SocketAddrV4) -> bool {
        self.backends.contains(&backend)
    }

    /// Whom to ask for a client: the first one, and the others where that cannot be reached.
    pub fn candidates(&mut self, client: Ipv4Addr, now: Instant) -> Vec<SocketAddrV4> {
        if self.backends.is_empty() {
            return Vec::new();
        }
        let own = self.remembered(client, now).and_then(|own| self.backends.iter().position(|one| *one == own));
        let first = own.unwrap_or_else(|| {
            self.next = (self.next + 1) % self.backends.len();
            self.next
        });
        let (before, after) = self.backends.split_at(first);
        let candidates: Vec<SocketAddrV4> = after.iter().chain(before).take(MOST_TRIES).copied().collect();
        if self.affinity.is_some() {
            self.remember(client, candidates[0], now);
        }
        candidates
    }

    /// The backend of a client that was seen within the time.
    fn remembered(&self, client: Ipv4Addr, now: Instant) -> Option<SocketAddrV4> {
        let (within, known) = (self.affinity?, self.clients.get(&client)?);
        (now.saturating_duration_since(known.seen) < within).then_some(known.backend)
    }

    fn remember(&mut self, client: Ipv4Addr, backend: SocketAddrV4, now: Instant) {
        if self.clients.len() >= MOST_CLIENTS && !self.clients.contains_key(&client) {
            let mut seen: Vec<Instant> = self.clients.values().map(|client| client.seen).collect();
            let (_, middle, _) = seen.select_nth_unstable(MOST_CLIENTS / 2);
            let middle = *middle;
            self.clients.retain(|_, client| client.seen > middle);
        }
        self.clients.insert(client, StickyClient { backend, seen: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(number: u8) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(127, 77, 0, number), 80)
    }

    fn balancer(count: u8, affinity: Option<u64>) -> Balancer {
        let mut balancer = Balancer::default();
        balancer.serve((1..=count).map(backend).collect(), affinity.map(Duration::from_secs));
        balancer
    }

    fn client(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 0, number)
    }

    #[test]
    fn requests_go_round_and_the_others_are_tried_next() {
        let (mut balancer, now) = (balancer(3, None), Instant::now());
        let mut turn = || balancer.candidates(client(1), now);

        assert_eq!(turn(), [backend(2), backend(3), backend(1)]);
        assert_eq!(turn(), [backend(3), backend(1), backend(2)]);
        assert_eq!(turn(), [backend(1), backend(2), backend(3)]);
    }

    #[test]
    fn where_nobody_serves_nobody_is_asked() {
        assert_eq!(balancer(0, Some(1)).candidates(client(1), Instant::now()), []);
    }

    #[test]
    fn a_client_stays_with_its_backend_for_as_long_as_it_comes_back_in_time() {
        let (mut balancer, now) = (balancer(3, Some(10)), Instant::now());
        let mut first = |seconds| balancer.candidates(client(1), now + Duration::from_secs(seconds))[0];
        let own = first(0);

        assert_eq!([first(9), first(18), first(27)], [own; 3]);
        assert_ne!(first(37), own);
    }

    #[test]
    fn a_client_of_a_backend_that_is_gone_goes_to_another_and_stays_there() {
        let (mut balancer, now) = (balancer(3, Some(10)), Instant::now());
        let own = balancer.candidates(client(1), now)[0];
        let others = [1, 2, 3].map(backend).into_iter().filter(|one| *one != own).collect();
        balancer.serve(others, Some(Duration::from_secs(10)));

        let next = balancer.candidates(client(1), now)[0];

        assert_ne!(next, own);
        assert_eq!(balancer.candidates(client(1), now)[0], next);
    }

    #[test]
    fn of_too_many_clients_those_are_forgotten_that_were_not_seen_for_long() {
        let (mut balancer, now) = (balancer(2, Some(1_000_000)), Instant::now());
        for number in 0..=u32::try_from(MOST_CLIENTS).unwrap() {
            balancer.candidates(Ipv4Addr::from_bits(number), now + Duration::from_millis(number.into()));
        }

        assert!(balancer.clients.len() <= MOST_CLIENTS);
        assert!(!balancer.clients.contains_key(&Ipv4Addr::from_bits(0)));
        assert!(balancer.clients.contains_key(&Ipv4Addr::from_bits(u32::try_from(MOST_CLIENTS).unwrap())));
    }
}
