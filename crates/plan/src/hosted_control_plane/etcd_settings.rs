//! What users can set on etcd: fields of its configuration file, which have the names of flags.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::flags::accepted;
use super::program::ETCD;
use super::setting::Type;

/// The settings of etcd's file that are not the control plane's own.
const SETTINGS: [(&str, Type); 54] = [
    ("auth-token", Type::Text),
    ("auth-token-ttl", Type::Unsigned),
    ("auto-compaction-mode", Type::OneOf(&["periodic", "revision"])),
    // A number of hours or revisions, or a duration: etcd reads it by its mode.
    ("auto-compaction-retention", Type::Text),
    ("backend-batch-interval", Type::Nanoseconds),
    ("backend-batch-limit", Type::Unsigned),
    ("backend-bbolt-freelist-type", Type::OneOf(&["array", "map"])),
    ("bcrypt-cost", Type::Unsigned),
    ("bootstrap-defrag-threshold-megabytes", Type::Unsigned),
    ("cipher-suites", Type::List),
    ("compact-hash-check-time", Type::Nanoseconds),
    ("compaction-batch-limit", Type::Unsigned),
    ("compaction-sleep-interval", Type::Nanoseconds),
    ("corrupt-check-time", Type::Nanoseconds),
    ("cors", Type::Text),
    ("distributed-tracing-address", Type::Text),
    ("distributed-tracing-instance-id", Type::Text),
    ("distributed-tracing-sampling-rate", Type::Unsigned),
    ("distributed-tracing-service-name", Type::Text),
    ("downgrade-check-time", Type::Nanoseconds),
    ("election-timeout", Type::Unsigned),
    ("enable-distributed-tracing", Type::Switch),
    ("enable-grpc-gateway", Type::Switch),
    ("enable-log-rotation", Type::Switch),
    ("enable-pprof", Type::Switch),
    ("grpc-keepalive-interval", Type::Nanoseconds),
    ("grpc-keepalive-min-time", Type::Nanoseconds),
    ("grpc-keepalive-timeout", Type::Nanoseconds),
    ("heartbeat-interval", Type::Unsigned),
    ("host-whitelist", Type::Text),
    ("initial-election-tick-advance", Type::Switch),
    ("log-format", Type::OneOf(&["console", "json"])),
    ("log-level", Type::OneOf(&["debug", "info", "warn", "error", "panic", "fatal"])),
    ("log-outputs", Type::List),
    ("log-rotation-config-json", Type::Text),
    ("logger", Type::OneOf(&["zap"])),
    ("max-concurrent-streams", Type::Unsigned),
    ("max-learners", Type::Unsigned),
    ("max-request-bytes", Type::Unsigned),
    ("max-snapshots", Type::Unsigned),
    ("max-txn-ops", Type::Unsigned),
    ("max-wals", Type::Unsigned),
    ("memory-mlock", Type::Switch),
    ("metrics", Type::OneOf(&["basic", "extensive"])),
    ("pre-vote", Type::Switch),
    ("self-signed-cert-validity", Type::Unsigned),
    ("snapshot-catchup-entries", Type::Unsigned),
    ("snapshot-count", Type::Unsigned),
    ("strict-reconfig-check", Type::Switch),
    ("tls-max-version", Type::OneOf(&["TLS1.2", "TLS1.3"])),
    ("tls-min-version", Type::OneOf(&["TLS1.2", "TLS1.3"])),
    ("warning-apply-duration", Type::Nanoseconds),
    ("warning-unary-request-duration", Type::Nanoseconds),
    ("watch-progress-notify-interval", Type::Nanoseconds),
];

/// What users give, as the file has it. What they must not set is left out; `unsupported` tells them.
pub(super) fn given(arguments: &BTreeMap<String, String>) -> Value {
    let entries = arguments.iter().filter_map(|(name, text)| setting(name, text).ok());
    Value::Object(entries.collect::<Map<String, Value>>())
}

/// A setting as the file has it, or why it cannot be set.
pub(super) fn setting(name: &str, text: &str) -> Result<(String, Value), String> {
    let (name, text) = accepted(&ETCD, name, text)?;
    let known = |name: &str| SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, of)| *of);
    if let Some(rest) = name.strip_prefix("experimental-").filter(|rest| known(rest).is_some()) {
        return Err(format!("it is called {rest} since etcd 3.6"));
    }
    let Some(of) = known(&name) else {
        return Err("etcd's configuration file has no such setting".to_owned());
    };
    let value = of.read(&text)?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_setting_has_the_type_of_the_file() {
        for (name, text, expected) in [
            // etcd reads a number here as hours.
            ("auto-compaction-retention", "72h", json!("72h")),
            ("auto-compaction-retention", "1000", json!("1000")),
            ("grpc-keepalive-interval", "2h", json!(7_200_000_000_000_u64)),
            ("snapshot-count", "10000", json!(10000)),
            ("--pre_vote", "false", json!(false)),
            ("log-outputs", "stderr, /dev/null", json!(["stderr", "/dev/null"])),
            ("metrics", "extensive", json!("extensive")),
        ] {
            assert_eq!(setting(name, text).map(|(_, value)| value), Ok(expected), "{name}={text}");
        }
    }

    #[test]
    fn what_etcd_would_not_start_with_or_would_ignore_is_refused() {
        for (name, text, expected) in [
            ("snapshot-count", "many", "it is no whole number of 0 or more"),
            ("snapshot-count", "-1", "it is no whole number of 0 or more"),
            ("grpc-keepalive-interval", "-5s", "it is no duration, such as 5s"),
            ("log-level", "loud", "it is none of debug, info, warn, error, panic, fatal"),
            ("grpc-keepalive-interval", "5", "it is no duration, such as 5s"),
            ("pre-vote", "yes", "it is neither true nor false"),
            ("raft-read-timeout", "5s", "etcd's configuration file has no such setting"),
            (
                "experimental-compaction-batch-limit",
                "1",
                "it is called compaction-batch-limit since etcd 3.6",
            ),
        ] {
            assert_eq!(setting(name, text), Err(expected.to_owned()), "{name}={text}");
        }
        for name in ["cert-file", "peer-auto-tls", "data-dir", "force-new-cluster", "unsafe-no-fsync"] {
            assert!(setting(name, "true").is_err(), "{name}");
        }
    }
}
