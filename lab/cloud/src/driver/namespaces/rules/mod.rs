//! Filter and translation rules as text for `nft`, computed from the topology alone.
//!
//! Each text replaces what an earlier one of the same table said, in one transaction.

mod addresses;
mod change;
mod network;
mod router;
#[cfg(test)]
mod tests;

pub(super) use change::{dropped_floating, revoked};
pub(super) use network::network;
pub(super) use router::router;

/// All tables of ours.
const TABLE: &str = "hangar";

/// The lines that make a table empty, whether it is there or not.
fn renew(family: &str) -> String {
    format!("table {family} {TABLE}\ndelete table {family} {TABLE}\n")
}
