//! Checks whether an address range is free on this host.

use ipnet::Ipv4Net;

use super::Network;
use crate::error::{Error, Result};

/// Refuses a range that shares addresses with an address or route of the host. `ours` is the link that may.
pub(super) fn check(range: Ipv4Net, ours: &str) -> Result<()> {
    let mut network = Network::here()?;
    let links = network.links()?;
    let name = |index: Option<u32>| {
        let found = index.and_then(|index| links.iter().find(|link| link.index == index));
        found.map_or("no link", |link| link.name.as_str()).to_owned()
    };
    let alias = |index: Option<u32>| {
        let found = index.and_then(|index| links.iter().find(|link| link.index == index));
        found.and_then(|link| link.alias.clone()).map(|alias| format!(" ({alias})")).unwrap_or_default()
    };
    let mut claims = Vec::new();
    for (index, address) in network.addresses()? {
        claims.push((Some(index), address, "address"));
    }
    for (index, route) in network.routes()? {
        claims.push((index, route, "route"));
    }
    for (index, claim, what) in claims {
        let link = name(index);
        if link != ours && overlaps(range, claim) {
            let other = format!("{what} {claim} on {link}{}", alias(index));
            return Err(Error::RangeInUse { range, other });
        }
    }
    Ok(())
}

/// Halves of the whole space are ways out (a default route, or a VPN's pair of halves), not claims to addresses.
fn overlaps(range: Ipv4Net, claim: Ipv4Net) -> bool {
    claim.prefix_len() > 1 && (range.contains(&claim.network()) || claim.contains(&range.network()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_that_share_addresses() {
        let range = net("100.72.0.0/16");
        for claim in ["100.72.0.0/16", "100.72.3.4/32", "100.72.3.4/24", "100.64.0.0/10", "100.0.0.0/8"] {
            assert!(overlaps(range, net(claim)), "{claim}");
        }
        for claim in ["0.0.0.0/0", "0.0.0.0/1", "100.73.0.0/16", "10.0.0.0/8", "100.71.255.255/32"] {
            assert!(!overlaps(range, net(claim)), "{claim}");
        }
    }

    #[test]
    fn loopback_is_taken_on_every_host() {
        let error = check(net("127.0.0.0/24"), "none").unwrap_err().to_string();
        assert!(error.contains("127.0.0.0/24") && error.contains("127.0.0.1/8 on lo"), "{error}");
    }
}
