//! Resolves a store's name, and leaves out the addresses that may not be connected to.
//!
//! The name comes from who wrote the Secret, and who owns the name chooses what it resolves to, another address each time.
//! So what counts is the address of this connection. If no address is left, the connection fails with the reason.

use std::fmt;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

use super::AddressRule;

/// Every address that the name has is refused; why, of the first.
#[derive(Debug)]
pub(super) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

#[derive(Clone)]
pub(super) struct Resolver {
    system: GaiResolver,
    rule: Option<AddressRule>,
}

impl Resolver {
    pub(super) fn new(rule: Option<AddressRule>) -> Self {
        Self { system: GaiResolver::new(), rule }
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::poll_ready(&mut self.system, context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let rule = self.rule.clone();
        let resolving = Service::call(&mut self.system, name);
        Box::pin(async move {
            let found: Vec<SocketAddr> = resolving.await?.collect();
            let Some(rule) = rule else { return Ok(found.into_iter()) };
            Ok(allowed(found, &rule)?.into_iter())
        })
    }
}

fn allowed(found: Vec<SocketAddr>, rule: &AddressRule) -> Result<Vec<SocketAddr>, Refused> {
    let (mut kept, mut refused) = (Vec::new(), None);
    for address in found {
        match rule(address.ip()) {
            Ok(()) => kept.push(address),
            Err(why) => {
                refused.get_or_insert(why);
            }
        }
    }
    match refused {
        Some(why) if kept.is_empty() => Err(Refused(why)),
        _ => Ok(kept),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn of_a_names_addresses_only_the_allowed_ones_are_left() {
        let rule: AddressRule =
            Arc::new(
                |address| {
                    if address.is_loopback() { Err(format!("{address} is here")) } else { Ok(()) }
                },
            );
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (inside, outside) = (at("127.0.0.1:443"), at("192.0.2.1:443"));
        assert_eq!(allowed(vec![inside, outside], &rule).unwrap(), [outside]);
        assert_eq!(allowed(vec![inside], &rule).unwrap_err().to_string(), "127.0.0.1 is here");
    }
}
