//! The addresses on the private network, and the range of the network.
//!
//! The range must not overlap Kubernetes' usual ranges (10.96.0.0/12, 10.244.0.0/16), any range of the host, or that of
//! another environment, which the host shows as that environment's link.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::error::{Error, Result};

/// Where ranges are chosen from when none is given: shared address space, which neither companies nor homes use
/// inside, in sixteen pieces.
const POOL: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(100, 72, 0, 0), 16);
const PREFIX: u8 = 20;
/// The smallest range with room for everything below.
const LONGEST_PREFIX: u8 = 22;

/// The pods' addresses, seen in the nodes' machines alone. Each node has a part of them.
pub const POD_RANGE: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 244, 0, 0), 16);
/// The Services' addresses, seen in the nodes' machines alone.
pub const SERVICE_RANGE: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 16);
/// The API server's address as a Service: the first of the range.
pub const KUBERNETES_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The DNS Service's address.
pub const DNS_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);

/// What Kubernetes clusters use inside by default, this one and those that run on it: an address of these would mean
/// a pod or a Service to whoever is in a cluster.
pub const RESERVED: [Ipv4Net; 2] = [POD_RANGE, Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 12)];

/// Addresses on the private network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    pub range: Ipv4Net,
    /// The bridge, which is the default route of all machines.
    pub router: Ipv4Addr,
    /// The host's link.
    pub host: Ipv4Addr,
    /// The first management machine; its API server and the resolver. Those of the others follow it.
    pub management: Ipv4Addr,
    pub gateway: Ipv4Addr,
    /// The lowest address of load balancers.
    pub first_load_balancer: Ipv4Addr,
    /// The highest address of load balancers.
    pub last_load_balancer: Ipv4Addr,
}

impl Addresses {
    /// The addresses in a range. The second half of the first 512 belongs to load balancers; what lies above is free
    /// for other machines.
    pub fn of(range: Ipv4Net) -> Result<Self> {
        let range = range.trunc();
        if range.prefix_len() > LONGEST_PREFIX {
            return Err(Error::SmallRange { range });
        }
        if let Some(reserved) = RESERVED.into_iter().find(|net| net.contains(&range) || range.contains(net)) {
            return Err(Error::ReservedRange { range, reserved });
        }
        let at = |offset: u32| Ipv4Addr::from(u32::from(range.network()) + offset);
        Ok(Self {
            range,
            router: at(1),
            host: at(2),
            management: at(10),
            gateway: at(257),
            first_load_balancer: at(272),
            last_load_balancer: at(510),
        })
    }

    /// The router's address with the range's prefix.
    pub fn router_in_range(&self) -> Ipv4Net {
        Ipv4Net::new(self.router, self.range.prefix_len()).unwrap_or(self.range)
    }
}

/// The ranges to try when none is given, in order.
pub fn candidates() -> Vec<Ipv4Net> {
    POOL.subnets(PREFIX).map(Iterator::collect).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lie_in_their_range_and_apart() {
        for range in candidates().into_iter().chain(["10.213.4.0/22".parse().unwrap()]) {
            let addresses = Addresses::of(range).unwrap();
            let all = [
                addresses.router,
                addresses.host,
                addresses.management,
                addresses.gateway,
                addresses.first_load_balancer,
                addresses.last_load_balancer,
            ];
            assert!(all.iter().all(|address| range.contains(address)));
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        }
        assert!(matches!(Addresses::of("10.0.0.0/24".parse().unwrap()), Err(Error::SmallRange { .. })));
        for reserved in ["10.244.0.0/16", "10.0.0.0/8", "10.100.0.0/20"] {
            let refused = Addresses::of(reserved.parse().unwrap());
            assert!(matches!(refused, Err(Error::ReservedRange { .. })), "{refused:?}");
        }
    }

    #[test]
    fn there_are_sixteen_candidates_beside_kubernetes_ranges() {
        let candidates = candidates();
        assert_eq!(candidates.len(), 16);
        assert_eq!(candidates[0].to_string(), "100.72.0.0/20");
        for fixed in [POD_RANGE, SERVICE_RANGE] {
            assert!(candidates.iter().all(|range| !range.contains(&fixed.network())));
        }
        assert!(SERVICE_RANGE.contains(&DNS_SERVICE));
    }
}
