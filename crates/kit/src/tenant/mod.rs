//! Reads and writes in tenants: their Nodes and add-ons as small facts, and our own objects.
//!
//! Every call goes through [`crate::client::Tenants`], so that it is limited in time and size, and a tenant that is
//! away delays no other.

mod addons;
mod apply;
mod held;
mod nodes;

use std::time::Duration;

use crate::backoff::Backoff;

pub use addons::{Addons, AddonsLease};
pub use apply::TenantApplier;
pub use nodes::{Lease, Nodes};

/// An API server that restarts is back within this time.
const STALE_AFTER: Duration = Duration::from_secs(30);

/// Between tries of a watch in a tenant.
fn backoff() -> Backoff {
    Backoff { first: Duration::from_millis(500), limit: Duration::from_mins(1), ..Backoff::default() }
}
