//! Scenarios, traps, names, and a crash sweep over an in-memory management cluster.

mod checker;
mod crash;
mod fixture;
mod golden;
mod naming;
mod scenarios;
mod traps;
