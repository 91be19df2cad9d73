//! How large etcd's database is, from the metrics that each member tells without a certificate.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::alarms::members_to_ask;
use super::observed::Observed;

/// Where a member tells its metrics.
pub const DATABASE_PATH: &str = "/metrics";

const ALLOCATED: &str = "etcd_mvcc_db_total_size_in_bytes ";
const IN_USE: &str = "etcd_mvcc_db_total_size_in_use_in_bytes ";
const LEADS: &str = "etcd_server_is_leader ";
const QUOTA: &str = "etcd_server_quota_backend_bytes ";

/// Bytes of one member's database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseSize {
    /// Of its file.
    pub allocated: u64,
    /// Of what is in it; the rest is free for it until it is defragmented.
    pub in_use: u64,
    /// Where etcd raises its alarm.
    pub quota: u64,
}

/// What was seen so far of a page of metrics.
#[derive(Debug, Default)]
pub struct DatabaseLines {
    /// Whether the member leads.
    leads: Option<u64>,
    allocated: Option<u64>,
    in_use: Option<u64>,
    quota: Option<u64>,
}

impl DatabaseLines {
    /// Whether the member told that it leads.
    pub fn is_leader(&self) -> bool {
        self.leads == Some(1)
    }

    /// Takes one line; all of it is known after the last that matters.
    pub fn line(&mut self, line: &str) -> Option<DatabaseSize> {
        let read = |name: &str, place: &mut Option<u64>| {
            if let Some(value) = line.strip_prefix(name) {
                *place = bytes(value);
            }
        };
        read(ALLOCATED, &mut self.allocated);
        read(IN_USE, &mut self.in_use);
        read(LEADS, &mut self.leads);
        read(QUOTA, &mut self.quota);
        Some(DatabaseSize { allocated: self.allocated?, in_use: self.in_use?, quota: self.quota? })
    }
}

/// A number as Prometheus writes it, such as `2.097152e+07`.
fn bytes(text: &str) -> Option<u64> {
    let value: f64 = text.trim().parse().ok()?;
    format!("{value:.0}").parse().ok()
}

/// The largest database, rounded up to about a tenth: the status is not written for every page. Nothing where a member
/// did not tell.
pub(super) fn usage(observed: &Observed) -> Option<Quantity> {
    let asked = members_to_ask(observed).len();
    let told: Vec<u64> =
        observed.etcd_members.iter().filter_map(|member| Some(member.database?.allocated)).collect();
    let largest = told.iter().max().filter(|_| told.len() == asked)?;
    let mebibytes = largest.div_ceil(1 << 20).max(1);
    let step = (mebibytes.checked_next_power_of_two()? / 16).max(1);
    Some(Quantity(format!("{}Mi", mebibytes.next_multiple_of(step))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP etcd_mvcc_db_total_size_in_bytes Total size\n\
        # TYPE etcd_mvcc_db_total_size_in_bytes gauge\n\
        etcd_mvcc_db_total_size_in_bytes 2.097152e+07\n\
        etcd_mvcc_db_total_size_in_use_in_bytes 16384\n\
        etcd_mvcc_db_total_size_in_use_in_bytes_more 1\n\
        etcd_server_is_leader 1\n\
        etcd_server_quota_backend_bytes 6.442450944e+09\n";

    fn told(page: &str) -> Option<DatabaseSize> {
        let mut lines = DatabaseLines::default();
        page.lines().find_map(|line| lines.line(line))
    }

    #[test]
    fn sizes_are_read_from_a_page_of_metrics() {
        let size = DatabaseSize { allocated: 20 << 20, in_use: 16384, quota: 6 << 30 };
        assert_eq!(told(PAGE), Some(size));
        for strange in ["NaN", "+Inf", "-1", "", "x", "1e300"] {
            assert_eq!(told(&PAGE.replace("16384", strange)), None, "{strange}");
        }
        assert_eq!(told("<html>"), None);
        let mut lines = DatabaseLines::default();
        assert!(PAGE.lines().any(|line| lines.line(line).is_some()) && lines.is_leader());
    }
}
