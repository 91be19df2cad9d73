//! The world around a manager with many control planes, without a pod: an API server with etcd, and an actor that plays
//! the rest. `cargo xtask bench control-plane` runs it.
//!
//! - `workloads`: the controllers of StatefulSets and Deployments, kubelets and load balancers
//! - `tenants`: the tenants' API servers, in memory, each behind an address of its own
//! - `tally`: what was called there, and how many control planes are at their goal
//!
//! It answers at every address of 10.0.0.0/8, so it needs a network namespace in which these are local. The argument is
//! the number of Nodes of each tenant.

mod plain;
mod tally;
mod tenants;
mod workloads;

use std::sync::Arc;

use hangar_testbed::{Options, Testbed};
use tokio_util::sync::CancellationToken;

use tally::Tally;
use tenants::Tenants;
use workloads::Addresses;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let nodes = std::env::args().nth(1).map_or(Ok(0), |text| text.parse())?;
    let testbed = tokio::task::spawn_blocking(|| Testbed::start(Options::default())).await??;
    let (stop, client) = (CancellationToken::new(), testbed.client());
    let (tally, addresses) = (Arc::new(Tally::new(&client)), Arc::new(Addresses::default()));
    workloads::play(&client, &addresses, &stop);
    Tenants::serve(client, addresses, Arc::clone(&tally), nodes).await?;
    plain::serve_etcd(Arc::clone(&tally)).await?;
    plain::serve_tally(tally, stop.clone()).await?;
    println!("export KUBECONFIG={}", testbed.kubeconfig().display());
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    tokio::task::spawn_blocking(move || drop(testbed)).await?;
    Ok(())
}
