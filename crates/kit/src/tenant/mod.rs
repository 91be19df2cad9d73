//! Reads and writes in tenants: their Nodes as small facts, and our own objects.
//!
//! Every call goes through [`crate::client::Tenants`], so that it is limited in time and size, and a tenant that is
//! away delays no other.

mod apply;
mod nodes;

pub use apply::TenantApplier;
pub use nodes::{Lease, Nodes};
