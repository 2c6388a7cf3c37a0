//! How many connections are open, in all and from one address.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The network of an address that one peer has to itself, in bits of an IPv6 address.
const PEER_BITS: u32 = 64;

/// Places for connections.
#[derive(Debug)]
pub(super) struct Places {
    total: Arc<Semaphore>,
    per_peer_max: usize,
    /// Only peers that have one, so never more than there are places.
    by_peer: Mutex<HashMap<IpAddr, usize>>,
}

/// A place that is free, for whoever comes next.
#[derive(Debug)]
pub(super) struct FreePlace(#[expect(dead_code, reason = "held, never read")] Option<OwnedSemaphorePermit>);

/// A connection's place; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    peer: IpAddr,
    _of_total: FreePlace,
}

impl Places {
    pub(super) fn new(total_max: usize, per_peer_max: usize) -> Arc<Self> {
        let total = Arc::new(Semaphore::new(total_max.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { total, per_peer_max, by_peer: Mutex::default() })
    }

    /// Waits for a place. Until there is one, who connects waits in the system's queue.
    pub(super) async fn free(&self) -> FreePlace {
        // Nobody closes the semaphore.
        FreePlace(Arc::clone(&self.total).acquire_owned().await.ok())
    }

    /// The place for a peer; `None`: it has as many as one peer may have.
    pub(super) fn take(self: &Arc<Self>, free: FreePlace, peer: IpAddr) -> Option<Place> {
        let peer = network_of(peer);
        let mut by_peer = self.lock();
        let count = by_peer.entry(peer).or_default();
        if *count >= self.per_peer_max {
            return None;
        }
        *count += 1;
        Some(Place { places: Arc::clone(self), peer, _of_total: free })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // The counts are changed in steps that cannot panic between them.
        self.by_peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_peer = self.places.lock();
        if let Some(count) = by_peer.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                by_peer.remove(&self.peer);
            }
        }
    }
}

/// What counts as one peer: an IPv4 address, or the network of an IPv6 one, which its owner has all of.
pub(crate) fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let mask = u128::MAX << (Ipv6Addr::BITS - PEER_BITS);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_peer_takes_no_more_than_its_places_and_gives_them_back() {
        let places = Places::new(3, 2);
        let (one, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let first = places.take(places.free().await, one).unwrap();
        let second = places.take(places.free().await, one).unwrap();
        assert!(places.take(places.free().await, one).is_none());
        assert_eq!(places.total.available_permits(), 1, "who was refused keeps no place");
        let third = places.take(places.free().await, other).unwrap();
        drop(first);
        let again = places.take(places.free().await, one).unwrap();
        drop((second, third, again));
        assert!(places.lock().is_empty());
        assert_eq!(places.total.available_permits(), 3);
    }

    #[test]
    fn a_peer_is_an_address_or_a_network_of_its_own() {
        let of = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
