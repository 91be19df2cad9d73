//! Counts addresses of both families as numbers, so that pools need no case for each family.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Addresses that may be given out, first and last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub start: IpAddr,
    pub end: IpAddr,
}

impl Pool {
    /// Whether the pool has it.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.start.is_ipv4()
            && (number(self.start)..=number(self.end)).contains(&number(address))
    }

    /// The lowest address that is not taken.
    pub fn lowest_free(&self, taken: &BTreeSet<IpAddr>) -> Option<IpAddr> {
        let mut next = number(self.start);
        for address in taken.range(self.start..=self.end) {
            if number(*address) > next {
                break;
            }
            next = number(*address).checked_add(1)?;
        }
        (next <= number(self.end)).then(|| address_of(next, self.start.is_ipv6()))
    }
}

pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn address_of(number: u128, is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        IpAddr::V6(Ipv6Addr::from(number))
    } else {
        IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)))
    }
}

/// The first address of a range that a host may have.
pub fn first_host(range: IpNet) -> IpAddr {
    let first = number(range.network());
    let skip = u128::from(range.prefix_len() < range.max_prefix_len());
    address_of(first + skip, range.network().is_ipv6())
}

/// The last address of a range that a host may have.
pub fn last_host(range: IpNet) -> IpAddr {
    let last = number(range.broadcast());
    let is_small = range.prefix_len() + 1 >= range.max_prefix_len();
    let skip = u128::from(range.network().is_ipv4() && !is_small);
    address_of(last - skip, range.network().is_ipv6())
}

/// All hosts of a range except one.
pub(crate) fn pools_without(range: IpNet, gateway: Option<IpAddr>) -> Vec<Pool> {
    let whole = Pool { start: first_host(range), end: last_host(range) };
    let Some(gateway) = gateway.filter(|gateway| whole.contains(*gateway)) else { return vec![whole] };
    let is_ipv6 = gateway.is_ipv6();
    let mut pools = vec![];
    if gateway > whole.start {
        pools.push(Pool { start: whole.start, end: address_of(number(gateway) - 1, is_ipv6) });
    }
    if gateway < whole.end {
        pools.push(Pool { start: address_of(number(gateway) + 1, is_ipv6), end: whole.end });
    }
    pools
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_lowest_free_address_is_given_and_the_last_is_not_exceeded() {
        let pool = Pool { start: ip("10.0.0.2"), end: ip("10.0.0.4") };
        let mut taken = BTreeSet::from([ip("10.0.0.1"), ip("10.0.0.3")]);
        for expected in [Some("10.0.0.2"), Some("10.0.0.4"), None] {
            let got = pool.lowest_free(&taken);
            assert_eq!(got, expected.map(ip));
            taken.extend(got);
        }
    }

    #[test]
    fn pools_leave_network_broadcast_and_gateway_out() {
        let range: IpNet = "10.0.0.0/24".parse().unwrap();
        let pools = pools_without(range, Some(ip("10.0.0.1")));
        assert_eq!(pools, [Pool { start: ip("10.0.0.2"), end: ip("10.0.0.254") }]);
        let pools = pools_without(range, Some(ip("10.0.0.100")));
        assert_eq!(pools.len(), 2);
        let six: IpNet = "fd00::/64".parse().unwrap();
        let pools = pools_without(six, Some(ip("fd00::1")));
        assert_eq!(pools, [Pool { start: ip("fd00::2"), end: ip("fd00::ffff:ffff:ffff:ffff") }]);
    }
}
