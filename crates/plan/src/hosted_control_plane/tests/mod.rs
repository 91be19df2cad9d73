//! Scenarios, traps, names, and a crash sweep over an in-memory management cluster.

mod checker;
mod crash;
mod fixture;
mod golden;
mod naming;
mod reachability;
mod scenarios;
mod traps;
